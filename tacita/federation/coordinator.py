"""A coordinator's program: propose a run, wait until all accept, coordinate it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from tacita.check import TacitaError, refuse
from tacita.disk import write_private
from tacita.federation import consent
from tacita.federation.budget import promised
from tacita.federation.consent import Refusal
from tacita.federation.correspondence import left_of
from tacita.federation.describe import describe, tables_of
from tacita.federation.description import Description, words_of
from tacita.federation.invitation import Invitation
from tacita.federation.json_words import read_table
from tacita.federation.kept_run import KeptRun
from tacita.federation.party import Party
from tacita.federation.post import Post
from tacita.federation.program import Options, Program, Result
from tacita.federation.protocol import require_protocol
from tacita.federation.server_coordinator import ServerCoordinator
from tacita.federation.setting import blank_setting, coordinator_draws, with_observer
from tacita.federation.sum_setting import with_sum
from tacita.federation.wire import LARGEST, MOST_TEXT, Letter, LetterRefused

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
        run = with_sum(with_observer(describe(self._given, self.me)))
        self.run = self._begun(run, "agents" in tables_of(self._given)) or run
        if not self._accepted.exists():
            self._known.require(self.run.starter, self.run.agents)
        self.setting = blank_setting(self.run)
        if self.setting.weighted and self.run.least_agents < len(self.run.agents):
            refuse("weights='samples' needs everybody's rows; leave out least_agents")
        self.setting.roles.require_size()
        self._offer = self.run.signed(self._keys)
        #: Signatures of those who accepted.
        self.consents: dict[str, str] = {}

    @cached_property
    def _promise(self) -> dict[str, Any] | None:
        """What every agent's budget is about, for the status."""
        return None if self.run.privacy is None else promised(self.run)

    @property
    def _accepted(self) -> Path:
        """Who accepted the run, once all have who must."""
        return self.home / self.run.digest / "accepted.json"

    def _begun(self, run: Description, named: bool) -> Description | None:
        """The same run as it was begun here, before others came to the federation."""
        for path in sorted(self.home.glob(f"*/{_OFFER}")):
            if (path.parent / "result.json").exists():
                continue
            try:
                words = words_of(path.read_text(errors="replace"))
                agents = tuple(words["agents"])
            except (LetterRefused, KeyError, TypeError):
                refuse(f"{path} was changed; put it back, or move {path.parent} away")
            if words.get("name") == run.name:
                what = f"the run {run.name} ({path.parent.name}), which was begun here,"
                require_protocol(words.get("protocol"), what)
            same = replace(run, agents=agents)
            if not named and same.digest == path.parent.name:
                return same
        return None

    def lead(self, wait: float = 3600.0) -> Result | None:
        """Agree, run, keep the result."""
        with self.alone():
            return self._lead(wait)

    def _lead(self, wait: float) -> Result | None:
        begun = time.monotonic()
        with self.connect(wait) as post:
            if self.me.roster is not self._known:
                self._propose()
            run, setting = self.run, self.setting
            rows = self._agree(post, left_of(wait, begun) or 0.0)
            if setting.roles.on_graph:
                self.tell("all agents have agreed; the run is theirs")
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
        counts, traffic = party.counts, self.diary.traffic()
        seconds = time.monotonic() - begun
        told = {
            "rounds": run.rounds,
            "seconds": seconds,
            "letters": traffic["sent"] + traffic["received"],
            "bytes": traffic["sent_bytes"] + traffic["received_bytes"],
            "repeated": counts.repeated,
            "refused": dict(counts.refused),
        }
        if setting.roles.terms.keep_letters:
            told["agents"] = list(run.agents)  # whose letters they are, in their order
        models = party.models()
        known = (run, self.me.name, self.diary, setting.own)
        made = KeptRun(*known, models["shared"], seconds=seconds)
        return self.keep(made, models, told)

    def _agree(self, post: Post, wait: float) -> dict[str, int]:
        """Everybody's consent, which is kept; their numbers of rows if they matter."""
        path = self._accepted
        if path.exists():
            needed = self.run.agents if self.setting.weighted else ()
            kept = _kept_consents(path, needed)
            self.consents = kept["consents"]
            return kept["rows"]
        self.tell(f"{self.run.name} ({self.run.digest}) is offered to the agents")
        try:
            self.consents = self._gather(post, wait)
            rows = self._hand_out(post, wait)
        except (TacitaError, KeyboardInterrupt):
            # Whoever accepted already would wait for ever.
            end = self.run.digest
            self.deliver(post, [self.note("withdraw", a, end) for a in self.run.agents])
            raise
        write_private(path.with_name(_OFFER), self._offer)
        write_private(path, _to_be_kept(self.consents, rows))
        return rows

    def _gather(self, post: Post, wait: float) -> dict[str, str]:
        """Offer the run until enough agents have accepted; their signatures.

        Those who come later find the run under way and join it.

        Raises:
            TacitaError: An agent refuses, or somebody does not answer in time.
        """
        found: dict[str, str] = {}
        said: set[str] = set()

        def missing() -> list[str]:
            return [agent for agent in self.run.agents if agent not in found]

        def offers() -> list[Letter]:
            if self.me.roster is not self._known:  # somebody came, or went
                self._known = self.me.roster
                self._known.require(self.run.starter, self.run.agents)
            return [self.note("offer", agent, self._offer) for agent in missing()]

        for letter in self.await_letters(post, offers, wait, 1.0):
            sender = letter.identity.sender
            try:
                code = _refusal(letter, self.run)
                if code is not None and sender not in said:
                    said.add(sender)
                    self.tell(f"{sender} does not accept yet: {code}")
                signature = self._consent(letter)
            except LetterRefused as refusal:
                self.complain(f"a letter was refused: {refusal}")
                continue
            if signature is not None and sender not in found:
                found[sender] = signature
                self.tell(f"{sender} accepts")
            approved = set(self.me.roster.approvers) <= set(found)
            if len(found) >= self.run.least_agents and approved:
                return found
        refuse(f"no answer from {', '.join(missing())} within {wait:.0f} s")

    def _hand_out(self, post: Post, wait: float) -> dict[str, int]:
        """Hand everybody's consents to everybody who accepted.

        Agents on a graph must all have them before this program may end, and a mean
        that is weighted by rows must be told their numbers; else whoever misses them
        asks.
        """
        rows: dict[str, int] = {}

        def missing() -> list[str]:
            return [agent for agent in self.consents if agent not in rows]

        def bundles() -> list[Letter]:
            return [self._bundle(agent) for agent in missing()]

        setting = self.setting
        if not (setting.weighted or setting.roles.on_graph):
            self.deliver(post, bundles())
            return {}
        for letter in self.await_letters(post, bundles, wait, 1.0):
            try:
                told = _rows(letter, self.run, setting.weighted)
            except LetterRefused as refusal:
                self.complain(f"a letter was refused: {refusal}")
                continue
            if told is not None and letter.identity.sender in self.consents:
                rows[letter.identity.sender] = told
            if not missing():
                return rows
        refuse(f"{', '.join(missing())} accepted, and were not heard of again")

    def _bundle(self, agent: str) -> Letter:
        return self.note("consents", agent, consent.bundle(self.run, self.consents))

    def _consent(self, letter: Letter) -> str | None:
        """The sender's signature if it accepts this run."""
        one, run = letter.identity, self.run
        told = _words(letter, run, "accept")
        if told is None:
            return None
        signature = told.get("consent")
        consent.require(run, one.sender, signature, self.me.others[one.sender])
        return str(signature)

    def greet(self, letter: Letter) -> Letter | None:
        """Somebody who lost its folder, or comes late, is offered the run again."""
        one = letter.identity
        if one.sender not in self.run.agents:
            return None
        if one.kind == "ask":
            return self.note("offer", one.sender, self._offer)
        signature = self._consent(letter)
        if signature is None:
            return None
        self.consents[one.sender] = signature
        return self._bundle(one.sender)

    def more_status(self, party: Party) -> dict[str, Any]:
        """The agents, what they told, how letters lay, what budgets are about."""
        agents = list(self.run.agents)
        found = {"agents": agents, "told": _told_by(party), "promise": self._promise}
        if isinstance(party, ServerCoordinator):
            found["letters"] = party.seen
        return found


def _to_be_kept(consents: Mapping[str, str], rows: Mapping[str, int]) -> str:
    """Who accepted, and with how many rows, to be written down.

    With a digest: a digit of a number of rows that was changed would change what its
    agent's letters weigh.
    """
    told = {"consents": dict(consents), "rows": dict(rows)}
    return json.dumps({**told, "digest": _digest(told)})


def _digest(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _kept_consents(path: Path, needed: Sequence[str] = ()) -> dict[str, Any]:
    """Who accepted, and with how many rows, as it was written down.

    Args:
        path: Where.
        needed: Whose rows the run's mean is weighted by.
    """
    try:
        kept = read_table(path.read_bytes(), "the file", MOST_TEXT["consents"])
        if kept.pop("digest") != _digest(kept):
            raise LetterRefused("it was changed")
        rows = {str(name): int(count) for name, count in kept["rows"].items()}
        if not set(needed) <= set(rows):
            raise LetterRefused("rows are missing")
        return {"consents": dict(kept["consents"]), "rows": rows}
    except (ValueError, TypeError, AttributeError, KeyError):
        refuse(f"{path} was changed; delete it, and the agents are asked once more")


def _words(letter: Letter, run: Description, kind: str) -> dict[str, Any] | None:
    """What an agent of this run says of it in a letter of this kind."""
    one = letter.identity
    if one.run or one.sender not in run.agents or one.kind != kind:
        return None
    told = read_table(letter.text, "the answer")
    return told if told.get("run") == run.digest else None


def _refusal(letter: Letter, run: Description) -> Refusal | None:
    """Why the sender does not accept yet; a refusal that is final is raised."""
    told = _words(letter, run, "refuse")
    if told is None:
        return None
    try:
        code = Refusal(told.get("code"))
    except ValueError:
        raise LetterRefused("a refusal without a known word") from None
    if code.final:
        refuse(
            f"{letter.identity.sender} refuses the run; its own log says why: ask there"
        )
    return code


def _rows(letter: Letter, run: Description, weighted: bool) -> int | None:
    """The sender's number of rows (1 where it does not matter), once it is ready."""
    told = _words(letter, run, "done")
    if told is None or not weighted:
        return None if told is None else 1
    rows = told.get("rows")
    if type(rows) is not int or not 1 <= rows < LARGEST:
        raise LetterRefused("an answer without a number of rows")
    return rows


def _told_by(party: Party) -> dict[str, dict[str, float]]:
    """What the others told of themselves; numbers only, whatever they wrote."""
    found = {}
    for name, text in party.remarks.items():
        try:
            words = read_table(text, "a remark")
        except LetterRefused:
            continue
        numbers = {key: words.get(key) for key in ("round", "spent", "allowed")}
        found[name] = {
            key: float(value)
            for key, value in numbers.items()
            if isinstance(value, int | float) and abs(value) < LARGEST
        }
    return found
