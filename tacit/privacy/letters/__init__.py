"""What the letters of each algorithm reveal: small functions, one per algorithm.

An algorithm has its privacy here, not in its own file. To plug one in, register it:

* `noisy_gradients(algorithm)` and `with_noise(algorithm, noise_std)`, if its letter is
  made of gradients with Gaussian noise in each (`gradients`: ServerGD, FedAvg, DP-SGD,
  DP-ADMM): the bound then follows by composition, for any model, from clipping alone;
* `guarantee(algorithm, problem, question)`, if it has a theorem of its own (`fed_plt`;
  local steps with noise once in `local`; DP-Norm's trajectory in `graph`).
"""

from tacit.privacy.letters import fed_plt, gradients, graph, local
from tacit.privacy.letters.composition import guarantee, one_round, over_rounds
from tacit.privacy.letters.hooks import (
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
REGISTERED = (fed_plt, gradients, graph, local)

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
