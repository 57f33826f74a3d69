"""How the letters of an exchange become one: the mean, or another rule."""

from tacita.aggregation.mean import Mean
from tacita.aggregation.rule import Aggregation, Heard

__all__ = ["Aggregation", "Heard", "Mean"]
