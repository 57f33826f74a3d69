"""Who sees what of a run: the parts of a view that belong to an observer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.noise_map import View
from tacita.privacy.letters import letters_of
from tacita.privacy.scope import Observer
from tacita.problem.problem import Problem

#: From views with one axis before to the numbers that somebody sees of each.
Part = Callable[[View], np.ndarray]


def seen_by(
    problem: Problem, algorithm: Any, agent: int, observer: Observer
) -> list[Part]:
    """The parts of a view, with one axis before, that the observers of a kind see."""
    graph = isinstance(algorithm, GraphAlgorithm)
    if observer == Observer.FINAL_MODEL:
        return [lambda view: _flat(view.models if graph else view.shared)]
    if graph:
        if observer == Observer.NEIGHBOUR:
            near = partial(_near, problem, algorithm, agent)
            return [lambda v: _flat(v.letters[..., near(v.letters.shape[-1])])]
        return [lambda view: _flat(view.letters)]
    if observer == Observer.NEIGHBOUR:
        if letters_of(algorithm).secret_turns:
            return [lambda view: _flat(view.told)]  # letters carry no noise
        others = [j for j in range(problem.n_agents) if j != agent]
        return [partial(_own_and_told, j) for j in others]
    return [lambda view: np.concatenate([_flat(view.letters), _flat(view.told)], -1)]


def _own_and_told(agent: int, view: View) -> np.ndarray:
    """An agent of a server knows its letters, and with them its part of the mean."""
    own = _flat(view.letters[..., agent, :])
    return np.concatenate([own, _flat(view.told)], axis=-1)


def _near(problem: Problem, algorithm: Any, agent: int, size: int) -> np.ndarray:
    """Letters that all neighbours of an agent see between them, and their own.

    `size` is how many numbers the letters of one node are, on all its edges.
    """
    graph, n = problem.graph, problem.n_agents
    assert graph is not None
    linked = np.zeros((n, n), bool)
    linked[np.asarray(graph.receivers), np.asarray(graph.senders)] = True
    insiders = linked[agent]
    if algorithm.delivery == "sum":
        shown = insiders | (linked & insiders[None, :]).any(axis=1)
        return np.repeat(shown[:, None], size, axis=1)
    slots = graph.slots
    to_insider = insiders[np.asarray(slots.neighbour)] & np.asarray(slots.mask)
    shown = to_insider | (insiders[:, None] & np.asarray(slots.mask))
    return np.repeat(shown, size // shown.shape[1], axis=1)


def _flat(part: np.ndarray) -> np.ndarray:
    """With the first axis kept."""
    return np.asarray(part).reshape(len(part), -1)
