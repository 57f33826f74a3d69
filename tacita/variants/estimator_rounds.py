"""Rounds over nodes with scikit-learn models of any kind.

These models are no arrays, so that no compiled loop runs them: a round fits every
active node's model, in parallel with joblib, and passes predictions along the edges.
Letters, and which of them a model was fitted to, are all that the next round needs, so
that a checkpoint holds letters and no models.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.runtime.progress import Bar, wanted
from tacita.runtime.transit import Asynchronous
from tacita.variants import compared
from tacita.variants.compared import EdgeSets
from tacita.variants.estimator_diary import MEASURES, Diary, Measured
from tacita.variants.estimator_events import Events, Mail, after
from tacita.variants.estimator_nodes import EstimatorNetwork, EstimatorNode
from tacita.variants.model_agnostic import (
    Heard,
    ModelAgnosticFedRelax,
    predictions,
)


@dataclass(frozen=True, eq=False)
class EstimatorRun:
    """What `simulate_estimators` returns.

    Attributes:
        network: What was solved.
        algorithm: How.
        estimators: Every node's fitted model, in the order of `network.ids`. Those of
            classes know them as numbers, the places in `network.classes`; `predict`
            tells labels.
        metrics: By round: "train_error", "discrepancy" (the sum over edges of A_ij
            d_ij, (64)), "change" (of letters, at most), and "validation_error", means
            over nodes. Errors are mean squares, or shares of wrong classes.
        communication: Letters and their bytes; a letter is a node's predictions on the
            shared points, to one neighbour.
    """

    network: EstimatorNetwork
    algorithm: ModelAgnosticFedRelax
    estimators: tuple[Any, ...]
    metrics: dict[str, np.ndarray]
    communication: dict[str, int]

    @property
    def rounds(self) -> int:
        """Number of rounds done."""
        return len(self.metrics["round"])

    def predict(
        self,
        X: Any,  # noqa: N803
        agent: Any,
    ) -> np.ndarray:
        """A number, or a label, for every row, by the model of the node it is of."""
        network = self.network
        held = network.points(X, agent)
        total = sum(len(rows) for rows, _ in held)
        found = np.empty(total, float if network.classes is None else int)
        number = None if network.classes is None else len(network.classes)
        for model, (rows, x) in zip(self.estimators, held, strict=True):
            if len(rows):
                told = predictions(model, x, number)
                found[rows] = told if number is None else told.argmax(axis=1)
        return found if network.classes is None else network.classes[found]

    def errors(
        self,
        X: Any,  # noqa: N803
        y: Any,
        agent: Any,
    ) -> np.ndarray:
        """Every node's error on rows of its own; NaN for a node without rows here."""
        rows = self.network.rows(X, y, agent)
        return _errors(self.estimators, rows, self.network.classes)


def simulate_estimators(
    network: EstimatorNetwork,
    algorithm: ModelAgnosticFedRelax,
    rounds: int,
    *,
    participation: Any = 1.0,
    asynchronous: Asynchronous | None = None,
    validation: tuple[Any, Any, Any] | None = None,
    tolerance: float = 0.0,
    n_jobs: int = 1,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> EstimatorRun:
    """Run model-agnostic FedRelax.

    In round 1 every node fits its own rows only, as there are no letters yet, and tells
    its neighbours; round 1 is what training alone gives. From then on silent nodes keep
    model and letter.

    Args:
        network: Nodes, their rows and models, the graph and the shared points.
        algorithm: Strength of the coupling, damping.
        rounds: How many at most.
        participation: Who is active in a round after the first, as in
            `tacita.simulate`.
        asynchronous: Delays and lost letters, (129) of the book; see
            `tacita.Asynchronous`. A round is then an event.
        validation: Features, targets and node ids of rows to measure errors on.
        tolerance: Stop when no prediction on a shared point changed by more; in step
            only.
        n_jobs: How many processes fit models side by side (joblib); -1 for all cores.
            The result does not depend on it.
        seed: Of the draws for estimators that take no weights, and of those whose
            `random_state` was left open.
        progress: Show a progress bar; None shows it on a terminal.
        checkpoint: Folder in which a checkpoint is kept before every round.
        resume: Go on from the checkpoint there, if there is one, to `rounds` in all;
            the round after the checkpoint is done again. The result is that of a run
            never interrupted.
    """
    from joblib import Parallel  # comes with scikit-learn

    if not isinstance(algorithm, ModelAgnosticFedRelax):
        check.refuse(
            "models of any kind are coupled by "
            f"tacita.ModelAgnosticFedRelax(alpha=...), got algorithm={algorithm!r}"
        )
    check.count(rounds=rounds)
    check.not_negative(tolerance=tolerance)
    classes = None if network.classes is None else len(network.classes)
    loss = algorithm.loss_for(classes)
    sets = network.sets_for(loss)
    seed = check.seed(seed=seed)
    held_out = None if validation is None else network.rows(*validation)
    if held_out is not None and not any(len(y) for _, y in held_out):
        check.refuse("validation has no rows; give some, or leave it out")
    events = Events(network, participation, asynchronous, seed)
    if tolerance > 0 and not events.in_step:
        check.refuse(
            "tolerance stops a run in which nothing changes, which tells nothing while "
            "nodes are silent or letters late; leave tolerance out"
        )
    if resume and compared.reweights(loss) and not events.in_step:
        check.refuse(
            f"a run with loss={loss!r} that is out of step does not resume: models of "
            "silent nodes depend on letters that are gone; leave resume out"
        )
    chosen = (participation, asynchronous)
    diary = Diary.of(checkpoint, resume, network, algorithm, held_out, seed, chosen)
    mail, history = diary.read(rounds) if resume else (None, [])
    shown, fitted = wanted(progress), None
    with Parallel(n_jobs=n_jobs) as parallel, Bar(shown, rounds, len(history)) as bar:
        nodes = _Nodes(network, algorithm, seed, parallel, loss, sets)
        if mail is not None:
            # Models are not kept: those of silent nodes are made again.
            fitted = [None] * nodes.number if events.in_step else nodes.again(mail)
        for number in range(len(history) + 1, rounds + 1):
            diary.write(mail, history, rounds)
            before = None if mail is None else mail.letters
            fitted, mail = _round(nodes, events, number, fitted, mail)
            history.append(_measure(nodes, fitted, mail.letters, before, held_out))
            bar.update(number, None)
            if events.in_step and history[-1]["change"] <= tolerance:
                break
    metrics = {k: np.array([h[k] for h in history]) for k in history[0]}
    metrics["round"] = np.arange(1, len(history) + 1)
    assert mail is not None and fitted is not None
    sent = int(mail.turns @ np.asarray(network.graph.neighbour_counts))
    told = dict(letters=sent, bytes=_bytes(mail, nodes, sent))
    return EstimatorRun(network, algorithm, tuple(fitted), metrics, told)


class _Nodes(NamedTuple):
    """All nodes, and what fits their models side by side."""

    network: EstimatorNetwork
    algorithm: ModelAgnosticFedRelax
    seed: int
    parallel: Any
    loss: Any
    sets: EdgeSets | None

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.network.ids)

    def fit(
        self, who: Iterable[int], inbox: Any, last: Any, rounds: Any
    ) -> list[tuple[Any, np.ndarray]]:
        """Models and letters of some nodes, each of its own round; the first is alone.

        Args:
            who: Their numbers.
            inbox: Everybody's mean letter of its neighbours.
            last: Everybody's last letter; None before there are any.
            rounds: Everybody's round.
        """
        from joblib import delayed

        return self.parallel(
            delayed(_one_node)(
                self.algorithm,
                self._place(i),
                None if rounds[i] == 1 else inbox[i],
                None if last is None else last[i],
                self.seed,
                int(rounds[i]),
            )
            for i in who
        )

    def _place(self, i: int) -> _Place:
        """All that node i needs to know of the network: no other node's rows."""
        network, sets = self.network, self.sets
        classes = None if network.classes is None else len(network.classes)
        degree = float(network.graph.degrees[i])
        place = _Place(i, network.ids[i], network.nodes[i], classes, self.loss, degree)
        if sets is None:
            share = np.full(len(network.shared), degree / len(network.shared))
            return place._replace(points=network.shared, share=share)
        mine = sets.of_node(i)
        return place._replace(
            points=sets.points[mine],
            share=sets.share[mine],
            own=mine,
            everybodys=len(sets.points),
            weight=sets.weight[mine],
        )

    def again(self, mail: Mail) -> list[Any]:
        """The models that belong to a mail."""
        done = self.fit(range(self.number), mail.inbox, None, mail.fitted)
        return [model for model, _ in done]


def _round(
    nodes: _Nodes, events: Events, number: int, fitted: Any, mail: Mail | None
) -> tuple[list[Any], Mail]:
    """All nodes' models and the mail after one round."""
    rounds = np.full(nodes.number, number)
    if mail is None:
        done = nodes.fit(range(nodes.number), None, None, rounds)
        letters = np.stack([letter for _, letter in done])
        return [model for model, _ in done], events.first(letters)
    active, inbox, under_way = events.next(number, mail)
    who, fitted, told = np.flatnonzero(active).tolist(), [*fitted], mail.letters.copy()
    done = nodes.fit(who, inbox, mail.letters, rounds)
    for i, (model, letter) in zip(who, done, strict=True):
        fitted[i], told[i] = model, letter
    return fitted, after(number, mail, active, inbox, under_way, told)


class _Place(NamedTuple):
    """What node i knows: its own rows, the points that it shares, and their weights.

    Of sets by edge, `own` are the places of its points among all, in letters.
    """

    i: int
    name: Any
    node: EstimatorNode
    classes: int | None
    loss: Any
    degree: float
    points: np.ndarray = np.zeros(0)
    share: np.ndarray = np.zeros(0)
    own: np.ndarray | None = None
    everybodys: int = 0
    weight: np.ndarray = np.zeros(0)

    def heard(self, inbox: np.ndarray | None, last: np.ndarray | None) -> Heard | None:
        """What the neighbours' letters say, weighed as the loss asks for."""
        if inbox is None:
            return None
        if self.own is None:
            return Heard(self.points, inbox, self.share)
        # The sum over neighbours, over d_i, is A_ij/d_i times the other end's letter.
        wide = (-1, *[1] * (inbox.ndim - 1))
        views = inbox[self.own] * (self.degree / self.weight).reshape(wide)
        if not compared.reweights(self.loss):
            return Heard(self.points, views, self.share)
        assert last is not None
        mine = last[self.own]
        scale = float(max(np.max(np.abs(mine)), np.max(np.abs(views))))
        touching = compared.touching(self.loss, mine - views, scale)
        return Heard(self.points, views, self.share * touching)

    def whole(self, said: np.ndarray) -> np.ndarray:
        """A letter with a place for every point of every edge."""
        if self.own is None:
            return said
        letter = np.zeros((self.everybodys, *said.shape[1:]))
        letter[self.own] = said
        return letter


def _one_node(
    algorithm: ModelAgnosticFedRelax,
    place: _Place,
    inbox: Any,
    last: Any,
    seed: int,
    number: int,
) -> tuple[Any, np.ndarray]:
    random = np.random.default_rng((seed, number, place.i))
    try:
        fitted = algorithm.local(random, place.node, place.heard(inbox, last))
        kept = last if last is None or place.own is None else last[place.own]
        said = algorithm.letter(fitted, place.points, place.classes, kept)
        return fitted, place.whole(said)
    except ValueError as error:
        told = str(error).strip().partition("\n")[0]
        check.refuse(f"node {place.name!r} in round {number}: {told}")


def _bytes(mail: Mail, nodes: _Nodes, sent: int) -> int:
    """Of all letters; a neighbour is told the points of its edge only."""
    letter = mail.letters[0]
    if nodes.sets is None:
        return sent * letter.nbytes
    own = [len(nodes.sets.of_node(i)) for i in range(nodes.number)]
    return int(mail.turns @ np.array(own)) * (letter.nbytes // len(letter))


def _measure(
    nodes: _Nodes, fitted: Any, letters: Any, last: Any, held_out: Any
) -> Measured:
    network = nodes.network
    if nodes.sets is None:
        flat = letters.reshape(len(letters), -1)
        # (65): sum over edges of A_ij (1/m') ||p_i - p_j||^2 = trace(P' L P) / m'
        gap = np.sum(flat * (network.graph.laplacian() @ flat)) / len(network.shared)
    else:
        gap = nodes.sets.discrepancy(nodes.loss, letters)
    own = [(node.x, node.y) for node in network.nodes]
    error = np.mean(_errors(fitted, own, network.classes))
    change = np.inf if last is None else np.max(np.abs(letters - last), initial=0.0)
    values = [error, gap, change]
    if held_out is not None:
        values.append(np.nanmean(_errors(fitted, held_out, network.classes)))
    return dict(zip(MEASURES, map(float, values), strict=False))


def _errors(fitted: Any, rows: Any, classes: Any) -> np.ndarray:
    errors = []
    for model, (x, y) in zip(fitted, rows, strict=True):
        if not len(y):
            errors.append(np.nan)
            continue
        told = predictions(model, x, None if classes is None else len(classes))
        wrong = (told - y) ** 2 if classes is None else told.argmax(axis=1) != y
        errors.append(np.mean(wrong))
    return np.array(errors)
