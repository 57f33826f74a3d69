"""Who was active when: replayed from a run's seed, for the curves of its report."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import keys
from tacita.participation import schedule_for
from tacita.trace.run import Run
from tacita.trees import in_double_precision

#: A curve has at most this many points.
POINTS = 60
#: Draws beyond which nothing is replayed and everybody counts as always active.
_MOST_DRAWS = 2 * 10**7


def settings(run: Run) -> dict[str, Any]:
    """How a run was run: the table [run] of what was resolved."""
    return run.config.get("resolved", run.config)["run"]


@in_double_precision
def turns_by_round(run: Run, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rounds, and in how many rounds every agent was active up to each.

    Of several seeds the first. A run too large to be replayed counts every agent as
    active in every round, which bounds what it spent.
    """
    told = settings(run)
    last = max(run.rounds, 1)
    grid = np.unique(np.linspace(1, last, min(last, POINTS)).round().astype(int))
    who = schedule_for(told.get("participation", 1.0), n)
    size = who.size if who.kind == "cohort" else n
    if who.kind == "all" or last * size > _MOST_DRAWS:
        return grid, np.repeat(grid[:, None], n, axis=1)
    seeds = told.get("seeds")
    base = keys.from_seed(seeds[0] if seeds else told["seed"])

    def active(number: jax.Array) -> jax.Array:
        key = keys.schedule_key(base, number)
        if who.kind == "cohort":
            return jnp.zeros(n, bool).at[who.cohort(key, n)].set(True)
        return who.mask(key, n)

    def count(before: jax.Array, span: tuple[int, int]) -> jax.Array:
        first, end = span
        return jax.lax.fori_loop(first + 1, end + 1, lambda r, c: c + active(r), before)

    counting = jax.jit(count)
    counted, total = [], jnp.zeros(n, jnp.int32)
    for span in zip([0, *grid[:-1].tolist()], grid.tolist(), strict=True):
        total = counting(total, span)
        counted.append(np.asarray(total))
    return grid, np.stack(counted)
