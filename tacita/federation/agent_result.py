"""What a run has left at one agent: its models, what it measured, what was spent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacita.federation.diary import Diary
from tacita.federation.kept_run import KeptRun
from tacita.federation.party import Party
from tacita.federation.server_agent import ServerAgent
from tacita.federation.site import Site


class AgentResult(NamedTuple):
    """All that an agent keeps of a run; nothing of it is sent.

    Attributes:
        kept: Its run folder.
        models: "own" and, of a server algorithm, the "shared" one.
        numbers: Loss and accuracy on its rows, budget, letters.
    """

    kept: KeptRun
    models: dict[str, np.ndarray]
    numbers: dict[str, Any]


def agent_result(party: Party, site: Site, diary: Diary, seconds: float) -> AgentResult:
    """What a party whose run is over keeps.

    Args:
        party: The party.
        site: Its rows and its ledger.
        diary: What it noted.
        seconds: How long the program worked on the run.
    """
    setting, measures = site.setting, site.measures
    models = {"own": party.model()}
    if isinstance(party, ServerAgent):
        models["shared"] = party.shared()
    together = models.get("shared", models["own"])
    told: dict[str, Any] = {}
    for name, model in models.items():
        found = measures.of(model).items()
        told |= {f"{k[4:]}_{name}": v for k, v in found if k.startswith("own_")}
    traffic = diary.traffic()
    told |= site.budget() | {word: traffic[word] for word in ("sent", "sent_bytes")}
    evaluation = measures.evaluation(together)
    if evaluation is not None:
        told["evaluation"] = evaluation
    kept = KeptRun(
        setting.run,
        party.name,
        diary,
        setting.own,
        together,
        models["own"],
        seconds=seconds,
        privacy=None if setting.run.privacy is None else site.privacy(),
        evaluation=evaluation,
    )
    return AgentResult(kept, models, told)
