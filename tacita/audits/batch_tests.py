"""Are batches drawn as they are accounted?

Amplification by sampling rests on the law of the batches: every row is as likely as any
other, Poisson batches vary in size, the others do not. The oracle is asked for batches
many times over, and its draws are held against that law.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from tacita.audits.noise_tests import Fault
from tacita.privacy.clipped import clipping_of
from tacita.problem.oracles import Minibatch
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision, tree_rows

_DRAWS = 4000


@in_double_precision
def batch_faults(
    problem: Problem, algorithm: Any, agent: int, key: jax.Array, error: float
) -> tuple[Fault, ...]:
    """What is wrong with an agent's batches; false with probability at most `error`."""
    clipped = clipping_of(algorithm.oracle)
    batches = None if clipped is None else clipped.oracle
    if not isinstance(batches, Minibatch):
        return ()
    used = _times_used(problem, batches, agent, key)
    found = list(_tests(used, batches))
    return tuple(one for one in found if one.chance < error / len(found))


def _times_used(
    problem: Problem, batches: Minibatch, agent: int, key: jax.Array
) -> np.ndarray:
    """How often every row is in each of many first batches, (draws, rows)."""
    population = problem.population
    local = population.local(tree_rows(population.rows, agent))
    rows, keys = local.padded_rows, jax.random.split(key, _DRAWS)
    drawn = np.asarray(jax.vmap(lambda k: batches.draws(local, k, 1)[0])(keys))
    if batches.sampling == "poisson":
        used = drawn > 0
    else:
        used = np.asarray(jax.vmap(lambda b: jnp.bincount(b, length=rows))(drawn))
    return used[:, : int(problem.counts[agent])]


def _tests(used: np.ndarray, batches: Minibatch) -> Iterator[Fault]:
    draws, rows = used.shape
    size, rate = used.sum(axis=1), batches.size / rows
    repeats = batches.sampling == "with_replacement"
    law = stats.binom(*((draws * batches.size, 1 / rows) if repeats else (draws, rate)))
    for row, hits in enumerate(used.sum(axis=0)):
        chance = 2 * min(law.cdf(hits), law.sf(hits - 1))
        yield Fault(f"row {row + 1} is drawn too often or too seldom", float(chance))
    if batches.sampling != "poisson":
        right = bool(np.all(size == batches.size))
        yield Fault("batches of different sizes", 1.0 if right else 0.0)
        return
    words = "Poisson batches whose sizes do not vary as they should"
    yield Fault(words, _binomial(size, rows, rate))


def _binomial(sizes: np.ndarray, rows: int, rate: float) -> float:
    """A chi-squared test of sizes against the binomial law, rare ones put together."""
    expected = stats.binom.pmf(np.arange(rows + 1), rows, rate) * len(sizes)
    counted = np.bincount(sizes.astype(int), minlength=rows + 1)
    common = expected >= 5
    pairs = [np.append(a[common], a[~common].sum()) for a in (counted, expected)]
    if pairs[1][-1] < 1:  # too rare to count by themselves
        pairs = [np.append(a[:-2], a[-2:].sum()) for a in pairs]
    gap = float(np.sum((pairs[0] - pairs[1]) ** 2 / pairs[1]))
    return float(stats.chi2(max(len(pairs[0]) - 1, 1)).sf(gap))
