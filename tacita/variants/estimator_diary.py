"""Checkpoints of runs over scikit-learn models: letters and metrics, no models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.runtime import checkpoint as checkpoints
from tacita.runtime import choices
from tacita.runtime.fingerprint import fingerprint, words_of
from tacita.variants.estimator_events import Mail
from tacita.variants.estimator_nodes import EstimatorNetwork
from tacita.variants.model_agnostic import ModelAgnosticFedRelax

Measured = dict[str, float]  # metrics of one round, by name
#: Metrics of a round, in the order of checkpoints; the last with validation rows only.
MEASURES: tuple[str, ...] = ("train_error", "discrepancy", "change", "validation_error")


class Diary(NamedTuple):
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
        chosen: Any,
    ) -> Diary:
        """A diary that knows its run again by what decides the numbers."""
        folder = choices.folder_of(checkpoint, resume)
        if folder is None:
            return cls(None, "")
        graph, models = network.graph, [node.estimator for node in network.nodes]
        rows = [(node.x, node.y) for node in network.nodes]
        words = [(type(model), model.get_params()) for model in models]
        arrays = (
            rows,
            network.shared,
            network.sets,
            graph.receivers,
            graph.senders,
            graph.weights,
        )
        said = words_of((network.ids, network.classes, words, algorithm, seed, chosen))
        return cls(folder, fingerprint(arrays, held_out, said))

    def write(self, mail: Mail | None, history: list[Measured], aim: int) -> None:
        """Keep all that the next round needs; before the first it needs nothing."""
        if self.folder is None or mail is None:
            return
        metrics = np.array([list(measured.values()) for measured in history]).T
        rounds = np.arange(1, len(history) + 1)
        saved = checkpoints.Saved(len(history), mail.leaves, metrics, rounds, 0.0)
        going = checkpoints.Aim(aim, MEASURES[: len(metrics)], private=False)
        checkpoints.save(self.folder, saved, self.fingerprint, going)

    def read(self, rounds: int) -> tuple[Mail | None, list[Measured]]:
        """Letters and metrics of the rounds done, fewer than `rounds`."""
        assert self.folder is not None
        found = checkpoints.load(self.folder, self.fingerprint)
        if not found:
            return None, []
        saved = found[0]
        if saved.rounds >= rounds:
            check.refuse(
                f"the checkpoint in {self.folder} is after round {saved.rounds}; ask "
                f"for more than {saved.rounds} rounds, or choose another folder"
            )
        names = MEASURES[: len(saved.metrics)]
        history = [dict(zip(names, r, strict=True)) for r in saved.metrics.T.tolist()]
        return Mail.of_leaves(saved.leaves), history
