"""What a secure sum costs: a simulated round against one with local noise.

    python -m bench.secure

DPSGD with clipped gradients on logistic regression, by agents and numbers in a letter.
Local noise draws a Gaussian for every number of every letter; a secure sum rounds the
letters to integers and draws the noise of their sum once. Medians after compilation, in
turns in one process; ratios are printed. The target is 1.1 at most.
"""

from __future__ import annotations

import tacita
from bench.simulator import tacita_rounds
from bench.timing import in_turns, table

ROUNDS = 50


def compare(agents: int, features: int, samples: int) -> str:
    problem = tacita.problem.synthetic.logistic(
        agents=agents, features=features, samples=samples, l2=0.1
    )
    budget = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "observer": "coordinator",
        "rounds": ROUNDS,
    }
    algorithm = tacita.DPSGD(step_size=0.1, momentum=0.9)
    clipped = tacita.DPSGD(step_size=0.1, momentum=0.9, oracle=tacita.Clipped(norm=1.0))
    contestants = {
        "clipped, no noise": clipped,
        "local noise": tacita.private(problem, algorithm, **budget),
        "secure sum": tacita.private(
            problem, algorithm, **budget, aggregation="secure"
        ),
    }
    work = {
        name: tacita_rounds(problem, each, 1.0, ROUNDS)
        for name, each in contestants.items()
    }
    title = f"{agents} agents x {samples} samples, {features} numbers in a letter"
    return table(title, in_turns(work, repeats=15, per_call=ROUNDS), "local noise")


def main() -> None:
    for agents, features, samples in (
        (3, 10, 1000),
        (20, 10, 1000),
        (100, 10, 250),
        (3, 1000, 100),
        (20, 1000, 100),
        (100, 1000, 50),
    ):
        print(compare(agents, features, samples))


if __name__ == "__main__":
    main()
