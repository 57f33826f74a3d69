"""The secure sum: whoever adds up the letters learns their noisy sum and nothing else.

The grid on which letters are integers (`grid`), exact noise from a table
(`noise_table`), and the choice of both for a budget (`plan`).
"""

from tacita.aggregation.secure.grid import dequantise, quantise
from tacita.aggregation.secure.noise_table import multiples
from tacita.aggregation.secure.plan import plan, threshold

__all__ = ["dequantise", "multiples", "plan", "quantise", "threshold"]
