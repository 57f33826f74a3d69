"""Training over columns: every exchange between parties passes through one post.

The post counts what is sent and can show it, so that "columns never leave" is a
statement that a test can check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.encoding import Encoding
from tacita.problem import features
from tacita.variants.vertical_party import ColumnParty, Loss, VerticalNewton


class VerticalLetter(NamedTuple):
    """Something that one party told another."""

    sender: str
    receiver: str
    content: str
    value: np.ndarray


@dataclass(frozen=True, eq=False)
class VerticalRun:
    """What `train_vertical` returns.

    Attributes:
        params: Every party's own parameters, by party; each party knows its own only.
        label_holder: The party that has the labels.
        model: "linear" or "logistic".
        objective: F before every Newton step and at the end.
        gradient_norm: Norm of the gradient, likewise.
        converged: Whether it came below the tolerance.
        exchanges: Products with the table: one letter per row and party each.
        sent: Numbers sent, by (sender, receiver, what they are).
        encodings: The names of every party's columns, by which those of other pandas
            tables are found; None of arrays.
    """

    params: dict[str, np.ndarray]
    label_holder: str
    model: str
    objective: np.ndarray
    gradient_norm: np.ndarray
    converged: bool
    exchanges: int
    sent: dict[tuple[str, str, str], int]
    encodings: Mapping[str, Encoding | None] = field(default_factory=dict)

    def scores(self, parties: Mapping[str, Any]) -> np.ndarray:
        """Joint scores of rows, the sum of what the parties compute from their own.

        Args:
            parties: Every party's columns of the same rows, as in training.
        """
        missing = [name for name in self.params if name not in parties]
        if missing:
            check.refuse(f"the columns of party {missing[0]!r} are missing")
        _same_rows(parties)
        shares, rows = [], None
        for name, w in self.params.items():
            told = f"columns of {name!r}"
            x = features.by_name(parties[name], self.encodings.get(name), told)
            x = np.asarray(check.finite(**{told: x}), float)
            shares.append(check.shape((rows, len(w)), **{told: x}) @ w)
            rows = len(x)
        return np.sum(shares, axis=0)


@dataclass(eq=False)
class _Session:
    """The parties and the post between them during one training."""

    parties: dict[str, ColumnParty]
    holder: str
    loss: Loss
    choices: VerticalNewton
    watch: Callable[[VerticalLetter], None] | None
    sent: dict[tuple[str, str, str], int] = field(default_factory=dict)
    exchanges: int = 0

    def send(self, sender: str, receiver: str, content: str, value: Any) -> Any:
        """One letter; what a party tells itself is no letter."""
        if sender != receiver:
            array = np.array(value, float)
            key = (sender, receiver, content)
            self.sent[key] = self.sent.get(key, 0) + array.size
            if self.watch is not None:
                self.watch(VerticalLetter(sender, receiver, content, array))
        return value

    def tell_all(self, content: str, value: Any) -> None:
        """The label holder tells every other party."""
        for name in self.parties:
            self.send(self.holder, name, content, value)

    def total(self, content: str, share: Callable[..., Any], *known: Any) -> Any:
        """Every party tells the label holder a share, who adds them up."""
        shares = {name: share(party, *known) for name, party in self.parties.items()}
        parts = [self.send(k, self.holder, content, v) for k, v in shares.items()]
        return sum(parts[1:], start=parts[0])


def train_vertical(
    parties: Mapping[str, Any],
    y: Any,
    label_holder: str,
    *,
    model: str = "logistic",
    algorithm: VerticalNewton,
    watch: Callable[[VerticalLetter], None] | None = None,
) -> VerticalRun:
    """Train one model over columns that stay with their parties.

    The result is that of training on the joined table, to the tolerance.

    Args:
        parties: Every party's columns, shape (rows, its features), rows aligned; pandas
            tables whose indices say otherwise are refused.
        y: Labels, known to `label_holder` only: values; logistic takes -1/+1, 0/1
            or booleans.
        label_holder: Name of the party that has them. Put a column of ones among its
            columns for an intercept.
        model: "linear" (squared error) or "logistic".
        algorithm: Regularisation and tolerance.
        watch: Called with every letter, for tests and audits.

    >>> rng = np.random.default_rng(0)
    >>> tables = {"bank": rng.normal(size=(50, 3)), "shop": rng.normal(size=(50, 2))}
    >>> y = tables["bank"][:, 0] - tables["shop"][:, 1]
    >>> run = train_vertical(tables, y, "bank", model="linear",
    ...                      algorithm=VerticalNewton(l2=1e-9))
    >>> run.params["bank"].round(4).max(), run.params["shop"].round(4).min()
    (np.float64(1.0), np.float64(-1.0))
    """
    session = _open(parties, y, label_holder, model, algorithm, watch)
    scores = np.zeros(len(session.loss.y))
    values, slopes, done = [], [], False
    for _ in range(algorithm.newton_steps + 1):
        squares, first = _begin(session, scores)
        norms = session.total("inner products", ColumnParty.norms)
        values.append(_objective(session, scores, norms, 0.0))
        slopes.append(float(np.sqrt(squares)))
        # A gradient that is nothing but rounding from the start does not get shorter.
        done = slopes[-1] <= algorithm.tolerance * min(1.0, slopes[0])
        done = done or first <= 1e-28 * values[0]
        if done or len(values) > algorithm.newton_steps:
            break
        rough = slopes[-1] / max(slopes[0], 1e-300)
        gained = _newton_step(session, scores, first, min(rough, slopes[-1]))
        length = _line_search(session, scores, gained, -first, values[0])
        session.tell_all("step length", length)
        scores = scores + length * gained
        for party in session.parties.values():
            party.finish_step(length)
    return VerticalRun(
        params={name: party.w for name, party in session.parties.items()},
        label_holder=label_holder,
        model=model,
        objective=np.array(values),
        gradient_norm=np.array(slopes),
        converged=done,
        exchanges=session.exchanges,
        sent=session.sent,
        encodings={name: features.encoding_of(x) for name, x in parties.items()},
    )


def _open(
    parties: Mapping[str, Any],
    y: Any,
    holder: str,
    model: str,
    algorithm: VerticalNewton,
    watch: Any,
) -> _Session:
    if not isinstance(parties, Mapping):
        check.refuse(
            "expected parties a dictionary from names to columns, such as "
            f'{{"bank": X, "shop": Z}}, got a {type(parties).__name__}'
        )
    check.one_of(("linear", "logistic"), model=model)
    check.one_of(list(parties), label_holder=holder)
    _same_rows(parties, y)
    y = np.asarray(y)
    _refuse_text(y, model)
    if model == "logistic" and y.dtype == bool:
        y = y.astype(float)  # False and True are the classes 0 and 1
    labels = np.asarray(check.finite(y=y), np.float64)
    if model == "logistic":
        labels = _signs(labels)
        if not algorithm.l2 > 0:
            check.refuse("logistic regression needs l2 > 0: separable rows have no w")
    session = _Session({}, holder, Loss(model, labels), algorithm, watch)
    for name, columns in parties.items():
        table = np.asarray(check.finite(**{f"columns of {name!r}": columns}), float)
        check.shape((len(labels), None), **{f"columns of {name!r}": table})
        if table.shape[1] == 1 and name != holder:
            check.refuse(
                f"party {name!r} has one column, so its scores would be that column "
                "times a number; give it more columns or let another party hold it"
            )
        session.parties[name] = ColumnParty(table, algorithm.l2)
    return session


def _same_rows(parties: Mapping[str, Any], y: Any = None) -> None:
    features.same_rows({**{repr(name): x for name, x in parties.items()}, "y": y})


def _refuse_text(y: np.ndarray, model: str) -> None:
    one = next(
        (one for one in y.ravel().tolist() if isinstance(one, str | bytes)), None
    )
    if one is not None:
        takes = f"give the two classes as -1/+1, 0/1 or booleans, as in y == {one!r}"
        takes = "model='linear' takes numbers" if model == "linear" else takes
        check.refuse(f"expected y as numbers, {one!r} is text; {takes}")


def _signs(y: np.ndarray) -> np.ndarray:
    seen = set(np.unique(y).tolist())
    if seen <= {-1.0, 1.0}:
        return y
    if seen <= {0.0, 1.0}:
        return 2 * y - 1
    first = ", ".join(f"{label:g}" for label in sorted(seen)[:3])
    check.refuse(
        f"logistic takes labels -1/+1 or 0/1, y has {first}; code the classes so, or "
        "take model='linear' for numbers"
    )


def _begin(session: _Session, scores: np.ndarray) -> np.ndarray:
    """Residuals go out; every party opens a Newton step. Returns <g, g> and <r, z>."""
    residual, curvature = session.loss.residual(scores), session.loss.curvature(scores)
    session.tell_all("residuals", residual)
    session.tell_all("curvatures", curvature)
    return session.total("inner products", ColumnParty.begin_step, residual, curvature)


def _newton_step(
    session: _Session, scores: np.ndarray, first: float, slope: float
) -> np.ndarray:
    """Preconditioned conjugate gradients on H step = -g; returns X step."""
    l2, curvature = session.choices.l2, session.loss.curvature(scores)
    # A linear model is done after one step, so that it must be exact; else early steps
    # may be rough and the last ones come out sharp (Eisenstat and Walker).
    linear = session.loss.kind == "linear"
    enough = first * (1e-13 if linear else min(0.1, slope)) ** 2
    gained, left = np.zeros_like(scores), first
    for _ in range(session.choices.inner_steps):
        if left <= enough:
            break
        session.exchanges += 1
        along = session.total("scores", ColumnParty.scores)
        size = session.total("inner products", ColumnParty.direction_square)
        weighted = curvature * along
        length = left / (along @ weighted + l2 * size)  # <r, z> / <p, H p>
        gained += length * along
        session.tell_all("weighted scores", weighted)
        session.tell_all("step length", length)
        new = session.total("inner products", ColumnParty.follow, weighted, length)
        session.tell_all("step length", new / left)
        for party in session.parties.values():
            party.turn(new / left)
        left = new
    return gained


def _objective(
    session: _Session, scores: np.ndarray, norms: np.ndarray, length: float
) -> float:
    """F at w + length * step, whose scores are given."""
    penalty = norms @ np.array([1.0, 2 * length, length**2])
    return session.loss.value(scores) + session.choices.l2 / 2 * float(penalty)


def _line_search(
    session: _Session,
    scores: np.ndarray,
    gained: np.ndarray,
    slope: float,
    first_value: float,
) -> float:
    """Armijo backtracking by the label holder, who has all it takes after one sum."""
    norms = session.total("inner products", ColumnParty.norms)
    start = _objective(session, scores, norms, 0.0)
    # Near the optimum, where values round off, the full step is right.
    if abs(slope) <= 1e-14 * max(first_value, abs(start)):
        return 1.0
    length = 1.0
    while length > 1e-10:
        new = _objective(session, scores + length * gained, norms, length)
        if new <= start + 1e-4 * length * slope:
            return length
        length /= 2
    return length
