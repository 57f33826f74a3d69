"""Reading letters back: what gradients without noise tell of the rows behind them.

Noise in the gradients is what stands in the way: `tacita.audits.read_back` shows a
reconstruction beside an epsilon.
"""

from tacita.privacy.inversion.linear import (
    LinearRows,
    linear,
    linear_after,
    probed,
    single_record,
)
from tacita.privacy.inversion.matching import Matched, dlg
from tacita.privacy.inversion.softmax import (
    label_counts,
    softmax,
    softmax_rows,
    whole_counts,
)

__all__ = [
    "LinearRows",
    "Matched",
    "dlg",
    "label_counts",
    "linear",
    "linear_after",
    "probed",
    "single_record",
    "softmax",
    "softmax_rows",
    "whole_counts",
]
