"""Local models: what a loss is, for a stack of rows, as functions of a flat vector.

A generalised linear model sees the data through scores `s = X w` only. Its loss and
its gradient then need two scalar functions of (s, y): the loss and its derivative (the
residual); of the second derivative (the curvature) bounds are enough. Gradients are
written by hand: on a CPU they are 2-4 times faster than differentiating the loss
automatically.

Every model is frozen and hashable, so it can be a static part of a compiled program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model import products


class Model(Protocol):
    """What the rest of Tacita asks of a model. `weights` sum to one over real rows."""

    @property
    def dim(self) -> int:
        """Length of the flat parameter vector."""
        ...

    @property
    def classes(self) -> int | None:
        """Number of classes, or None for regression."""
        ...

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The loss of every row, shape (m,)."""
        ...

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """The weighted sum over rows of the rows' gradients, shape (dim,)."""
        ...

    def predict(self, w: Array, x: Array) -> Array:
        """The label (class code, or -1/+1) or the value predicted for every row."""
        ...

    def start(self) -> np.ndarray:
        """The model's own starting point."""
        ...


def require_fit(model: Model, x: Any, y: Any) -> None:
    """Refuse a model that does not make one loss of every row, given some rows."""
    name, m = getattr(model, "name", type(model).__name__), len(x)
    misfit = f"model={name} does not fit rows of shape {x.shape[1:]}"
    w = jax.ShapeDtypeStruct((model.dim,), x.dtype)
    try:
        # Shapes only: nothing is computed or compiled.
        losses, start = jax.eval_shape(model.losses, w, x, y), model.start()
    except Exception as error:  # of whatever kind: the code is the user's
        told = str(error).strip() or type(error).__name__
        check.refuse(f"{misfit}: {told.splitlines()[0]}")
    if losses.shape != (m,):
        check.refuse(
            f"{misfit}: the losses of {m} rows have shape {losses.shape}; make one "
            "number of every row"
        )
    check.shape((model.dim,), **{f"the starting point of model={name}": start})


@dataclass(frozen=True)
class _Scalar:
    """A generalised linear model with one score per row."""

    features: int

    @property
    def dim(self) -> int:
        return self.features

    def scores(self, w: Array, x: Array) -> Array:
        return products.times(x, w)

    def loss_of(self, s: Array, y: Array) -> Array:
        raise NotImplementedError

    def residual(self, s: Array, y: Array) -> Array:
        raise NotImplementedError

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        return self.loss_of(self.scores(w, x), y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        residual = self.residual(self.scores(w, x), y)
        return products.combine(weights * residual, x)

    def start(self) -> np.ndarray:
        return np.zeros(self.dim)


@dataclass(frozen=True)
class Linear(_Scalar):
    """Linear regression, loss (x.w - y)^2, without 1/2 (Jung, (50))."""

    @property
    def classes(self) -> int | None:
        """None: a regression."""
        return None

    def loss_of(self, s: Array, y: Array) -> Array:
        """(s - y)^2."""
        return (s - y) ** 2

    def residual(self, s: Array, y: Array) -> Array:
        """2 (s - y)."""
        return 2 * (s - y)

    #: Bounds of the curvature over all scores: used for the moduli.
    curvature_bounds = (2.0, 2.0)

    def predict(self, w: Array, x: Array) -> Array:
        """The predicted value."""
        return self.scores(w, x)


@dataclass(frozen=True)
class Huber(_Scalar):
    """Linear regression that one wild label cannot carry away (Jung, 10.4).

    With r = x.w - y the loss is r^2 up to |r| = delta and 2 delta |r| - delta^2 beyond:
    `Linear` for a large delta, 2 delta times the absolute loss for a small one.

    Attributes:
        features: Numbers in a row.
        delta: Residuals beyond it count by their length, not by its square.
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        delta = check.positive(delta=check.given(delta=self.delta))
        if np.ndim(delta):
            check.refuse(f"expected delta one number, got {delta!r}")

    @property
    def classes(self) -> int | None:
        """None: a regression."""
        return None

    def loss_of(self, s: Array, y: Array) -> Array:
        """r^2, or 2 delta |r| - delta^2."""
        r = jnp.abs(s - y)
        near = jnp.minimum(r, self.delta)
        return near * (2 * r - near)

    def residual(self, s: Array, y: Array) -> Array:
        """2 r, no longer than 2 delta."""
        return 2 * jnp.clip(s - y, -self.delta, self.delta)

    #: Flat beyond delta.
    curvature_bounds = (0.0, 2.0)

    def predict(self, w: Array, x: Array) -> Array:
        """The predicted value."""
        return self.scores(w, x)


@dataclass(frozen=True)
class Absolute(_Scalar):
    """Linear regression by the absolute loss |x.w - y| (Jung, 10.4).

    With one feature the minimiser is a weighted median: labels beyond it count by their
    side only. It has kinks and no curvature, so steps by theory, and Newton's method,
    are refused; `solve()`, `FedRelax` and `GTVMin.solve()` find exact answers.
    """

    @property
    def classes(self) -> int | None:
        """None: a regression."""
        return None

    def loss_of(self, s: Array, y: Array) -> Array:
        """|s - y|."""
        return jnp.abs(s - y)

    def residual(self, s: Array, y: Array) -> Array:
        """The sign of s - y; at a kink 0."""
        return jnp.sign(s - y)

    #: The loss is absolute |s - y| + tilt y s, and a constant.
    absolute, tilt = 1.0, 0.0

    def predict(self, w: Array, x: Array) -> Array:
        """The predicted value."""
        return self.scores(w, x)


@dataclass(frozen=True)
class Hinge(_Scalar):
    """A support vector machine: labels -1/+1, loss max(0, 1 - y x.w) (Jung, ch. 2).

    It has a kink and no curvature, as the absolute loss: with y of length 1 it is
    |x.w - y|/2 + (1 - y x.w)/2, by which the same solvers find its exact answers.
    """

    @property
    def classes(self) -> int | None:
        """Two."""
        return 2

    def loss_of(self, s: Array, y: Array) -> Array:
        """max(0, 1 - y s)."""
        return jnp.maximum(0, 1 - y * s)

    def residual(self, s: Array, y: Array) -> Array:
        """-y inside the margin, y s < 1; 0 beyond it; half of that at the kink."""
        return -y * (1 + jnp.sign(1 - y * s)) / 2

    #: The loss is absolute |s - y| + tilt y s, and a constant.
    absolute, tilt = 0.5, -0.5

    def predict(self, w: Array, x: Array) -> Array:
        """-1 or +1."""
        return signs(self.scores(w, x))


@dataclass(frozen=True)
class Logistic(_Scalar):
    """Logistic regression with labels -1/+1, loss log(1 + exp(-y x.w))."""

    @property
    def classes(self) -> int | None:
        """Two."""
        return 2

    def loss_of(self, s: Array, y: Array) -> Array:
        """log(1 + exp(-y s)), without overflow."""
        return jax.nn.softplus(-y * s)

    def residual(self, s: Array, y: Array) -> Array:
        """-y / (1 + exp(y s))."""
        return -y * jax.nn.sigmoid(-y * s)

    #: The curvature is sigmoid(s) sigmoid(-s).
    curvature_bounds = (0.0, 0.25)

    def predict(self, w: Array, x: Array) -> Array:
        """-1 or +1."""
        return signs(self.scores(w, x))


@dataclass(frozen=True)
class Softmax:
    """Softmax regression without bias, mean cross-entropy; y are class codes.

    The weights are stored class by class, as a flattened (classes, features) matrix:
    measured on a CPU, that layout is 1.5-2 times faster than its transpose.
    """

    features: int
    n_classes: int

    @property
    def dim(self) -> int:
        """One weight per class and feature."""
        return self.features * self.n_classes

    @property
    def classes(self) -> int | None:
        """Number of classes."""
        return self.n_classes

    def scores(self, w: Array, x: Array) -> Array:
        """One score per row and class."""
        return x @ w.reshape(self.n_classes, self.features).T

    def loss_of(self, s: Array, y: Array) -> Array:
        """Cross-entropy: logsumexp(s) - s_y."""
        return jax.nn.logsumexp(s, axis=-1) - pick(s, y)

    def residual(self, s: Array, y: Array) -> Array:
        """softmax(s) - onehot(y)."""
        return jax.nn.softmax(s) - jax.nn.one_hot(y, self.n_classes, dtype=s.dtype)

    #: softmax has a Hessian diag(p) - p p^T, whose eigenvalues lie in [0, 1/2].
    curvature_bounds = (0.0, 0.5)

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """Cross-entropy of every row."""
        return self.loss_of(self.scores(w, x), y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """residual^T X, flattened."""
        residual = self.residual(self.scores(w, x), y)
        return ((jnp.reshape(weights, (-1, 1)) * residual).T @ x).reshape(-1)

    def predict(self, w: Array, x: Array) -> Array:
        """The class with the largest score."""
        return jnp.argmax(self.scores(w, x), axis=-1)

    def start(self) -> np.ndarray:
        """Zero."""
        return np.zeros(self.dim)


GeneralisedLinear = Linear | Huber | Absolute | Hinge | Logistic | Softmax


#: Models of two classes with labels -1/+1 and one score per row.
Signed = Logistic | Hinge
#: Models whose losses have kinks, of which `least_absolute` finds exact answers.
Kinked = Absolute | Hinge


def signs(scores: Array) -> Array:
    """The label -1 or +1 that each score stands for."""
    return jnp.where(scores > 0, 1, -1).astype(scores.dtype)


def pick(scores: Array, y: Array) -> Array:
    """scores[i, y[i]] for every row i."""
    codes = y.astype(jnp.int32)
    return jnp.take_along_axis(scores, codes[..., None], axis=-1)[..., 0]
