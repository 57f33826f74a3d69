"""A sparse model from clients who sleep, with a budget for each: FedSPD.

python examples/sparse_and_private.py
"""

import numpy as np

import tacita

DELTA = 1e-5
problem = tacita.problem.synthetic.logistic(
    agents=10,
    features=8,
    samples=400,
    h=tacita.problem.prox.L1(weight=0.5),
    seed=2,
    bound=8.0,  # public: longer rows would be scaled down to it
)

# Without noise FedSPD is exact, also when three of ten clients speak in a round.
exact = tacita.simulate(
    problem, tacita.FedSPD(), 800, participation=3, record_every=800
)
print("optimum ", np.round(problem.solve(), 4))
print("reached ", np.round(exact.params, 4))

# Private: the local state is rebuilt from released letters, batches stay secret. With
# gamma above half the smoothness local steps do not expand, and little noise is enough
# (`tacita.private` finds the noise for a budget; here it is given).
batches = tacita.Minibatch(size=20, sampling="permutation")
safe = tacita.FedSPD(
    rho=1.0,
    gamma=20.0,
    local_steps=4,
    noise_std=0.65,
    oracle=tacita.privacy.Clipped(norm=1.0, oracle=batches),
)
run = tacita.simulate(problem, safe, 60, record=("accuracy",))
print(f"\nprivate: accuracy {run.metrics['accuracy'][-1]:.3f}")
row = tacita.privacy.report(run, problem, safe, delta=DELTA).row("coordinator")
print(f"epsilon {row.epsilon:.3f} at {DELTA:g} against the coordinator, one record")
print(row.theorem)

# The same noise, but two clients allow much less: they fall silent, training goes on.
noisy = tacita.Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0))
own = tacita.privacy.within_budgets(
    problem,
    tacita.DPSGD(step_size=1.0, oracle=noisy),
    epsilon=[0.3, 0.3, *[2.0] * 8],
    delta=DELTA,
    observer="coordinator",
)
print(f"\nrounds in which each client may speak: {own.turns.astype(int)}")
run = tacita.simulate(problem, own, 40, record=("accuracy",))
print(f"accuracy {run.metrics['accuracy'][-1]:.3f}")
