"""Who fits its model when, and which letters it has: in step, or out of step.

A. Jung, "Federated Learning: From Theory to Practice", (129) with the operators of
Algorithm 12: at an event the active nodes fit their models to the letters that they
have, which may be old; the others keep model and letter. Letters travel as in runs of
models with parameters (`tacita.Asynchronous`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check, keys
from tacita.participation import schedule_for
from tacita.runtime import transit
from tacita.runtime.transit import Asynchronous, Transit
from tacita.trees import in_double_precision
from tacita.variants.estimator_nodes import EstimatorNetwork

_event = jax.jit(transit.event, static_argnums=3)


class Mail(NamedTuple):
    """All that one round hands to the next; models follow from it.

    Attributes:
        letters: Every node's last letter, (N, ...).
        inbox: The neighbours' mean letter that its model was fitted to; zeros for a
            model that was fitted alone.
        fitted: The round in which it was, (N,).
        turns: In how many rounds every node was active.
        under_way: Letters under way, of an asynchronous run.
    """

    letters: np.ndarray
    inbox: np.ndarray
    fitted: np.ndarray
    turns: np.ndarray
    under_way: Any = ()

    @property
    def leaves(self) -> list[np.ndarray]:
        """All arrays, for a checkpoint."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self)]

    @classmethod
    def of_leaves(cls, leaves: Sequence[np.ndarray]) -> Mail:
        """The mail with these arrays."""
        own, under_way = leaves[:4], leaves[4:]
        return cls(*own, Transit(*under_way) if under_way else ())  # pyright: ignore


class Events:
    """The events of a run over the nodes of a network.

    Args:
        network: The nodes and their graph.
        participation: As in `tacita.simulate`.
        asynchronous: Delays and lost letters; None for none.
        seed: Of the draws.
    """

    @in_double_precision
    def __init__(
        self,
        network: EstimatorNetwork,
        participation: Any,
        asynchronous: Asynchronous | None,
        seed: int,
    ) -> None:
        if asynchronous is not None and not isinstance(asynchronous, Asynchronous):
            check.refuse(
                "expected asynchronous=tacita.Asynchronous(most_delay=...), got "
                f"asynchronous={asynchronous!r}"
            )
        self._graph, self._rule = network.graph, asynchronous
        self._slots = jax.tree.map(jnp.asarray, network.graph.slots)
        self._schedule = schedule_for(participation, len(network.ids))
        self._keys = keys.from_seed(seed)

    @property
    def in_step(self) -> bool:
        """Whether everybody is active in every round, with the letters of the last."""
        return self._rule is None and self._schedule.kind == "all"

    def first(self, letters: np.ndarray) -> Mail:
        """After round 1, in which everybody fits alone and tells its neighbours."""
        ones = np.ones(len(letters), np.int64)
        mail = Mail(letters, np.zeros_like(letters), ones, ones)
        if self._rule is None:
            return mail
        return mail._replace(under_way=self._first_transit(letters))

    @in_double_precision
    def _first_transit(self, letters: np.ndarray) -> Transit:
        return transit.first(self._slots, jnp.asarray(_flat(letters)))

    @in_double_precision
    def next(self, number: int, mail: Mail) -> tuple[np.ndarray, np.ndarray, Any]:
        """Who is active in a round, what every node has received, what is under way."""
        key, flat = keys.schedule_key(self._keys, number), _flat(mail.letters)
        if self._rule is None:
            active = self._schedule.active(key, len(flat))
            total, under_way = self._graph.adjacency() @ flat, ()
        else:
            about = (self._rule, self._slots, self._schedule, "sum", key)
            active, total, under_way = _event(*about, mail.under_way, flat)
        degrees = np.asarray(self._graph.degrees)
        mean = np.asarray(total) / np.where(degrees > 0, degrees, 1.0)[:, None]
        return np.asarray(active), mean.reshape(mail.letters.shape), under_way


def after(
    number: int, mail: Mail, active: Any, inbox: Any, under_way: Any, told: Any
) -> Mail:
    """The mail after the active nodes fitted their models in round `number`."""
    wide = active.reshape(-1, *[1] * (inbox.ndim - 1))
    return Mail(
        letters=np.where(wide, told, mail.letters),
        inbox=np.where(wide, inbox, mail.inbox),
        fitted=np.where(active, number, mail.fitted),
        turns=mail.turns + active,
        under_way=under_way,
    )


def _flat(letters: np.ndarray) -> np.ndarray:
    return letters.reshape(len(letters), -1)
