"""A coordinator's program: propose a run, wait until all accept, coordinate it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from tacita.algorithm.base import Algorithm
from tacita.check import TacitaError, refuse
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.federation.own_rows import blank_problem
from tacita.federation.party import Party
from tacita.federation.post import Post
from tacita.federation.program import Options, Program, Result
from tacita.federation.protocol import require_protocol
from tacita.federation.seal import write_private
from tacita.federation.setting import coordinator_draws, setting_of, with_observer
from tacita.federation.wire import Letter, LetterRefused
from tacita.job import run_file, table_of
from tacita.trace import plain_values

#: The description of a run that was begun here, beside who accepted it.
_OFFER = "offer.json"


def coordinate(
    run: Mapping[str, Any] | str | Path,
    invitation: Invitation | str | Path,
    wait: float = 3600.0,
    **options: Unpack[Options],
) -> Result | None:
    """Propose a run to all agents, wait until they accept, and coordinate it.

    With an algorithm on a graph the agents need no coordinator: the run is proposed,
    and the rest is theirs. Killed and called again, it goes on where it was.

    Args:
        run: The run file, or its tables; "algorithm" may be an algorithm itself.
        invitation: That of the coordinator, or its file.
        wait: Seconds to wait for all agents.
        **options: `folder`, `keys`, `post`, `tell`, `progress`; see `Options`.

    Returns:
        The shared model and what it took; None of a run on a graph.
    """
    return Coordinator(run, invitation, **options).lead(wait)


class Coordinator(Program):
    """The coordinator's program; the arguments are those of `coordinate`."""

    def __init__(
        self,
        run: Mapping[str, Any] | str | Path,
        invitation: Invitation | str | Path,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(invitation, **options)
        me = self.me
        if me.name != me.coordinator:
            refuse(
                f"the invitation invites the agent {me.name!r}; a run is proposed with "
                f"that of {me.coordinator!r}"
            )
        self._given = run
        self._propose()

    def _propose(self) -> None:
        """Describe the run to those who are on the roster now, or were when it began.

        Agents agree to a budget against somebody: the description names whom.
        """
        self._known = self.me.roster
        run = with_observer(_describe(self._given, self.me))
        self.run = self._begun(run, "agents" in _tables(self._given)) or run
        self._known.require(self.run.starter, self.run.agents)
        self.setting = setting_of(self.run, blank_problem(self.run))
        self._offer = self.run.signed(self._keys)

    def _begun(self, run: Description, named: bool) -> Description | None:
        """The same run as it was begun here, before others came to the federation."""
        for path in sorted(self.home.glob(f"*/{_OFFER}")):
            if (path.parent / "result.json").exists():
                continue
            words = json.loads(json.loads(path.read_text())["description"])
            if words["name"] == run.name:
                what = f"the run {run.name} ({path.parent.name}), which was begun here,"
                require_protocol(words["protocol"], what)
            same = replace(run, agents=tuple(words["agents"]))
            if not named and same.digest == path.parent.name:
                return same
        return None

    def lead(self, wait: float = 3600.0) -> Result | None:
        """Agree, run, keep the result."""
        with self.connect() as post:
            if self.me.roster is not self._known:
                self._propose()
            run, setting = self.run, self.setting
            rows = self._agree(post, wait)
            if setting.weighted and len(rows) < len(run.agents):
                refuse(
                    "weights='samples' needs everybody's rows; leave out least_agents"
                )
            if setting.roles.on_graph:
                self.tell("all agents have accepted; the run is theirs")
                note = (
                    "all agents have accepted; how far they are, their own folders tell"
                )
                told = {"party": self.me.name, "run": run.digest, "note": note}
                self.write_status(told)
                return None
            weights = [float(rows[a]) for a in run.agents] if setting.weighted else None
            draws = coordinator_draws(setting, self.secret)
            party = setting.roles.make_coordinator(self.desk(run), draws, weights)
            begun = time.monotonic()
            self.drive(party, post, run.rounds)
        counts = party.counts
        told = {
            "rounds": run.rounds,
            "seconds": time.monotonic() - begun,
            "letters": counts.sent + counts.received,
            "bytes": counts.sent_bytes + counts.received_bytes,
            "repeated": counts.repeated,
            "refused": dict(counts.refused),
        }
        return self.keep(run, {"shared": party.model()}, told)

    def _agree(self, post: Post, wait: float) -> dict[str, int]:
        """Everybody's consent, which is kept: it is asked for once."""
        path = self.home / self.run.digest / "accepted.json"
        if path.exists():
            return json.loads(path.read_text())
        self.tell(f"{self.run.name} ({self.run.digest}) is offered to the agents")
        try:
            rows = self._gather(post, wait)
        except (TacitaError, KeyboardInterrupt):
            # Whoever accepted already would wait for ever.
            end = self.run.digest
            self.deliver(post, [self.note("withdraw", a, end) for a in self.run.agents])
            raise
        write_private(path.with_name(_OFFER), self._offer)
        write_private(path, json.dumps(rows))
        return rows

    def _gather(self, post: Post, wait: float) -> dict[str, int]:
        """Offer the run until enough agents have accepted; their numbers of rows.

        Those who come later find the run under way and join it.

        Raises:
            TacitaError: An agent refuses, or somebody does not answer in time.
        """
        rows: dict[str, int] = {}

        def missing() -> list[str]:
            return [agent for agent in self.run.agents if agent not in rows]

        def offers() -> list[Letter]:
            return [self.note("offer", agent, self._offer) for agent in missing()]

        for letter in self.await_letters(post, offers, wait, 1.0):
            sender = letter.identity.sender
            try:
                told = _accepted(letter, self.run)
            except LetterRefused as refusal:
                self.tell(f"a letter was refused: {refusal}")
                continue
            if told is not None and sender not in rows:
                rows[sender] = told
                self.tell(f"{sender} accepts")
            consent = set(self.me.roster.approvers) <= set(rows)
            if len(rows) >= self.run.least_agents and consent:
                return rows
        refuse(f"no answer from {', '.join(missing())} within {wait:g} s")

    def greet(self, letter: Letter) -> Letter | None:
        """Somebody who lost its folder, or comes late, is offered the run again."""
        one = letter.identity
        if one.kind != "ask" or one.sender not in self.run.agents:
            return None
        return self.note("offer", one.sender, self._offer)

    def more_status(self, party: Party) -> dict[str, Any]:
        """The agents, what they told, and what their budgets are about."""
        promise = None if self.run.privacy is None else self.setting.promise
        agents = list(self.run.agents)
        return {"agents": agents, "told": _told_by(party), "promise": promise}


def _accepted(letter: Letter, run: Description) -> int | None:
    """The sender's number of rows if it accepts this run; its refusal is raised."""
    one = letter.identity
    if one.sender not in run.agents or one.kind not in ("accept", "refuse"):
        return None
    try:
        told: Mapping[str, Any] = json.loads(letter.text)
        if told["run"] != run.digest:
            return None
        if one.kind == "refuse":
            refuse(f"{one.sender} refuses the run: {str(told['reason'])[:300]}")
        rows = told["rows"]
    except (KeyError, TypeError, json.JSONDecodeError):
        raise LetterRefused("an answer that cannot be read") from None
    if type(rows) is not int or rows < 1:
        raise LetterRefused("an answer without a number of rows")
    return rows


def _told_by(party: Party) -> dict[str, dict[str, float]]:
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


def _tables(run: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    return dict(run) if isinstance(run, Mapping) else run_file.read(Path(run))


def _describe(run: Mapping[str, Any] | str | Path, me: Invitation) -> Description:
    table = _tables(run)
    for key, value in table.items():
        object_given = isinstance(value, Algorithm)
        table[key] = table_of(value) if object_given else plain_values(value)
    usual = "run" if isinstance(run, Mapping) else Path(run).stem
    name = str(table.pop("name", usual))
    agents = tuple(table.pop("agents", me.agents))
    return Description(me.federation, name, me.name, agents, table)
