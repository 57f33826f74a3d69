"""Is the noise what it is said to be: Gaussian, fresh, alike, blind to the rows?

An audit knows the keys of its runs, so it can compute each letter again without noise;
what is left is the noise. Four things are enforced by the program and assumed by every
Gaussian theorem, and each is tested where a letter carries one draw of noise:

- its shape is normal (Kolmogorov-Smirnov, against the normal of its own variance);
- all numbers of a letter have as much of it (Bartlett's test of equal variances);
- rounds have noise of their own (correlations between rounds);
- its size does not depend on the rows (its variance on D and on D').

All tests share one error: each gets its part of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

#: Numbers of a letter, and rounds, that are looked at: the first ones.
_NUMBERS, _ROUNDS = 16, 6
#: What rounding leaves of a difference, relative to the largest.
_ROUNDED = 1e-9


class Fault(NamedTuple):
    """Something that an honest run does not show, and how likely it is by chance."""

    words: str
    chance: float


def noise_faults(
    here: np.ndarray, there: np.ndarray, error: float
) -> tuple[Fault, ...]:
    """What is wrong with noise, (runs, rounds, numbers), on D and on D'.

    All reports together are false with probability at most `error`.
    """
    both = [side[:, :_ROUNDS, :_NUMBERS] for side in (here, there)]
    found = list(_tests(*both))
    return tuple(one for one in found if one.chance < error / len(found))


def _tests(here: np.ndarray, there: np.ndarray) -> Iterator[Fault]:
    noise = np.concatenate([here, there])
    _, rounds, numbers = noise.shape
    size = noise.std(axis=0)
    largest = max(size.max(initial=0.0), 1e-300)
    for t, k in itertools.product(range(rounds), range(numbers)):
        where = f"number {k + 1} of the letters of round {t + 1}"
        if size[t, k] <= _ROUNDED * largest:
            yield Fault(f"no noise in {where}", 0.0)
            continue
        yield Fault(f"noise that is not normal in {where}", _not_normal(noise[:, t, k]))
        two = here[:, t, k], there[:, t, k]
        words = f"noise that depends on the row in {where}"
        yield Fault(words, _unequal(*two))
    for t in range(rounds):
        words = f"more noise in some numbers than in others, in round {t + 1}"
        yield Fault(words, _unequal(*noise[:, t].T))
    for s, t in itertools.combinations(range(rounds), 2):
        words = f"noise of round {s + 1} used again in round {t + 1}"
        yield Fault(words, _related(noise[:, s], noise[:, t]))


def _not_normal(values: np.ndarray) -> float:
    # Scaled by its own deviation, the test is stricter on itself: never too alarmed.
    return float(stats.kstest(values / values.std(), "norm").pvalue)


def _unequal(*groups: np.ndarray) -> float:
    """Bartlett's test, for normal numbers of mean 0."""
    kept = [group for group in groups if group.std() > 0]
    if len(kept) < len(groups):
        return 0.0
    return float(stats.bartlett(*kept).pvalue) if len(kept) > 1 else 1.0


def _related(one: np.ndarray, other: np.ndarray) -> float:
    """The least likely of the correlations, number by number; Bonferroni."""
    moving = (one.std(axis=0) > 0) & (other.std(axis=0) > 0)
    chances = [
        float(np.asarray(stats.pearsonr(a, b))[1])
        for a, b in zip(one.T[moving], other.T[moving], strict=True)
    ]
    return min(chances, default=1.0) * max(len(chances), 1)
