"""Choosing numbers by theory and trial, and judging models by held-out rows."""

from tacita.tuning.tune import tune
from tacita.tuning.validate import NodeErrors, validate

__all__ = ["NodeErrors", "tune", "validate"]
