"""An agent's program: wait for a run, check it against the policy, take part in it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from tacita.check import refuse
from tacita.federation.description import Description, read_signed
from tacita.federation.invitation import Invitation
from tacita.federation.own_rows import OwnRows, own_problem
from tacita.federation.party import Party, Withdrawn, no_charge
from tacita.federation.policy import Policy
from tacita.federation.post import Post
from tacita.federation.program import Options, Program, Result
from tacita.federation.seal import close_files, write_private
from tacita.federation.server_agent import ServerAgent
from tacita.federation.setting import noise_root, privacy_of, setting_of, with_budget
from tacita.federation.wire import Letter
from tacita.privacy import Ledger

#: The offer of a run that this agent is in; and the one that it gave up.
_OFFER, _GIVEN_UP = "offer.json", "withdrawn.json"


def join(
    invitation: Invitation | str | Path,
    data: OwnRows,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    wait: float | None = None,
    **options: Unpack[Options],
) -> Result:
    """Take part in the next run of a federation; returns when it is over.

    Killed and called again with the same folder, it goes on where it was.

    Args:
        invitation: What the hub made for this agent, or its file.
        data: Own rows: a file (.csv, .parquet, .npz), a pandas table, or a mapping
            from column to values. They never leave.
        policy: What the owner agrees to, or the file that says so; None for any run.
        wait: Seconds to wait for a run; None for ever.
        **options: `folder`, `keys`, `post`, `tell`, `progress`; see `Options`.
    """
    return Agent(invitation, data, policy, **options).take_part(wait)


class Agent(Program):
    """One agent's program; the arguments are those of `join`."""

    def __init__(
        self,
        invitation: Invitation | str | Path,
        data: OwnRows,
        policy: Policy | Mapping[str, Any] | str | Path | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(invitation, **options)
        if isinstance(data, str | Path) and not Path(data).is_file():
            refuse(f"there is no file {data}; name your own rows with --data")
        self._rows, self.policy = data, Policy.read(policy)
        self.ledger: Any = None
        self.setting: Any = None
        self.party: Any = None
        self._charge = no_charge
        self._told, self._told_at = "", -1.0

    def take_part(self, wait: float | None = None) -> Result:
        """One run, from its offer (or its checkpoint) to its end."""
        with self.connect() as post, Ledger(self.home / "ledger.db") as self.ledger:
            self.tell(f"{self.me.name} is connected to {self.me.server}")
            close_files(self.home, "ledger*")
            while (result := self._one_run(post, wait)) is None:
                pass  # it was withdrawn
            return result

    def abandon(self) -> None:
        """Leave what was begun; offered again, it goes on where it was."""
        for path in self._begun():
            path.replace(path.with_name(_GIVEN_UP))
            self.tell(f"{path.parent.name} is given up")

    def _begun(self) -> list[Path]:
        """Offers of runs that were begun here and are not over."""
        offers = sorted(self.home.glob(f"*/{_OFFER}"))
        return [p for p in offers if not (p.parent / "result.json").exists()]

    def _one_run(self, post: Post, wait: float | None) -> Result | None:
        begun = self._begun()
        if begun:
            self.prepare(self.read(begun[0].read_text()))
        else:
            self._await_offer(post, wait)
        run, roles = self.setting.run, self.setting.roles
        if begun:
            self.tell(f"going on with {run.name} ({run.digest}); --abandon gives it up")
        secret = noise_root(self.setting, self.me.name, self.secret)
        self.party = roles.make_agent(self.desk(run, self._charge), roles.like, secret)
        try:
            self.drive(self.party, post, run.rounds)
        except Withdrawn as reason:
            self.tell(f"{run.name} ({run.digest}) ends here: {reason}")
            self.abandon()
            return None
        return self._finish()

    def _await_offer(self, post: Post, wait: float | None) -> None:
        """Wait for a run that is accepted here."""
        starter = self.me.coordinator
        hello = self.note("ask", starter)
        for letter in self.await_letters(post, lambda: [hello], wait, 2.0):
            one = letter.identity
            if (one.kind, one.run, one.sender) != ("offer", "", starter):
                continue
            answer, words = self.judge(letter.text)
            self.deliver(post, [self.note(answer, starter, json.dumps(words))])
            if answer == "accept":
                return
        refuse(f"no run was offered by {starter} within {wait:g} s")

    def read(self, offer: str) -> Description:
        """The run that is offered; refused unless the coordinator signed it."""
        me = self.me
        return read_signed(offer, me.federation, me.others, me.coordinator)

    def judge(self, offer: str) -> tuple[str, dict[str, Any]]:
        """Accept a run or say why not."""
        run: Any = None
        try:
            run = self.read(offer)
            if self.me.name not in run.agents:
                refuse("this agent is not one of the run")
            self.me.roster.require(run.starter, run.agents)
            objection = self.policy.objection(run)
            if objection:
                refuse(objection)
            kept = self.home / run.digest
            if (kept / "result.json").exists():
                refuse("this run is over already; give the new one another name")
            self.prepare(run)
            write_private(kept / _OFFER, offer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.tell(f"refused: {error}")
            digest = "" if run is None else run.digest
            return "refuse", {"run": digest, "reason": str(error)}
        self.tell(f"accepted: {run.name} ({run.digest}), {run.rounds} rounds")
        return "accept", self.acceptance()

    def prepare(self, run: Description) -> None:
        """Read the rows, set the noise, see that the ledger has room for it all."""
        made = setting_of(run, own_problem(run, self._rows))
        self.setting, self._charge = with_budget(
            made,
            self.me.name,
            self.ledger,
            self.policy.max_epsilon,
            self.policy.separate,
        )

    def acceptance(self) -> dict[str, Any]:
        """What the starter is told; the number of rows only where it is needed."""
        rows = int(self.setting.own.counts[0]) if self.setting.weighted else 1
        return {"run": self.setting.run.digest, "rows": rows}

    def greet(self, letter: Letter) -> Letter | None:
        """The starter may not have heard that we accepted, or take the run back."""
        me, one, run = self.me, letter.identity, self.setting.run
        if one.sender != me.coordinator or one.kind not in ("offer", "withdraw"):
            return None
        if one.kind == "withdraw":
            if letter.text == run.digest:
                raise Withdrawn(f"{me.coordinator} withdrew it")
            return None
        if self.read(letter.text).digest != run.digest:
            # Nothing was said yet, so nothing is lost by turning to the new one.
            if self.party.round == 0:
                raise Withdrawn(f"{me.coordinator} offers another run instead")
            return None
        return self.note("accept", me.coordinator, json.dumps(self.acceptance()))

    def remark(self, kind: str) -> str:
        """What the coordinator's status shows of us: each second, and at the end."""
        now = time.monotonic()
        if kind == "done" or now - self._told_at >= 1.0:
            told, budget = {"round": self.party.round}, self.budget()
            for word in ("spent", "allowed") if budget else ():
                told[word] = budget[f"epsilon_{word}"]
            self._told, self._told_at = json.dumps(told), now
        return self._told

    def budget(self) -> dict[str, Any]:
        """What all runs of this agent have told whoever may see this one's letters."""
        if self.setting.run.privacy is None:
            return {}
        promise, name = self.setting.promise, self.me.name
        who = promise["observer"]
        return {
            "epsilon_spent": self.ledger.learnt(name, who, promise["delta"]),
            "epsilon_allowed": self.ledger.budget(name).epsilon,
            **promise,
        }

    def more_status(self, party: Party) -> dict[str, Any]:
        """Its budget."""
        return self.budget()

    def _finish(self) -> Result:
        """Keep the result here; nothing of it is sent."""
        party, own, run = self.party, self.setting.own, self.setting.run
        models = {"own": party.model()}
        if isinstance(party, ServerAgent):
            models["shared"] = party.shared()
        told: dict[str, Any] = {}
        for name, model in models.items():
            told[f"loss_{name}"] = own.loss(model)
            if own.model.classes is not None:
                told[f"accuracy_{name}"] = own.accuracy(model)
        told |= self.budget() | {"sent": party.counts.sent}
        told |= {"sent_bytes": party.counts.sent_bytes}
        if run.privacy is not None:
            who = (self.me.name, self.setting.promise["observer"], run.digest)
            charged = self.ledger.rounds(*who)
            report = privacy_of(self.setting, len(charged)).as_dict()
            path = self.home / run.digest / "privacy.json"
            write_private(path, json.dumps(report, indent=1))
        return self.keep(run, models, told)
