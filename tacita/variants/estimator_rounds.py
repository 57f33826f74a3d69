"""Rounds over nodes with scikit-learn models of any kind.

These models are no arrays, so that no compiled loop runs them: a round fits every
node's model, in parallel with joblib, and passes predictions along the edges. The
letters of the last round are all that the next one needs, so that a checkpoint holds
letters and no models.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.runtime import checkpoint as checkpoints
from tacita.runtime import choices
from tacita.runtime.fingerprint import fingerprint, words_of
from tacita.runtime.progress import Bar, wanted
from tacita.variants.estimator_nodes import EstimatorNetwork, EstimatorNode
from tacita.variants.model_agnostic import ModelAgnosticFedRelax, predictions

Measured = dict[str, float]  # metrics of one round, by name


#: Metrics of a round, in the order of checkpoints; the last with validation rows only.
MEASURES: tuple[str, ...] = ("train_error", "discrepancy", "change", "validation_error")


@dataclass(frozen=True, eq=False)
class EstimatorRun:
    """What `simulate_estimators` returns.

    Attributes:
        network: What was solved.
        algorithm: How.
        estimators: Every node's fitted model, in the order of `network.ids`.
        metrics: By round: "train_error", "discrepancy" (the sum over edges of A_ij
            d_ij, (65)), "change" (of letters, at most), and "validation_error", means
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
    validation: tuple[Any, Any, Any] | None = None,
    tolerance: float = 0.0,
    n_jobs: int = 1,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> EstimatorRun:
    """Run model-agnostic FedRelax.

    In round 1 every node fits its own rows only, as there are no letters yet; round 1
    is what training alone gives.

    Args:
        network: Nodes, their rows and models, the graph and the shared points.
        algorithm: Strength of the coupling, damping.
        rounds: How many at most.
        validation: Features, targets and node ids of rows to measure errors on.
        tolerance: Stop when no prediction on a shared point changed by more.
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
    from joblib import Parallel, delayed  # comes with scikit-learn

    if not isinstance(algorithm, ModelAgnosticFedRelax):
        check.refuse(
            "models of any kind are coupled by "
            f"tacita.ModelAgnosticFedRelax(alpha=...), got algorithm={algorithm!r}"
        )
    check.count(rounds=rounds)
    check.not_negative(tolerance=tolerance)
    seed = check.seed(seed=seed)
    held_out = None if validation is None else network.rows(*validation)
    diary = _Diary.of(checkpoint, resume, network, algorithm, held_out, seed)
    letters, history = diary.read(rounds) if resume else (None, [])
    shown = wanted(progress)
    fitted = ()
    with Parallel(n_jobs=n_jobs) as parallel, Bar(shown, rounds, len(history)) as bar:
        for number in range(len(history) + 1, rounds + 1):
            diary.write(letters, history, rounds)
            inboxes = _deliver(network, letters)
            done: Any = parallel(
                delayed(_one_node)(algorithm, *_place(network, i), *mail, seed, number)
                for i, mail in enumerate(_mail(inboxes, letters, len(network.ids)))
            )
            fitted = tuple(model for model, _ in done)
            told = np.stack([letter for _, letter in done])
            history.append(_measure(network, fitted, told, letters, held_out))
            letters = told
            bar.update(number, None)
            if history[-1]["change"] <= tolerance:
                break
    metrics = {k: np.array([h[k] for h in history]) for k in history[0]}
    metrics["round"] = np.arange(1, len(history) + 1)
    sent = len(history) * 2 * network.graph.n_edges
    assert letters is not None
    told = dict(letters=sent, bytes=sent * letters[0].nbytes)
    return EstimatorRun(network, algorithm, fitted, metrics, told)


class _Diary(NamedTuple):
    """Where letters and metrics are kept between rounds, if anywhere."""

    folder: Path | None
    fingerprint: str

    @classmethod
    def of(
        cls,
        checkpoint: Any,
        resume: bool,
        network: EstimatorNetwork,
        algorithm: ModelAgnosticFedRelax,
        held_out: Any,
        seed: int,
    ) -> _Diary:
        """A diary that knows its run again by what decides the numbers."""
        folder = choices.folder_of(checkpoint, resume)
        if folder is None:
            return cls(None, "")
        graph, models = network.graph, [node.estimator for node in network.nodes]
        rows = [(node.x, node.y) for node in network.nodes]
        words = [(type(model), model.get_params()) for model in models]
        arrays = (rows, network.shared, graph.receivers, graph.senders, graph.weights)
        said = words_of((network.ids, network.classes, words, algorithm, seed))
        return cls(folder, fingerprint(arrays, held_out, said))

    def write(self, letters: Any, history: list[Measured], aim: int) -> None:
        """Keep all that the next round needs; before the first it needs nothing."""
        if self.folder is None or letters is None:
            return
        metrics = np.array([list(measured.values()) for measured in history]).T
        rounds = np.arange(1, len(history) + 1)
        saved = checkpoints.Saved(len(history), [letters], metrics, rounds, 0.0)
        going = checkpoints.Aim(aim, MEASURES[: len(metrics)], private=False)
        checkpoints.save(self.folder, saved, self.fingerprint, going)

    def read(self, rounds: int) -> tuple[Any, list[Measured]]:
        """Letters and metrics of the rounds done, fewer than `rounds`."""
        assert self.folder is not None
        saved = checkpoints.load(self.folder, self.fingerprint)
        if saved is None:
            return None, []
        if saved.rounds >= rounds:
            check.refuse(
                f"the checkpoint in {self.folder} is after round {saved.rounds}; ask "
                f"for more than {saved.rounds} rounds, or choose another folder"
            )
        names = MEASURES[: len(saved.metrics)]
        history = [dict(zip(names, r, strict=True)) for r in saved.metrics.T.tolist()]
        return saved.leaves[0], history


def _deliver(network: EstimatorNetwork, letters: Any) -> Any:
    """The neighbours' mean letter, for every node: sum_j A_ij letter_j / d_i."""
    if letters is None:
        return None
    degrees = np.asarray(network.graph.degrees)
    total = network.graph.adjacency() @ letters.reshape(len(letters), -1)
    mean = total / np.where(degrees > 0, degrees, 1.0)[:, None]
    return mean.reshape(letters.shape)


def _mail(inboxes: Any, letters: Any, nodes: int) -> Any:
    if letters is None:
        return [(None, None)] * nodes
    return zip(inboxes, letters, strict=True)


def _place(network: EstimatorNetwork, i: int) -> tuple:
    """All that node i needs to know of the network: no other node's rows."""
    classes = None if network.classes is None else len(network.classes)
    degree = float(network.graph.degrees[i])
    return i, network.ids[i], network.nodes[i], network.shared, degree, classes


def _one_node(
    algorithm: ModelAgnosticFedRelax,
    i: int,
    name: Any,
    node: EstimatorNode,
    shared: np.ndarray,
    degree: float,
    classes: int | None,
    inbox: Any,
    last: Any,
    seed: int,
    number: int,
) -> tuple[Any, np.ndarray]:
    random = np.random.default_rng((seed, number, i))
    try:
        fitted = algorithm.local(random, node, shared, degree, inbox)
        return fitted, algorithm.letter(fitted, shared, classes, last)
    except ValueError as error:
        told = str(error).partition("\n")[0]
        check.refuse(f"node {name!r} in round {number}: {told}")


def _measure(
    network: EstimatorNetwork, fitted: Any, letters: Any, last: Any, held_out: Any
) -> Measured:
    flat = letters.reshape(len(letters), -1)
    # (65): sum over edges of A_ij (1/m') ||p_i - p_j||^2 = trace(P' L P) / m'
    gap = np.sum(flat * (network.graph.laplacian() @ flat)) / len(network.shared)
    own = [(node.x, node.y) for node in network.nodes]
    error = np.mean(_errors(fitted, own, network.classes))
    change = np.inf if last is None else np.max(np.abs(letters - last))
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
