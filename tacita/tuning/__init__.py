"""Choosing numbers by theory and trial, and judging models by held-out rows."""

from tacita.tuning.cross_validation import cross_validate
from tacita.tuning.price import Tradeoff, tradeoff
from tacita.tuning.resilience import Resilience, in_words, resilience
from tacita.tuning.same_kind import same_kind, without_order
from tacita.tuning.tune import tune
from tacita.tuning.usual_liars import (
    rule_table,
    usual_attacks,
    usual_backdoor,
    usual_rules,
)
from tacita.tuning.validate import NodeErrors, validate

__all__ = [
    "NodeErrors",
    "Resilience",
    "Tradeoff",
    "cross_validate",
    "in_words",
    "resilience",
    "rule_table",
    "same_kind",
    "tradeoff",
    "tune",
    "usual_attacks",
    "usual_backdoor",
    "usual_rules",
    "validate",
    "without_order",
]
