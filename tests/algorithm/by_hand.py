"""A runtime in thirty lines, to look at what agents and coordinator remember.

It shares nothing with `tacita.runtime`: plain loops, plain means, its own keys.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita.algorithm.base import Round
from tacita.problem.oracles import AgentOracle


class Moment(NamedTuple):
    """What is remembered at the end of a round."""

    hub: Any
    told: Any
    states: list
    letters: list  # of the round's last exchange
    sent: dict  # by phase: the cohort's letters


@functools.partial(jax.jit, static_argnums=0)
def _answer(phase, algorithm, key, local, state, told):
    oracle = AgentOracle(algorithm.oracle, local)
    return algorithm.phases[phase].local(key, oracle, state, told)


def _own(algorithm, i, n):
    return jax.tree.map(
        lambda leaf: leaf[i] if np.shape(leaf) == (n,) else leaf, algorithm
    )


def _mean(letters):
    return jax.tree.map(lambda *v: sum(v) / len(v), *letters)


def play(problem, algorithm, cohorts, start=None, seed=0) -> list[Moment]:
    """Run one round for every cohort (a list of agents' numbers)."""
    with jax.enable_x64(True):
        return list(_play(problem, algorithm.resolve(problem), cohorts, start, seed))


def _play(problem, algorithm, cohorts, start, seed):
    n, people = problem.n_agents, problem.population
    start = np.broadcast_to(problem.start if start is None else start, (n, problem.dim))
    agents = [_own(algorithm, i, n) for i in range(n)]
    rows = [jax.tree.map(lambda r, i=i: r[i], people.rows) for i in range(n)]
    locals_ = [people.local(r) for r in rows]
    pairs = [a.init(jnp.asarray(w)) for a, w in zip(agents, start, strict=True)]
    states, letters = [p[0] for p in pairs], [p[1] for p in pairs]
    key, phases = jax.random.key(seed), algorithm.phases
    hub, told = phases[-1].combine(
        key,
        algorithm.init_coordinator(jnp.asarray(start.mean(0))),
        _mean(letters),
        Round(n, problem.h, 0, n),
    )
    for number, cohort in enumerate(cohorts, start=1):
        sent, known = {}, Round(n, problem.h, number, len(cohort))
        for phase, (local, combine) in enumerate(phases):
            new = {}
            for i in cohort:
                key, own = jax.random.split(key)
                states[i], new[i] = _answer(
                    phase, agents[i], own, locals_[i], states[i], told
                )
            sent[local.__name__] = new
            last = phase == len(phases) - 1
            if last:
                letters = [new.get(i, letters[i]) for i in range(n)]
            everyone = last and algorithm.averages == "all"
            mean = _mean(letters if everyone else list(new.values()))
            key, own = jax.random.split(key)
            hub, told = combine(own, hub, mean, known)
        yield Moment(hub, told, list(states), list(letters), sent)
