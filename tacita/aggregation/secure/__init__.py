"""The secure sum: whoever adds up the letters learns their noisy sum and nothing else.

The grid on which letters are integers (`grid`), exact noise from a table
(`noise_table`), the choice of both for a budget (`plan`), what is agreed (`rule`) and
what enters the sum (`summed`).
"""

from tacita.aggregation.secure.grid import dequantise, quantise
from tacita.aggregation.secure.noise_table import multiples
from tacita.aggregation.secure.plan import plan, threshold
from tacita.aggregation.secure.rule import SecureSum
from tacita.aggregation.secure.summed import Summed

__all__ = [
    "SecureSum",
    "Summed",
    "dequantise",
    "multiples",
    "plan",
    "quantise",
    "threshold",
]
