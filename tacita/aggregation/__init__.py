"""How the letters of an exchange become one: the mean, or another rule."""

from tacita.aggregation.mean import Mean
from tacita.aggregation.rule import Aggregation, Heard

#: Every rule, known to run files by its name.
RULES = (Mean,)

__all__ = ["RULES", "Aggregation", "Heard", "Mean"]
