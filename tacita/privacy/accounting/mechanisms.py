"""Mechanisms: where the noise is drawn, and what one release of each guarantees.

Every key is an argument.

Noise whose key the observer knows is no noise: in a deployment each agent draws its
secret from the operating system and never sends it. Samples are floating-point; see
`docs/sharp-edges.md` for what that means.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import GaussianCurve, LossCurve
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.accounting.pure_releases import Laplace, RandomisedResponse
from tacita.privacy.scope import Scope
from tacita.random_numbers import normal


def _require_key(key: Any) -> None:
    typed = isinstance(key, jax.Array) and jnp.issubdtype(
        key.dtype, jax.dtypes.prng_key
    )
    old_style = isinstance(key, jax.Array) and key.dtype == jnp.uint32
    if not (typed and key.ndim == 0) and not (old_style and key.shape == (2,)):
        check.refuse(
            f"expected key a single JAX random key, got {type(key).__name__}; make one "
            "with jax.random.key(seed) and split it"
        )


def _floating(name: str, value: Any) -> jax.Array:
    array = jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        check.refuse(f"expected {name} a floating-point array, got dtype {array.dtype}")
    return array


def gaussian(key: jax.Array, value: Any, noise_std: Any) -> jax.Array:
    """Add independent N(0, noise_std^2) to every coordinate.

    With l2 sensitivity s the release is (s / noise_std)-GDP; `gaussian_sigma` gives
    the noise for an (epsilon, delta).
    """
    _require_key(key)
    check.positive(noise_std=noise_std)
    value = _floating("value", value)
    noise = normal(key, value.shape, value.dtype)
    return value + jnp.asarray(noise_std, value.dtype) * noise


def laplace(key: jax.Array, value: Any, scale: Any) -> jax.Array:
    """Add independent Laplace noise of scale b to every coordinate.

    With l1 sensitivity s the release is (s / b, 0)-private; see `laplace_guarantee`.
    """
    _require_key(key)
    check.positive(scale=scale)
    value = _floating("value", value)
    noise = jax.random.laplace(key, value.shape, value.dtype)
    return value + jnp.asarray(scale, value.dtype) * noise


def keep_probability(epsilon: float, classes: int) -> float:
    """e^epsilon / (e^epsilon + classes - 1): how often randomised response is true.

    >>> round(keep_probability(math.log(3), 2), 12)
    0.75
    """
    epsilon = inputs.positive(epsilon=epsilon)
    classes = inputs.whole(2, classes=classes)
    return 1.0 / (1.0 + (classes - 1) * math.exp(-epsilon))


def randomised_response(
    key: jax.Array, labels: Any, *, epsilon: float, classes: int
) -> jax.Array:
    """Randomise every label on its own: the true one, or any other one uniformly.

    Each label is (epsilon, 0)-private in its own right (local privacy, replace-one),
    whoever sees it. A data set in which features stay as they are is protected in its
    labels only.

    Args:
        key: A JAX random key.
        labels: Integers in 0 ... classes - 1, of any shape.
        epsilon: The loss per label, > 0.
        classes: How many labels there are, >= 2.
    """
    _require_key(key)
    keep = keep_probability(epsilon, classes)
    labels = jnp.asarray(labels)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        check.refuse(f"expected labels integers, got dtype {labels.dtype}")
    if not isinstance(labels, Tracer) and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= classes:
            check.refuse(
                f"expected labels in 0..{classes - 1}, got labels from {low} to {high}"
            )
    which, other = jax.random.split(key)
    stays = jax.random.bernoulli(which, keep, labels.shape)
    # Numbers in which two labels have a sum: 99 + 99 is no int8.
    wide = jnp.int32 if labels.dtype.itemsize < 4 else labels.dtype
    # A non-zero shift modulo `classes` is uniform over the other labels.
    shift = jax.random.randint(other, labels.shape, 1, classes, wide)
    moved = (labels.astype(wide) + shift) % classes
    return jnp.where(stays, labels, moved.astype(labels.dtype))


def gaussian_guarantee(
    *, observer: str, unit: str, relation: str, noise_std: float, sensitivity: float
) -> Guarantee:
    """The guarantee of one Gaussian release (l2 sensitivity under `relation`)."""
    sensitivity = inputs.positive(sensitivity=sensitivity)
    return Guarantee(
        curve=GaussianCurve(sensitivity / inputs.positive(noise_std=noise_std)),
        scope=Scope(observer, unit, relation),
        theorem="analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8)",
        assumptions=(believed(f"l2 sensitivity at most {sensitivity:g}"),),
    )


def laplace_guarantee(
    *, observer: str, unit: str, relation: str, scale: float, sensitivity: float
) -> Guarantee:
    """The guarantee of one Laplace release (l1 sensitivity under `relation`).

    >>> one = laplace_guarantee(observer="coordinator", unit="record",
    ...     relation="replace_one", scale=2.0, sensitivity=1.0)
    >>> one.epsilon(1e-12), round(one.epsilon(0.01), 3)
    (0.5, 0.48)
    """
    sensitivity = inputs.positive(sensitivity=sensitivity)
    loss = sensitivity / inputs.positive(scale=scale)
    return Guarantee(
        curve=LossCurve(((Laplace(loss), 1),)),
        scope=Scope(observer, unit, relation),
        theorem="Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006)",
        assumptions=(believed(f"l1 sensitivity at most {sensitivity:g}"),),
    )


def randomised_response_guarantee(
    *, observer: str, epsilon: float, classes: int
) -> Guarantee:
    """The guarantee of one randomised label, against anybody who sees it."""
    return Guarantee(
        curve=LossCurve(((RandomisedResponse(epsilon, classes), 1),)),
        scope=Scope(observer),
        theorem="randomised response (Warner 1965), labels only",
        assumptions=(enforced(f"each label is randomised on its own, {classes} ways"),),
    )
