"""How letters of an exchange become one: the mean, a secure sum, or another rule."""

from tacita.aggregation.mean import Mean
from tacita.aggregation.rule import Aggregation, Heard
from tacita.aggregation.secure import SecureSum, Summed

#: What may be asked for; "secure" is a `SecureSum` over everybody.
Choice = Aggregation | SecureSum | str | None
#: Every rule, known to run files by its name.
RULES = (Mean,)

__all__ = ["RULES", "Aggregation", "Choice", "Heard", "Mean", "SecureSum", "Summed"]
