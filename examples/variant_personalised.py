"""Networks that share their first layer and keep their last one.

python examples/variant_personalised.py [PICTURE]

Twelve agents look at the same kind of digits, but each has names of its own for them: a
permutation of the labels. What makes up a digit is common, what it is called is not.
"""

import sys
from pathlib import Path

import numpy as np

import tacita
from tacita import data
from tacita.problem import Penalty, graph, mlp
from tacita.theme import LIGHT, dress, new_figure, png

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/personalised.png")
agents, per_agent, hidden = 12, 30, 24
digits = data.load("digits", scale="minmax", test_share=0.4)
rng = np.random.default_rng(0)
agent = data.split_iid(len(digits), agents, seed=0)
names = np.stack([rng.permutation(10) for _ in range(agents)])
kept = np.concatenate([np.flatnonzero(agent == i)[:per_agent] for i in range(agents)])

model = mlp(digits.x.shape[1], (hidden,), 10)
first = model.layers(0)
problem = tacita.from_arrays(
    digits.x[kept],
    names[agent[kept], digits.y[kept]],
    agent[kept],
    model=model,
    graph=graph.random_regular(agents, 4, seed=0),
)
everybody = np.repeat(np.arange(agents), len(digits.test_y))
test = (
    np.tile(digits.test_x, (agents, 1)),
    names[everybody, np.tile(digits.test_y, agents)],
    everybody,
)


def accuracy(models):
    """Share of test digits that an agent names as it should, mean over agents."""
    x, y, who = test
    right = [
        np.mean(np.asarray(model.predict(models[i], x[who == i])) == y[who == i])
        for i in range(agents)
    ]
    return float(np.mean(right))


choices = {
    "every agent alone": tacita.FedGD(alpha=0.0, step_size=0.3),
    "first layer shared": tacita.FedGD(
        alpha=0.2, step_size=0.3, penalty=Penalty(kind="squared", coordinates=first)
    ),
    "all layers shared": tacita.FedGD(alpha=0.2, step_size=0.3),
}
rounds = (50, 100, 200, 400, 800)
curves = {name: [] for name in choices}
for name, algorithm in choices.items():
    start, done = None, 0
    for until in rounds:
        run = tacita.simulate(
            problem, algorithm, until - done, start=start, record=(), progress=False
        )
        start, done = run.agents, until
        curves[name].append(accuracy(run.agents))
    print(f"{name:20} test accuracy {curves[name][-1]:.3f}")

figure = new_figure(LIGHT, 6.2, 3.6)
axes = figure.subplots()
dress(axes, LIGHT)
for colour, (name, curve) in zip(LIGHT.series, curves.items(), strict=False):
    axes.plot(rounds, curve, "o-", ms=4, color=colour, label=name)
axes.set_xlabel("round")
axes.set_ylabel("test accuracy, mean over agents")
axes.set_ylim(0, 1)
axes.legend(frameon=False, labelcolor=LIGHT.ink, fontsize=9)
picture.parent.mkdir(parents=True, exist_ok=True)
picture.write_bytes(png(figure))
print("picture:", picture)
