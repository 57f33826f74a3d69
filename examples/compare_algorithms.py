"""Which algorithm reaches the optimum? Errors after 200 rounds, on unequal agents.

python examples/compare_algorithms.py
"""

import tacita

problem = tacita.problem.synthetic.logistic(
    agents=20, features=5, samples=50, l2=0.5, seed=1, heterogeneous=True
)
optimum = problem.solve()

contestants = {
    "ServerGD": tacita.ServerGD(),
    "FedAvg, 5 local steps": tacita.FedAvg(local_steps=5),
    "FedAvg, 5 small local steps": tacita.FedAvg(step_size=0.02, local_steps=5),
    "FedProx, eta = 1": tacita.FedProx(eta=1.0),
    "FedProx, eta = 0.1": tacita.FedProx(eta=0.1),
}
print(f"{problem}\n\n{'algorithm':<30}{'distance to the optimum':>26}")
for name, algorithm in contestants.items():
    run = tacita.simulate(
        problem, algorithm, rounds=200, record=("error",), reference=optimum
    )
    print(f"{name:<30}{run.metrics['error'][-1]:>26.2e}")
