"""What makes a model worth trusting: the measures of chapter 8 of the book.

A. Jung, "Federated Learning: From Theory to Practice": oversight (8.1), robustness
(8.2, `tacita.theory.sensitivity`), explainability (8.3), traceability (8.4), fairness
(8.5) and sustainability (8.6).
"""

from tacita.trust import explain, fairness, snapshots
from tacita.trust.examination import Trust, examine
from tacita.trust.footprint import Energy, energy
from tacita.trust.oversight import Overseen, oversee
from tacita.trust.page_hinkley import Alarm, alarms
from tacita.trust.uncertainty import Predictions, predictions

__all__ = [
    "Alarm",
    "Energy",
    "Overseen",
    "Predictions",
    "Trust",
    "alarms",
    "energy",
    "examine",
    "explain",
    "fairness",
    "oversee",
    "predictions",
    "snapshots",
]
