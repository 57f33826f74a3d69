"""Chapter 8 of the book in one go: what is a model worth trusting for?

python examples/trustworthy.py
"""

import tempfile

import numpy as np

import tacita
from tacita.problem import graph, hold_out, synthetic
from tacita.theory.sensitivity import Sensitivity, two_notions
from tacita.trust import examine, explain, fairness, oversee, snapshots

print("Robustness (8.2): two notions pull apart as coupling grows")
nodes = synthetic.linear(8, features=2, samples=10, graph=graph.ring(8), seed=1)
table = two_notions(nodes, [0.01, 0.1, 1.0, 10.0])
print(f"{'alpha':>8}{'(165) per noise':>18}{'exact gain':>14}{'(174) at worst':>18}")
for row in zip(*table.values(), strict=True):
    print(f"{row[0]:>8g}{row[1]:>18.4g}{row[2]:>14.4g}{row[3]:>18.4g}")
exact = Sensitivity(nodes, alpha=1.0)
print(f"labels, exactly {exact.label_gain:.3g}; Prop. 8.1, mended: ", end="")
print(f"{exact.mended_bound:.3g}, as printed {exact.printed_bound:.3g}\n")

print("Oversight and traceability (8.1, 8.4): node 2 takes too long steps")
train, held = hold_out(nodes, share=0.4)
steps = np.full(8, 0.05)
steps[2] = 1.2
stray = tacita.FedGD(alpha=0.05, step_size=steps)
with tempfile.TemporaryDirectory() as folder:
    seen = oversee(
        train,
        stray,
        20,
        held_out=held,
        every=2,
        slack=0.01,
        limit=1.0,
        snapshots=folder,
    )
    links = snapshots.verify(folder, head=seen.head, problem=train)
print(f"{seen.alarms[0]}; {len(links)} snapshots fit together\n")

print("Explainability (exercise 8.2): how much should the user count?")
for gap in (0.1, 1.0):
    rho = explain.best_rho(noise_var=1.0, dim=5, rows=20, gap=gap)
    error = explain.expected_error([0.0, rho], 1.0, 5, 20, gap)
    print(f"user off by {gap:g}: rho = {rho:g}, error {error[0]:.3g} -> {error[1]:.3g}")

print("\nFairness (8.5): losses of 10 agents with unlike rows")
unlike = synthetic.logistic(
    agents=10, features=5, samples=40, seed=2, heterogeneous=True, l2=0.01
)
contestants = {
    "FedAvg": tacita.FedAvg(step_size=0.5),
    "QFedAvg, q = 1": tacita.QFedAvg(q=1.0, step_size=0.5),
    "QFedAvg, q = 5": tacita.QFedAvg(q=5.0, step_size=0.5),
    "AgnosticFedAvg": tacita.AgnosticFedAvg(step_size=0.5, weight_step=0.02),
}
print(f"{'':<16}{'mean':>8}{'worst':>8}{'std':>8}{'Gini':>8}")
runs = {
    name: tacita.simulate(unlike, algorithm, rounds=1000, record=())
    for name, algorithm in contestants.items()
}
for name, run in runs.items():
    told = fairness.spread(tacita.problem.node_losses(unlike, run.params))
    shown = (told[key] for key in ("mean", "worst", "std", "gini"))
    print(f"{name:<16}" + "".join(f"{value:>8.4f}" for value in shown))

print("\nSustainability (8.6): the joules are yours to know, these are made up")
told = examine(
    unlike,
    contestants["FedAvg"],
    runs["FedAvg"],
    joules_per_operation=1e-10,
    joules_per_byte=5e-8,
    kilograms_per_kwh=0.3,
)
print({name: float(f"{value:.3g}") for name, value in told.energy.items()})
