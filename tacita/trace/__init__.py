"""What a run leaves: models, metrics, configuration, and their folder on disk."""

from tacita.trace.epsilon_words import reasons, short, terms
from tacita.trace.privacy_report import (
    NOT_USEFUL,
    PrivacyReport,
    PrivacyRow,
    beyond_use,
)
from tacita.trace.saved_run import (
    SEED_ASKED_FOR,
    SEED_SECRET,
    Run,
    load_run,
    plain_values,
)
from tacita.trace.verdict import Keeping, Verdict, exceeds, foremost, verdict

__all__ = [
    "NOT_USEFUL",
    "SEED_ASKED_FOR",
    "SEED_SECRET",
    "Keeping",
    "PrivacyReport",
    "PrivacyRow",
    "Run",
    "Verdict",
    "beyond_use",
    "exceeds",
    "foremost",
    "load_run",
    "plain_values",
    "reasons",
    "short",
    "terms",
    "verdict",
]
