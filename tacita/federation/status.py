"""How far a party is: its status file, and what parties tell of themselves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacita.federation.party import Party
from tacita.federation.post import Post


def write(folder: Path, told: Mapping[str, Any]) -> None:
    """Leave a note of how far the party is, for `tacita federation status`."""
    partial = folder / ".status.json.partial"
    partial.write_text(json.dumps(told, indent=1))
    os.replace(partial, folder / "status.json")


def of(party: Party, post: Post, rounds: int) -> dict[str, Any]:
    """What every party's status tells."""
    now = time.monotonic()
    return {
        "party": party.name,
        "run": party.desk.run,
        "round": min(party.round, rounds),
        "rounds": rounds,
        "finished": party.finished,
        "written": time.time(),
        **vars(party.counts),
        "connected": post.connected,
        "seconds_since": {k: now - v for k, v in party.heard_at.items()},
        "under_way": post.under_way(),
        "dropped": post.dropped,
    }


def remark(party: Party, budget: Mapping[str, Any]) -> str:
    """What an agent tells of itself with its letters, for the coordinator's status."""
    told: dict[str, Any] = {"round": party.round}
    if budget:
        told |= {"spent": budget["epsilon_spent"], "allowed": budget["epsilon_allowed"]}
    return json.dumps(told)


def told_by(party: Party) -> dict[str, dict[str, float]]:
    """What the others told of themselves; numbers only, whatever they wrote."""
    found = {}
    for name, text in party.remarks.items():
        try:
            words = json.loads(text)
            found[name] = {
                key: float(words[key])
                for key in ("round", "spent", "allowed")
                if key in words
            }
        except (ValueError, TypeError):
            continue
    return found
