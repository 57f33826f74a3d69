"""Exercises 7.1, 8.1 and 8.2 of A. Jung, "Federated Learning: From Theory to Practice".

python examples/graphs_and_trust.py

How often a ranking finds wrong neighbours, which perturbation moves the models on a
graph most, and what a user's own view does to an estimate.
"""

import numpy as np
from scipy.stats import hypergeom

import tacita
from tacita.problem import Graph, GTVMin, graph


def wrong_neighbours(nodes: int = 100, asked: int = 10, kept: int = 3) -> None:
    """7.1: each node asks 10 others and keeps the 3 whose means are nearest."""
    kind = np.repeat([-1.0, 1.0], nodes // 2)
    # Long vectors: the nearest are right unless too few of a node's kind were asked.
    limit = hypergeom(nodes - 1, nodes // 2 - 1, asked).cdf(kept - 1)
    some = 1 - (1 - limit) ** nodes
    print("7.1 chance of a wrong neighbour: of a node, of some node")
    random = np.random.default_rng(0)
    for length in (1, 4, 16, 64):
        found = []
        for _ in range(60):
            mean = kind + random.standard_normal(nodes) / np.sqrt(length)
            away = np.abs(mean[:, None] - mean)
            order = random.random((nodes, nodes))
            np.fill_diagonal(order, np.inf)
            others = np.argsort(order, axis=1)[:, :asked]
            near = np.argsort(np.take_along_axis(away, others, 1), axis=1)[:, :kept]
            chosen = np.take_along_axis(others, near, 1)
            found.append(np.any(kind[chosen] != kind[:, None], axis=1))
        share = np.mean(found), np.mean(np.any(found, axis=1))
        print(f"  vectors of {length:2}: {share[0]:.3f}, {share[1]:.2f}")
    print(f"  as they grow:  {limit:.3f}, {some:.2f} if nodes were independent")


def what_moves_models(nodes: int = 6, rows: int = 10) -> None:
    """8.1: labels, features or an edge of GTVMin for linear models."""
    random = np.random.default_rng(0)
    x = random.standard_normal((nodes, rows, 2))
    y = x @ [1.0, -1.0] + 0.3 * random.standard_normal((nodes, rows))
    y[nodes // 2 :] += x[nodes // 2 :, :, 0]  # two kinds of nodes

    def models(x=x, y=y, ring=None, alpha=1.0):
        ring = graph.ring(nodes) if ring is None else ring
        who = np.repeat(np.arange(nodes), rows)
        made = tacita.from_arrays(
            x.reshape(-1, 2), y.ravel(), who, "linear", graph=ring
        )
        return GTVMin(made, alpha).solve()

    def moved_rows(values, size):
        """One node's rows moved by `size` in the mean square, in one direction."""
        other = values.copy()
        other[0] += size * np.sign(x[0] if values.ndim == 3 else x[0, :, 0])
        return other

    pairs = [(i, (i + 1) % nodes) for i in range(nodes)]
    cut = Graph.from_edges(nodes, pairs[1:])
    added = Graph.from_edges(nodes, [*pairs, (0, nodes // 2)])
    print("8.1 how far all models move, by the strength of the coupling")
    print("         labels   features   edge cut  edge added")
    for alpha in (0.01, 0.1, 1.0, 10.0):
        before = models(alpha=alpha)
        after = (
            models(y=moved_rows(y, 0.5), alpha=alpha),
            models(x=moved_rows(x, 0.5), alpha=alpha),
            models(ring=cut, alpha=alpha),
            models(ring=added, alpha=alpha),
        )
        told = "".join(f"{np.linalg.norm(w - before):11.3f}" for w in after)
        print(f"  {alpha:5g}{told}")


def a_users_view(dim: int = 5, rows: int = 20, noise: float = 1.0) -> None:
    """8.2: error of a node's estimate with rows (x, u(x)) of weight rho."""
    random = np.random.default_rng(0)
    truth = np.ones(dim)
    rhos = np.array([0.0, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
    print("8.2 squared error by the weight rho of the user's view u")
    print(f"  {'||u - w||^2':12}{'best by theory':16}{'found':8}error at each rho")
    for away in (0.1, 1.0):
        u = truth + np.sqrt(away / dim)
        errors = np.zeros(len(rhos))
        for _ in range(200):
            x, seen = random.standard_normal((2, rows, dim))
            y = x @ truth + noise * random.standard_normal(rows)
            for k, rho in enumerate(rhos):
                # (178) by augmentation: rows of the user count sqrt(rho) times.
                both = np.concatenate([x, np.sqrt(rho) * seen])
                labels = np.concatenate([y, np.sqrt(rho) * seen @ u])
                w = np.linalg.lstsq(both, labels)[0]
                errors[k] += np.sum((w - truth) ** 2) / 200
        theory = noise**2 * dim / (rows * away)
        shown = " ".join(f"{e:.3f}" for e in errors)
        print(f"  {away:<12g}{theory:<16g}{rhos[errors.argmin()]:<8g}{shown}")


if __name__ == "__main__":
    wrong_neighbours()
    what_moves_models()
    a_users_view()
