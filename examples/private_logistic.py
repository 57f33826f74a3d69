"""Private logistic regression at twenty clinics: budget, training, report, audit.

python examples/private_logistic.py
"""

import tacita

ROUNDS, DELTA = 40, 1e-6

problem = tacita.problem.synthetic.logistic(agents=20, features=5, samples=800, l2=0.05)
plain = tacita.ServerGD(step_size=2.0)
print(f"{problem}\nwithout noise: accuracy {problem.accuracy(problem.solve()):.3f}\n")

# The noise is set for a budget against an observer. The coordinator sees every letter;
# a final model carries the noise of twenty letters, so less in each is enough.
runs = {}
for observer in ("coordinator", "final_model"):
    safe = tacita.private(
        problem, plain, epsilon=1.0, delta=DELTA, observer=observer, rounds=ROUNDS
    )
    run = tacita.simulate(problem, safe, ROUNDS, record=("accuracy",), seed=1)
    reached = run.metrics["accuracy"][-1]
    noise = safe.oracle.std
    print(f"against the {observer}: noise {noise:.4f}, accuracy {reached:.3f}")
    runs[observer] = safe, run

safe, run = runs["coordinator"]
print(f"\n{run.privacy}\n")

lasts = tacita.privacy.rounds_within(
    problem, safe, epsilon=2.0, delta=DELTA, observer="coordinator"
)
print(f"at this noise, epsilon 2 against the coordinator lasts {lasts} rounds\n")

# An audit measures what really leaks. Few rows audit as well as many, for the noise
# follows the sensitivity.
small = tacita.problem.synthetic.logistic(agents=2, features=5, samples=10, l2=0.05)
safe = tacita.private(
    small, plain, epsilon=1.0, delta=0.01, observer="coordinator", rounds=3
)
print(tacita.audit(small, safe, observer="coordinator", rounds=3, runs=10_000))
