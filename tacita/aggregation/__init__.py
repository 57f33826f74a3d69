"""How the letters of an exchange become one: the mean, or another rule."""

from tacita.aggregation.rule import Aggregation, Heard
from tacita.aggregation.mean import Mean

__all__ = ["Aggregation", "Heard", "Mean"]
