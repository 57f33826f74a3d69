"""How unlike two nodes are: what graphs and clusters are learnt from."""

from tacita.problem.discrepancies.discrepancy import (
    DISCREPANCIES,
    cross_loss,
    discrepancy,
    euclidean,
    label_overlap,
)
from tacita.problem.discrepancies.least_squares import chow_p_values, wald
from tacita.problem.discrepancies.representations import (
    REPRESENTATIONS,
    representations,
)

__all__ = [
    "DISCREPANCIES",
    "REPRESENTATIONS",
    "chow_p_values",
    "cross_loss",
    "discrepancy",
    "euclidean",
    "label_overlap",
    "representations",
    "wald",
]
