"""Late and lost letters slow asynchronous nodes down, and change nothing else.

python examples/late_letters.py
"""

import jax.numpy as jnp
import numpy as np

import tacita
from tacita.problem import graph, synthetic
from tacita.theory import gtv

alpha, events = 0.05, 300
nodes = synthetic.linear(
    agents=20,
    features=3,
    samples=20,
    noise=0.5,
    spread=1.0,
    graph=graph.erdos_renyi(20, p=0.25, seed=3),
)
exact = tacita.GTVMin(nodes, alpha).solve()
first = np.linalg.norm(exact, axis=1).max()
kappa = gtv.relax_contraction(nodes, alpha)


def worst(shared, agents):
    """The largest distance of a node's model from its exact one."""
    return jnp.max(jnp.linalg.norm(agents - exact, axis=1))


print(f"one step in five, contraction {kappa:.3f}; largest error after so many events")
print(f"{'delays up to':>14}{'lost':>6}{50:>12}{100:>12}{300:>12}{'bound at 300':>15}")
for most, lost in ((0, 0.0), (5, 0.0), (5, 0.5), (20, 0.0)):
    run = tacita.simulate(
        nodes,
        tacita.FedRelax(alpha=alpha),
        events,
        participation=0.2,
        asynchronous=tacita.Asynchronous(most_delay=most, lost=lost),
        record=(worst,),
    )
    errors = run.metrics["worst"]
    bound = first * gtv.asynchronous_bound(kappa, np.arange(1, events + 1), most)
    assert np.all(errors <= bound + 1e-13)
    shown = "".join(f"{errors[t - 1]:>12.1e}" for t in (50, 100, 300))
    print(f"{most:>14}{lost:>6}{shown}{bound[-1]:>15.1e}")
