"""Every node its own model: how coupling along a ring trades bias for variance.

python examples/models_on_a_graph.py
"""

import numpy as np

import tacita
from tacita.problem import graph
from tacita.theory import gtv

nodes, features = 30, 3
rng = np.random.default_rng(2)
# True models drift slowly along the ring; each node has only four noisy rows.
angle = 2 * np.pi * np.arange(nodes) / nodes
truth = np.stack([np.sin(angle), np.cos(angle), np.ones(nodes)], axis=1)
x = rng.normal(size=(nodes, 4, features))
y = np.einsum("nmd,nd->nm", x, truth) + 0.5 * rng.normal(size=(nodes, 4))
problem = tacita.from_arrays(
    x.reshape(-1, features),
    y.ravel(),
    np.repeat(np.arange(nodes), 4),
    model="linear",
    graph=graph.ring(nodes),
)

print(f"{'alpha':>8}{'error against the truth':>26}{'error of FedGD':>18}")
for alpha in (0.003, 0.03, 0.3, 3.0, 30.0):
    exact = gtv.linear_optimum(problem, alpha)
    run = tacita.simulate(problem, tacita.FedGD(alpha=alpha), rounds=3000, record=())
    error = np.sqrt(np.mean(np.sum((exact - truth) ** 2, axis=1)))
    print(f"{alpha:>8g}{error:>26.3f}{np.abs(run.agents - exact).max():>18.1e}")
