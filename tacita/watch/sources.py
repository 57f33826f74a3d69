"""Which source a folder needs."""

from __future__ import annotations

from pathlib import Path

from tacita.check import refuse
from tacita.disk import LOCK
from tacita.federation.audit_log import NAME as LOG
from tacita.federation.hub_folder import RECORD
from tacita.runtime import checkpoint
from tacita.watch.hub_folder import HubFolder
from tacita.watch.party_folder import STATUS, PartyFolder
from tacita.watch.run_folder import RunFolder
from tacita.watch.view import Source


def run_source(folder: Path) -> Source:
    """The source for a run folder; another folder is refused."""
    known = ("config.toml", "run.json", checkpoint.NAME)
    if not any((folder / name).is_file() for name in known):
        refuse(
            f"no run in {folder}; name a folder that tacita run has made, or watch a "
            "party's with: tacita federation watch"
        )
    return RunFolder(folder)


def federation_source(folder: Path) -> Source:
    """The source for the folder of a hub or a party; another folder is refused."""
    if (folder / RECORD).is_file():
        return HubFolder(folder)
    # What a party leaves from its first moment on.
    known = (STATUS, LOG, LOCK)
    if not any((folder / name).is_file() for name in known):
        refuse(
            f"no party or hub in {folder}; name the folder of tacita join, tacita "
            "coordinate or tacita hub init"
        )
    return PartyFolder(folder)
