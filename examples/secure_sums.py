"""Twenty clinics whose letters nobody reads: local noise beside a secure sum.

python examples/secure_sums.py
"""

import tacita

ROUNDS = 60
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "observer": "coordinator", "rounds": ROUNDS}

problem = tacita.problem.synthetic.logistic(
    agents=20, features=20, samples=100, l2=0.05
)
plain = tacita.DPSGD(step_size=0.3, momentum=0.9)
print(f"{problem}\nwithout noise: accuracy {problem.accuracy(problem.solve()):.3f}\n")

# With local noise every clinic hides its own records alone. In a secure sum all noises
# together hide them; here a fifth of the clinics may be missing, and two may collude.
rules = {
    "local noise": None,
    "secure sum": tacita.SecureSum(),
    "of at least 16, two collude": tacita.SecureSum(least=16, colluding=2),
}
for name, rule in rules.items():
    safe = tacita.private(problem, plain, **BUDGET, aggregation=rule)
    run = tacita.simulate(problem, safe, ROUNDS, record=("accuracy",), seed=1)
    print(f"{name}: accuracy {run.metrics['accuracy'][-1]:.3f}")
print(f"\n{run.privacy}\n")

# The audit plays a coordinator who knows all letters but one, and two clinics' noise.
small = tacita.problem.synthetic.logistic(agents=5, features=3, samples=10)
safe = tacita.private(
    small,
    tacita.ServerGD(step_size=0.5),
    epsilon=1.0,
    delta=0.01,
    observer="coordinator",
    rounds=3,
    aggregation=tacita.SecureSum(least=4, colluding=1),
)
print(tacita.audit(small, safe, observer="colluders", rounds=3, runs=3000))
