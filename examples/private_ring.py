"""Private learning without a server: DP-Norm on a ring.

python examples/private_ring.py
"""

import tacita
from tacita.problem import graph, synthetic

EPSILON, DELTA, ROUNDS = 2.0, 1e-4, 40


def learn() -> None:
    """Six nodes that differ, with a budget against their neighbours."""
    problem = synthetic.logistic(
        agents=6, features=4, samples=300, l2=0.05, graph=graph.ring(6), bound=4.0
    )
    algorithm = tacita.DPNorm(step_size=0.3, local_steps=2, alpha=0.1)
    safe = tacita.private(
        problem,
        algorithm,
        epsilon=EPSILON,
        delta=DELTA,
        observer="neighbour",
        rounds=ROUNDS,
    )
    run = tacita.simulate(problem, safe, ROUNDS, record=("accuracy",))
    best = problem.accuracy(problem.solve())
    print(f"accuracy {run.metrics['accuracy'][-1]:.3f}, without privacy {best:.3f}\n")
    print(run.privacy)


if __name__ == "__main__":
    learn()
