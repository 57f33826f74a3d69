"""Hyper-models: one model for all nodes that makes a start of its own for each.

A. Jung, "Federated Learning: From Theory to Practice", section 6.5: "train a
hyper-model which, in turn, is used to initialize the training of local models", after
A. Shamsian, A. Navon, E. Fetaya, G. Chechik, "Personalized federated learning using
hypernetworks", ICML 2021. A node is described by a few numbers z_i, its place on a map
for instance, and the hyper-model turns them into parameters,

    minimise over Phi  sum_i f_i( H(z_i; Phi) ),

with H(z; Phi) = Phi z, or a network. That is one model for all agents, so every
algorithm with a coordinator trains it; its gradient is the paper's, (dH/dPhi)' times
the gradient of f_i. A node that was never seen is started from its description alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.encoding import DESCRIPTIONS, Origin
from tacita.problem import Problem
from tacita.problem.model.linear import Absolute, Hinge, Huber, Linear, Logistic, Model
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.population import NARROW
from tacita.trace import Run
from tacita.trees import double_precision, in_double_precision

_OneScore = Linear | Huber | Absolute | Hinge | Logistic


@dataclass(frozen=True)
class Described:
    """The local model with parameters made from the description at the end of rows.

    Attributes:
        local: The nodes' model.
        width: Numbers that describe a node, the last of them 1.
        network: Turns a description without the 1 into the local parameters, as its
            scores; None for a matrix.
    """

    local: Model
    width: int
    network: Any = None

    @property
    def name(self) -> str:
        """Shown in reports."""
        inner = getattr(self.local, "name", type(self.local).__name__.lower())
        return f"hyper-model of {inner}"

    @property
    def dim(self) -> int:
        """Parameters of the hyper-model."""
        if self.network is None:
            return self.local.dim * self.width
        return self.network.dim

    @property
    def classes(self) -> int | None:
        """The local model's."""
        return self.local.classes

    def start(self) -> np.ndarray:
        """The network's; of a matrix, the local model's start for everybody."""
        if self.network is not None:
            return self.network.start()
        matrix = np.zeros((self.local.dim, self.width))
        matrix[:, -1] = self.local.start()
        return matrix.ravel()

    def own(self, phi: Array, z: Array) -> Array:
        """H(z; Phi), a node's parameters."""
        if self.network is None:
            return phi.reshape(self.local.dim, self.width) @ z
        return self.network.scores(phi, z[None, :-1])[0]

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The local model's."""
        return self.local.losses(self.own(w, self._read(x)), x[:, : -self.width], y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """(dH/dPhi)' times the local model's gradient."""
        z = self._read(x)
        own, back = jax.vjp(lambda phi: self.own(phi, z), w)
        return back(self.local.grad(own, x[:, : -self.width], y, weights))[0]

    def predict(self, w: Array, x: Array) -> Array:
        """The local model's."""
        return self.local.predict(self.own(w, self._read(x)), x[:, : -self.width])

    def _read(self, x: Array) -> Array:
        """The description that all rows carry; padding is zero."""
        total = jnp.sum(x[:, -self.width :], axis=0)
        return total / jnp.maximum(total[-1], 1)


@dataclass(frozen=True, eq=False)
class HyperModel:
    """What `hyper_model` returns.

    Attributes:
        problem: Over the hyper-model's parameters, with the nodes as agents: train it
            with any algorithm with a coordinator.
        model: Turns descriptions into parameters.
        descriptions: Of the nodes, (N, q).
    """

    problem: Problem
    model: Described
    descriptions: np.ndarray

    def starts(self, trained: Any) -> np.ndarray:
        """Every node's start, (N, d), for `tacita.simulate(..., start=...)`.

        Args:
            trained: A run on `problem`, or the hyper-model's parameters.
        """
        return self.start(trained, self.descriptions)

    @in_double_precision
    def start(self, trained: Any, description: Any) -> np.ndarray:
        """The start of a node with this description, (d,); of several, (n, d).

        Args:
            trained: A run on `problem`, or the hyper-model's parameters.
            description: As those of the nodes; the node need not be one of them.
        """
        phi = trained.model.params if isinstance(trained, Run) else trained
        phi = np.asarray(phi, self.problem.dtype)
        check.shape((self.model.dim,), trained=phi)
        z = np.asarray(check.finite(description=description), self.problem.dtype)
        several = np.atleast_2d(z)
        check.shape((None, self.model.width - 1), description=several)
        whole = jnp.asarray(_with_one(several))
        found = jax.vmap(lambda one: self.model.own(jnp.asarray(phi), one))(whole)
        return np.asarray(found)[0] if z.ndim == 1 else np.asarray(found)


def hyper_model(
    problem: Problem, descriptions: Any, network: Any = None, *, l2: float = 0.0
) -> HyperModel:
    """A model of all nodes' models, to be trained and to start them from.

    Args:
        problem: The nodes and their rows.
        descriptions: q numbers of every node, (N, q), in the order of `problem.ids`:
            public, since starts are computed from them.
        network: None for a matrix and an offset; or a network with q inputs and as many
            scores as the local model has parameters, `problem.mlp(q, (16,), d)`.
        l2: Adds (l2/2) ||Phi||^2 to each agent's loss, in place of the problem's own
            penalty on local parameters.

    >>> import tacita
    >>> nodes = tacita.problem.synthetic.linear(agents=5, features=3, samples=8)
    >>> hyper = hyper_model(nodes, np.linspace(-1, 1, 5)[:, None])
    >>> hyper.starts(hyper.problem.solve()).shape
    (5, 3)
    """
    z = np.asarray(check.finite(descriptions=descriptions), float)
    check.shape((problem.n_agents, None), descriptions=z)
    check.not_negative(l2=l2)
    local = problem.model
    if problem.population.rows.kind is not None:
        check.refuse("a hyper-model makes models of one kind; give one model for all")
    model = Described(local, z.shape[1] + 1, network)
    if network is not None:
        _require_fit(network, z.shape[1], local.dim)
    if problem.h is not None:
        check.refuse(
            f"h={type(problem.h).__name__} is of one model, and a hyper-model makes "
            "one for every node; use a problem with h=None"
        )
    x = problem.stacked()[0]
    if x.ndim != 3:
        check.refuse(f"a hyper-model takes flat rows, got rows of shape {x.shape[2:]}")
    return HyperModel(_of_all(problem, model, x, _with_one(z), l2), model, z)


def _of_all(
    problem: Problem, model: Described, x: np.ndarray, z: np.ndarray, l2: float
) -> Problem:
    """The problem over the hyper-model's parameters."""
    real = np.arange(x.shape[1]) < problem.counts[:, None]
    local: Any = model.local
    chosen: Any = model
    narrow = False
    if model.network is None and isinstance(local, _OneScore):
        # x.(Phi z) is linear in Phi: the same loss of the products of x and z.
        rows = (x[..., None] * z[:, None, None]).reshape(*x.shape[:2], -1)
        chosen = replace(local, features=model.dim)
        narrow = model.dim <= NARROW
        rows = rows.swapaxes(1, 2) if narrow else rows
    else:
        wide = np.broadcast_to(z[:, None], (*x.shape[:2], z.shape[1]))
        rows = np.concatenate([x, wide * real[..., None]], axis=2)
    with double_precision():
        kept = problem.population.rows._replace(
            x=jnp.asarray(rows.astype(problem.dtype)), lengths=None
        )
        population = replace(
            problem.population,
            rows=kept,
            model=chosen,
            by_feature=narrow,
            regulariser=SquaredL2(weight=l2),
            test=None,
        )
    return replace(
        problem,
        population=population,
        start=model.start().astype(problem.dtype),
        name=f"hyper-model of {problem.name}",
        graph=None,
        bound=None,
        encoding=None,
        before=problem.origin.joined(Origin((DESCRIPTIONS,))),
        intercept=False,
    )


def _with_one(z: np.ndarray) -> np.ndarray:
    return np.concatenate([z, np.ones((len(z), 1), z.dtype)], axis=1)


def _require_fit(network: Any, inputs: int, outputs: int) -> None:
    scores = getattr(network, "scores", None)
    if scores is None:
        check.refuse(
            "expected network such as tacita.problem.mlp(q, (16,), d), got "
            f"{type(network).__name__}"
        )
    try:
        told = jax.eval_shape(
            scores,
            jax.ShapeDtypeStruct((network.dim,), jnp.float32),
            jax.ShapeDtypeStruct((1, inputs), jnp.float32),
        ).shape
    except (TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        check.refuse(f"network does not take {inputs} numbers of a node: {first}")
    if told != (1, outputs):
        check.refuse(
            f"expected a network with {outputs} scores, the local model's parameters, "
            f"got {told[-1]}"
        )
