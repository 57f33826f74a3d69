"""Which algorithm reaches the optimum? Errors after 200 rounds, on unequal agents.

python examples/compare_algorithms.py
"""

import tacit

problem = tacit.problem.synthetic.logistic(
    agents=20, features=5, samples=50, l2=0.5, seed=1, heterogeneous=True
)
optimum = problem.solve()

contestants = {
    "ServerGD": tacit.ServerGD(),
    "FedAvg, 5 local steps": tacit.FedAvg(local_steps=5),
    "FedAvg, 5 small local steps": tacit.FedAvg(step_size=0.02, local_steps=5),
    "FedProx, eta = 1": tacit.FedProx(eta=1.0),
    "FedProx, eta = 0.1": tacit.FedProx(eta=0.1),
}
print(f"{problem}\n\n{'algorithm':<30}{'distance to the optimum':>26}")
for name, algorithm in contestants.items():
    run = tacit.simulate(
        problem, algorithm, rounds=200, record=("error",), reference=optimum
    )
    print(f"{name:<30}{run.metrics['error'][-1]:>26.2e}")
