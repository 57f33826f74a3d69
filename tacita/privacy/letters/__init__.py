"""What the letters of each algorithm reveal: one account per algorithm.

`letters_of(algorithm)` answers with one record (`dispatch`). Algorithms that declare
how many gradients they ask for in a round are private by composition (`composition`),
for any model, from clipping alone. Those with a theorem of their own have it here:
Fed-PLT (`splitting_letters`), local steps with noise once (`local_steps`), DP-Norm
(`on_graphs`), noise by a trusted coordinator (`client_letters`), secure sums of any of
those that may be summed (`secure_sum`).
"""

from tacita.privacy.letters import (
    client_letters,
    local_steps,
    on_graphs,
    secure_sum,
    splitting_letters,
)
from tacita.privacy.letters.dispatch import (
    Letters,
    around,
    guarantee,
    is_private,
    letters_of,
    of_gradients,
    of_noised,
)
from tacita.privacy.letters.question import Question

#: Importing these is what registers their algorithms.
REGISTERED = (splitting_letters, on_graphs, local_steps, client_letters, secure_sum)

__all__ = [
    "REGISTERED",
    "Letters",
    "Question",
    "around",
    "guarantee",
    "is_private",
    "letters_of",
    "of_gradients",
    "of_noised",
]
