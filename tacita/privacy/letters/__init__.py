"""What the letters of each algorithm reveal: small functions, one per algorithm.

An algorithm has its privacy here, not in its own file. To plug one in, register it:

* `noisy_gradients(algorithm)` and `with_noise(algorithm, noise_std)`, if its letter is
  made of gradients with Gaussian noise in each (`gradients`: ServerGD, FedAvg, DP-SGD,
  DP-ADMM): the bound then follows by composition, for any model, from clipping alone;
* `guarantee(algorithm, problem, question)`, if it has a theorem of its own (`fed_plt`;
  local steps with noise once in `local`; DP-Norm's trajectory in `graph`).
"""

from tacita.privacy.letters import gradients, local_steps, on_graphs, splitting_letters
from tacita.privacy.letters.composition import guarantee, one_round, over_rounds
from tacita.privacy.letters.question import (
    NoisyGradients,
    Question,
    clipped_oracle,
    facts_of_agents,
    hides_participation,
    mixes_letters,
    natural_relation,
    noise_in_letters,
    noise_needed,
    noisy_gradients,
    number_of,
    replays,
    state_is_public,
    with_noise,
)

#: Importing these is what registers their algorithms.
REGISTERED = (splitting_letters, gradients, on_graphs, local_steps)

__all__ = [
    "REGISTERED",
    "NoisyGradients",
    "Question",
    "clipped_oracle",
    "facts_of_agents",
    "guarantee",
    "hides_participation",
    "mixes_letters",
    "natural_relation",
    "noise_in_letters",
    "noise_needed",
    "noisy_gradients",
    "number_of",
    "one_round",
    "over_rounds",
    "replays",
    "state_is_public",
    "with_noise",
]
