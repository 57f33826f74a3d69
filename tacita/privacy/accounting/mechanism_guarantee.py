"""What one release of each mechanism of `mechanism.py` guarantees."""

from __future__ import annotations

import numpy as np

from tacita.privacy import inputs
from tacita.privacy.accounting.curve import ORDERS, GaussianCurve, RenyiCurve
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.scope import Scope


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
    >>> one.epsilon(1e-9)
    0.5
    """
    sensitivity = inputs.positive(sensitivity=sensitivity)
    loss = sensitivity / inputs.positive(scale=scale)
    order = np.asarray(ORDERS)
    # Mironov 2017, Prop. 6:  eps + log(1 + (a-1)(e^{(1-2a) eps} - 1)/(2a-1)) / (a-1)
    shrink = (order - 1) * np.expm1((1 - 2 * order) * loss) / (2 * order - 1)
    values = np.clip(loss + np.log1p(shrink) / (order - 1), 0.0, loss)
    return Guarantee(
        curve=RenyiCurve(tuple(values.tolist()), pure=loss),
        scope=Scope(observer, unit, relation),
        theorem="Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006)",
        assumptions=(believed(f"l1 sensitivity at most {sensitivity:g}"),),
    )


def randomised_response_guarantee(
    *, observer: str, epsilon: float, classes: int
) -> Guarantee:
    """The guarantee of one randomised label, against anybody who sees it."""
    from scipy.special import logsumexp

    epsilon = inputs.positive(epsilon=epsilon)
    classes = inputs.whole(2, classes=classes)
    order = np.asarray(ORDERS)[:, None]
    # Divergence between the answers to two labels: keep p = e^eps q, every other q.
    other = -np.log(np.exp(epsilon) + classes - 1)
    terms = np.concatenate([order * epsilon, (1 - order) * epsilon], axis=1)
    if classes > 2:
        rest = np.full_like(order, np.log(classes - 2))
        terms = np.concatenate([terms, rest], axis=1)
    moments = other + logsumexp(terms, axis=1)
    values = np.clip(moments / (order[:, 0] - 1), 0.0, epsilon)
    return Guarantee(
        curve=RenyiCurve(tuple(values.tolist()), pure=epsilon),
        scope=Scope(observer),
        theorem="randomised response (Warner 1965), labels only",
        assumptions=(enforced(f"each label is randomised on its own, {classes} ways"),),
    )
