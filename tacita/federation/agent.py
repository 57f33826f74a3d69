"""An agent's program: wait for a run, check it against the policy, take part in it.

Whether a run is accepted is decided without its rows (`judgement.py`). They are read
after the acceptance has left: what is wrong with them is told here, to the agent's own
people, and to nobody else. From outside an agent whose rows do not fit looks like one
that was switched off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from tacita.check import refuse
from tacita.federation import state_file
from tacita.federation.agent_result import agent_result
from tacita.federation.agreement import Agreement
from tacita.federation.correspondence import Ended, left_of
from tacita.federation.describe import describe
from tacita.federation.description import Description, read_signed, unsigned
from tacita.federation.desk import MOST_NOTE
from tacita.federation.draws import derive
from tacita.federation.invitation import Invitation
from tacita.federation.judgement import OFFER, Judge
from tacita.federation.membership import require_partners
from tacita.federation.own_rows import OwnRows, rows_of
from tacita.federation.own_test import OwnTest, in_words
from tacita.federation.party import Party, Withdrawn
from tacita.federation.policy import Policy, PolicyInForce
from tacita.federation.post import Post
from tacita.federation.preview import Preview, preview_of
from tacita.federation.program import Options, Program, Result
from tacita.federation.receipts import BLANK
from tacita.federation.setting import blank_setting, keys_of, with_observer
from tacita.federation.site import Site
from tacita.federation.sum_setting import with_sum
from tacita.federation.wire import MOST_TEXT, Identity, Letter, LetterRefused

#: Letters by which the run reaches an agent: one that comes late is only told that
#: there is something to fetch.
_STARTS = ("question", "ready", "end", "secure")
#: The offer of a run that was given up.
_GIVEN_UP = "withdrawn.json"


def join(
    invitation: Invitation | str | Path,
    data: OwnRows,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    wait: float | None = None,
    ledger: str | Path | None = None,
    test: OwnRows | None = None,
    separator: str = ",",
    **options: Unpack[Options],
) -> Result:
    """Take part in the next run of a federation; returns when it is over.

    Killed and called again with the same folder, it goes on where it was.

    Args:
        invitation: What the hub made for this agent, or its file.
        data: Own rows: a file (.csv, .parquet, .npz), a pandas table, or a mapping
            from column to values. They never leave.
        policy: What the owner agrees to, or the file that says so. Without one nothing
            is accepted; `Policy.anything()` trusts whoever proposes a run.
        wait: Seconds to wait for a run; None for ever.
        ledger: A ledger that is shared with other federations' agents who hold the
            same rows; the policy then names the rows (`data_name`). Default one in the
            folder.
        test: Own rows that never train, to test with what comes out; they stay here
            too. The policy may hold a share of `data` out instead (`test_share`).
        separator: Between the fields of these files, where they are text.
        **options: `folder`, `keys`, `post`, `tell`, `progress`; see `Options`.
    """
    agent = Agent(invitation, data, policy, ledger, test, separator, **options)
    return agent.take_part(wait)


class Agent(Program):
    """One agent's program; the arguments are those of `join`."""

    most_greeting = MOST_TEXT["offer"] + MOST_NOTE

    def __init__(
        self,
        invitation: Invitation | str | Path,
        data: OwnRows,
        policy: Policy | Mapping[str, Any] | str | Path | None = None,
        ledger: str | Path | None = None,
        test: OwnRows | None = None,
        separator: str = ",",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(invitation, **options)
        self._in_force = PolicyInForce(policy)
        self.judge = Judge(lambda: self.me, self.home, self._in_force, self.tell)
        data, test = rows_of(data, separator), rows_of(test, separator)
        tests = OwnTest(
            test, lambda: self.policy.test_share, self._test_secret, self.tell
        )
        own = (tests, self._in_force, self.judge, ledger, self.home)
        self.site = Site(self.me.name, data, *own)
        #: The round that was looked at last, and the runs that this program ended.
        self._looked, self._over = -1, set[str]()
        self.party: Any = None
        #: The run for rows of zeros, and how it was agreed to.
        self._outline: Any = None
        self.agreement: Any = None
        self._told, self._told_at = "", -1.0

    @property
    def policy(self) -> Policy:
        """The policy as it was last read."""
        return self._in_force.policy

    def take_part(self, wait: float | None = None) -> Result:
        """One run, from its offer (or its checkpoint) to its end."""
        begun = time.monotonic()
        with self._at_work(wait) as post:
            while (result := self._one_run(post, left_of(wait, begun))) is None:
                pass  # it was withdrawn
            return result

    def stay(self) -> None:
        """Take part in one run after the other until `end` is called."""
        try:
            with self._at_work(None) as post:
                while True:
                    self._one_run(post, None)
        except Ended:
            self.tell("ended as asked; what was begun is kept")

    @contextmanager
    def _at_work(self, wait: float | None) -> Iterator[Post]:
        with self.alone(), self.connect(wait) as post, self.site.open_ledger():
            self.judge.log.events()  # refused if it was changed
            self.tell(f"{self.me.name} is connected to {self.me.server}")
            yield post

    def preview(self, run: Mapping[str, Any] | str | Path) -> Preview:
        """What would leave if a run were accepted; nothing is sent or charged.

        Args:
            run: A run file or its tables; or how the digest of an offer begins that
                waits here.
        """
        if isinstance(run, Mapping) or Path(run).is_file():
            described = with_sum(with_observer(describe(run, self.me)))
        else:
            described = self.judge.book.find(str(run)).run
        return preview_of(
            described,
            self.site.rows,
            self.site.test,
            self.me,
            self.policy,
            self.site.ledger_path,
            **self.judge.allowance,
        )

    def abandon(self) -> None:
        """Leave what was begun; offered again, it goes on where it was."""
        with self.alone():
            self._give_up()

    def _give_up(self) -> None:
        for path in self._begun():
            path.replace(path.with_name(_GIVEN_UP))
            self.judge.log.note("given up", run=path.parent.name)
            self.tell(f"{path.parent.name} is given up")

    def _begun(self) -> list[Path]:
        """Offers of runs that were begun here and are not over."""
        offers = sorted(self.home.glob(f"*/{OFFER}"))
        return [p for p in offers if not (p.parent / "result.json").exists()]

    def _begun_run(self, path: Path) -> Description:
        """The run of an offer in the folder.

        Its signature was checked when it came; the coordinator may have other keys by
        now. The folder's name vouches for every byte of the description.
        """
        try:
            run = unsigned(path.read_bytes().decode(errors="replace"))
            if run.digest != path.parent.name:
                raise LetterRefused("it is of another run")
        except LetterRefused as error:
            refuse(
                f"{path} was changed: {error}; put it back, or leave the run with "
                "--abandon"
            )
        require_partners(run, self.me)
        return run

    def _one_run(self, post: Post, wait: float | None) -> Result | None:
        begun = self._begun()
        self.party = None
        self.site.forget()
        if begun:
            run = self._begun_run(begun[0])
            self.judge.require_still_allowed(run)
            self.site.require_other_rows(run)
            self._agree_to(run)
            self.tell(f"going on with {run.name} ({run.digest}); --abandon gives it up")
        else:
            run = self._await_offer(post, wait)
        try:
            first = self._await_start(post)
            self.site.prepare(run, self._outline)
            setting = self.site.setting
            own = keys_of(setting, self.me.name, self.secret)
            desk, roles = self.desk(run, self.site.releases), setting.roles
            self.party = roles.make_agent(desk, roles.like, own)
            begun, self._looked = time.monotonic(), -1
            self.drive(self.party, post, run.rounds, first)
        except Withdrawn as reason:
            self.tell(f"{run.name} ({run.digest}) ends here: {reason}")
            self._give_up()
            return None
        return self._finish(begun)

    def _agree_to(self, run: Description) -> None:
        self._outline = blank_setting(run)
        least, judge = self.policy.min_participants, self.judge
        self.agreement = Agreement(
            run, lambda: self.me, self._keys, self.home, least, judge.log, self.tell
        )
        if self._outline.weighted:
            self.agreement.more = self._row_count

    def _await_offer(self, post: Post, wait: float | None) -> Description:
        """Wait for a run that is accepted here; its acceptance has then left."""
        starter = self.me.coordinator
        hello = self.note("ask", starter)
        self.write_status({"party": self.me.name, "note": "waits for a run"})
        for letter in self.await_letters(post, lambda: [hello], wait, 2.0):
            one = letter.identity
            if (one.kind, one.run, one.sender) != ("offer", "", starter):
                continue
            try:
                run = self.read(letter.text)
            except LetterRefused as error:
                self.complain(f"an offer cannot be read: {error}")
                continue
            if run.digest in self._over:
                continue  # its coordinator stays for those who are behind
            accepted, code = self.judge.verdict(run, letter.text, self.site.ledger)
            if accepted:
                self._agree_to(run)
                self.deliver(post, [self.agreement.acceptance()])
                return run
            told = json.dumps({"run": run.digest, "code": code})
            self.deliver(post, [self.note("refuse", starter, told)])
        refuse(f"no run was offered by {starter} within {wait:.0f} s")

    def read(self, offer: str) -> Description:
        """The run that is offered; refused unless the coordinator signed it."""
        me = self.me
        return read_signed(offer, me.federation, me.others, me.coordinator)

    def _await_start(self, post: Post) -> list[bytes]:
        """Wait until enough agents agreed, and the first letter is asked for.

        Until then the rows are not looked at: whether they fit shows by an answer or
        its absence, and an answer is charged. The question is handed on.
        """
        agreement, run = self.agreement, self.agreement.run
        name = Identity(
            run.federation, run.digest, "ask", 0, 0, self.me.name, run.starter
        )

        def say() -> list[Letter]:
            ask = Letter(name, (BLANK, BLANK))  # nothing was said or heard yet
            return [ask if agreement.agreed else agreement.acceptance()]

        kept = self.home / run.digest / state_file.NAME
        at_once = self._outline.roles.on_graph or kept.exists()
        if agreement.agreed and at_once:
            return []
        note = "accepted; waits until all have agreed and the first letter is asked for"
        self.write_status({"party": self.me.name, "run": run.digest, "note": note})
        roles = self._outline.roles
        most = 0 if roles.on_graph else roles.server.most_bytes + MOST_NOTE
        waiting = self.await_contents(post, say, self.silence, 1.0, most, anew=True)
        for content, letter in waiting:
            one = letter.identity
            if not one.run:
                try:
                    reply = self.greet(letter)
                except LetterRefused as refusal:
                    self.complain(f"a letter was refused: {refusal}")
                    continue
                self.deliver(post, [] if reply is None else [reply])
                if agreement.agreed and at_once:
                    return []
            elif agreement.agreed and one.kind in _STARTS:
                if (one.run, one.sender) == (run.digest, run.starter):
                    return [content]
        self.leave(self.silence or 0.0)

    def greet(self, letter: Letter) -> Letter | None:
        """Letters outside of any run."""
        self.agreement.spoken = self.party is not None and self.party.round > 0
        return self.agreement.greet(letter)

    def _row_count(self) -> dict[str, int]:
        """For a mean that is weighted by it: then rows are read before the start."""
        self.site.prepare(self.agreement.run, self._outline)
        return {"rows": int(self.site.setting.own.counts[0])}

    def remark(self, kind: str, to: str) -> str:
        """What the coordinator's status shows of us: each second, and at the end.

        Other agents, to whom letters go on graphs and in secure sums, are told nothing.
        """
        if to != self.site.setting.run.starter:
            return ""
        now = time.monotonic()
        if kind == "done" or now - self._told_at >= 1.0:
            told: dict[str, Any] = {"round": self.party.round}
            if self.site.tells_budget:
                budget = self.site.budget()
                told |= {w: budget[f"epsilon_{w}"] for w in ("spent", "allowed")}
            self._told, self._told_at = json.dumps(told), now
        return self._told

    def more_status(self, party: Party) -> dict[str, Any]:
        """Its budget."""
        return self.site.budget()

    def look_at(self, party: Party) -> None:
        """Measure the model on its own rows, as often as the diary wants it."""
        if party.round == self._looked and not party.finished:
            return
        self._looked, known = party.round, party.known()
        if known is not None and self.diary.wants(known[0]):
            self.diary.measured(known[0], self.site.measures.of(known[1]))

    def _test_secret(self) -> bytes:
        return derive(self.secret, "test rows")

    def _finish(self, begun: float) -> Result:
        """Keep the result here; nothing of it is sent."""
        seconds = time.monotonic() - begun
        found = agent_result(self.party, self.site, self.diary, seconds)
        if found.kept.evaluation is not None:
            self.tell(in_words(found.kept.evaluation))
        self._over.add(found.kept.run.digest)
        return self.keep(*found)
