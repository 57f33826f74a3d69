"""GTVMin of nodes with kinked losses: one sparse problem of least deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tacita.problem.gtv.penalty import Combined, OwnPenalty
from tacita.problem.least_absolute import minimise, stacked_rows

if TYPE_CHECKING:
    from tacita.problem.gtv.gtvmin import GTVMin


def takes(gtv: GTVMin) -> bool:
    """Whether differences along edges are squared or absolute, all that fits here."""
    return all(
        not isinstance(part, OwnPenalty) and part.kind in ("squared", "l1")
        for part in _parts(gtv)
    )


def _parts(gtv: GTVMin) -> tuple[Any, ...]:
    if gtv.alpha == 0 or gtv.graph.n_edges == 0:
        return ()  # whatever the penalty is, there is nothing to couple
    penalty = gtv.penalty
    return penalty.parts if isinstance(penalty, Combined) else (penalty,)


def solve(gtv: GTVMin) -> np.ndarray:
    """The minimiser, (N, d); differences along edges may be squared or absolute."""
    problem = gtv.problem
    population, n, d = problem.population, problem.n_agents, problem.dim
    x, y, weights, tilts = stacked_rows(population)
    agent = np.repeat(np.arange(n), np.asarray(population.counts))
    places = (
        np.repeat(np.arange(len(x)), d),
        (agent[:, None] * d + np.arange(d)).ravel(),
    )
    rows = [sp.csr_array((x.ravel(), places), shape=(len(x), n * d))]
    targets, sizes = [y], [weights]
    size = float(np.max(np.abs(x), initial=0.0)) or 1.0
    h = float(population.regulariser.weight) * sp.eye_array(n * d)
    i, j, along = (np.asarray(part) for part in gtv.graph.pairs())
    number = np.arange(len(i))
    ends = np.concatenate([np.ones(len(i)), -np.ones(len(i))])
    shape = (len(i), n)
    across = sp.csr_array((ends, (np.tile(number, 2), np.append(i, j))), shape=shape)
    for part in _parts(gtv):
        coupled = np.flatnonzero(np.asarray(part.mask(d)))
        strength = gtv.alpha * float(part.strength)
        mask = sp.csr_array(np.eye(d)[coupled])
        if part.kind == "squared":
            laplacian = across.T @ sp.diags_array(along) @ across
            h = h + 2 * strength * sp.kron(laplacian, mask.T @ mask)
        elif strength > 0:
            # As long as rows of the data are, whatever their unit.
            rows.append(sp.csr_array(size * sp.kron(across, mask)))
            targets.append(np.zeros(len(i) * len(coupled)))
            sizes.append(np.repeat(strength * along / size, len(coupled)))
    found = minimise(
        h,
        sp.vstack(rows),
        np.concatenate(targets),
        np.concatenate(sizes),
        rows[0].T @ tilts,
    )
    return found.reshape(n, d)
