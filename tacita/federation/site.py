"""What stays at one site: its rows, its ledger, and what lets a letter leave."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from tacita.check import TacitaError, refuse
from tacita.disk import Unwritable, write_private
from tacita.federation.account import Account, rounds_besides
from tacita.federation.budget import privacy_of, with_budget
from tacita.federation.description import Description
from tacita.federation.desk import no_charge
from tacita.federation.judgement import Judge
from tacita.federation.own_rows import OwnRows, Rows, RowsFile, rows_of
from tacita.federation.own_test import OwnMeasures, OwnTest
from tacita.federation.policy import PolicyInForce
from tacita.federation.rehearsal import require_parts_allowed
from tacita.federation.setting import Setting, own_setting
from tacita.federation.wire import Identity
from tacita.privacy import BrokenLedger, Ledger
from tacita.privacy.ledger.backup import RESTORED
from tacita.trace import PrivacyReport


class Site:
    """One agent's rows and ledger.

    Args:
        name: The agent.
        rows: Its own rows.
        test: Where its test rows come from.
        in_force: Its policy.
        judge: Who judges offers, and keeps the log.
        ledger: The file of a ledger that is shared; None for its own.
        home: Its folder.
    """

    def __init__(
        self,
        name: str,
        rows: OwnRows,
        test: OwnTest,
        in_force: PolicyInForce,
        judge: Judge,
        ledger: str | Path | None,
        home: Path,
    ) -> None:
        rows = rows_of(rows)
        if isinstance(rows, RowsFile) and not rows.path.is_file():
            refuse(f"there is no file {rows.path}; name your own rows with --data")
        if ledger is not None and in_force.policy.data_name is None:
            refuse(
                "a ledger that is shared needs one name for the rows; set data_name "
                "in the policy, the same in all federations"
            )
        self._name, self.rows, self._in_force = name, rows, in_force
        self.test = test
        self._judge, self._shared, self._home = judge, ledger is not None, home
        self.ledger_path = Path(ledger or home / "ledger.db")
        self.ledger: Any = None
        #: The run as its rows and its budget set it; None before rows are read.
        self.setting: Any = None
        #: The same before its noise was set.
        self._bare: Any = None
        self._charge = no_charge
        #: What it measures on its own rows, once they are read.
        self.measures: Any = None

    def open_ledger(self) -> Ledger:
        """The ledger, to be closed by the caller."""
        self.ledger = Ledger(self.ledger_path)
        charged = {row.agent for row in self.ledger.rows() if row.kind == "release"}
        account = self._judge.account
        others = sorted(charged - {account})
        if others and not self._shared:
            self.ledger.close()
            refuse(
                f"{self.ledger_path} holds releases under the name {others[0]!r}, and "
                f"the rows are called {account!r} now, which would begin at zero; set "
                f"data_name = {others[0]!r} in the policy"
            )
        try:
            self._require_what_left()
        except TacitaError:
            self.ledger.close()
            raise
        return self.ledger

    def _require_what_left(self) -> None:
        """Refuse a ledger that lacks what has left by the folder's own log.

        The ledger is written first, so the rows' account knows all that the log knows.
        Under another name, or in another ledger, they would begin at zero.
        """
        account = self._judge.account
        rows = [row for row in self.ledger.rows() if row.agent == account]
        mine = [(row.run or "", row.round) for row in rows if row.kind == "release"]
        if any(run.startswith(RESTORED) for run, _ in mine):
            return  # what may be missing counts as the whole budget
        # What another folder said of a run stands under the run's name and a word.
        known = {(run.partition(" ")[0], number) for run, number in mine}
        for one in self._judge.log.events():
            if one.get("charged") and (one["run"], one["round"]) not in known:
                refuse(
                    f"{self._judge.log.path} has a letter of round {one['round']} of "
                    f"the run {one['run']}, which left these rows and is not in "
                    f"{self.ledger_path} under the name {account!r}: what they have "
                    "spent would begin at zero; name the ledger and the data_name that "
                    "they had, or move this one away and put it back with: tacita "
                    "ledger restore"
                )

    def forget(self) -> None:
        """A run is over: the rows are read anew for the next."""
        self.setting = self._bare = self.measures = None
        self._charge = no_charge

    def prepare(self, run: Description, outline: Setting) -> None:
        """Read the rows and set the noise; what is wrong with them is told here only.

        From here on it shows whether they fit: by notes, by a number of rows, by a
        round that is passed. So the first round is charged now, whatever comes of it.

        If they do not fit, nobody is answered: the coordinator waits as for an agent
        that is switched off. The program ends, so that only a person can start it
        again: else a coordinator could ask about the rows, one run for one bit.

        Args:
            run: What was accepted.
            outline: The same for rows of zeros.
        """
        self._require_still_allowed(run)
        if self.setting is not None:
            return
        try:
            own, test = self.test.split(run, self.rows)
            self.measures = OwnMeasures(own, test)
            self._bare = own_setting(run, own)
            if own.dim != outline.own.dim:
                refuse("the rows ask for another model than the run describes")
            self._set_budget()
            if self.account is not None:
                self.account.charge_reading()
        except (Unwritable, BrokenLedger):
            raise  # nothing is wrong with the rows, and nothing was shown of them
        except Exception as error:  # whatever the rows are like, nobody else is told
            self._judge.log.note("unfit", run=run.digest)
            write_private(self._unfit(run), _stamp(self.rows))
            first = (str(error) or type(error).__name__).split("\n")[0]
            refuse(
                f"{run.name} ({run.digest}) was accepted, but these rows cannot take "
                f"part, which nobody else is told: {first}; correct them, or give the "
                "run up with --abandon"
            )

    def require_other_rows(self, run: Description) -> None:
        """Refuse to try rows again that did not fit.

        A program that is started again and again by a machine would otherwise turn to
        the next run that is offered, and tell of the rows by what it answers.
        """
        path = self._unfit(run)
        if not path.exists():
            return
        if path.read_text() == _stamp(self.rows):
            refuse(
                f"these rows could not take part in {run.name} ({run.digest}), and "
                "they are still the same; correct them, or give the run up with "
                "--abandon"
            )
        path.unlink()

    def _unfit(self, run: Description) -> Path:
        return self._home / run.digest / "unfit"

    def _set_budget(self) -> None:
        policy = self._in_force.policy
        before = self.account
        self.setting, self._charge = with_budget(
            self._bare, self._name, self.ledger, **self._judge.allowance
        )
        require_parts_allowed(self.setting, self._name, policy)
        if before is not None and self.account is not None:
            self.account.checkpoint = before.checkpoint

    def _require_still_allowed(self, run: Description) -> None:
        """Refuse to go on where the policy was changed since, and does not allow it."""
        if not self._in_force.changed():
            return
        self._judge.require_still_allowed(run)
        try:
            if self.setting is None:
                self._judge.rehearse(run, self.ledger)
            else:
                self._set_budget()
        except (Unwritable, BrokenLedger):
            raise
        except ValueError as error:
            self._judge.stop(run, str(error))

    @property
    def account(self) -> Account | None:
        """What charges its letters; None in a run without a budget."""
        return getattr(self._charge, "account", None)

    @property
    def releases(self) -> Releases:
        """What a party calls before a letter leaves."""
        return Releases(self)

    def release(self, identity: Identity, content: bytes | None) -> None:
        """Let a letter leave: allowed still, charged, and in the log."""
        self._require_still_allowed(self.setting.run)
        self._charge(identity, content)
        # The ledger is what must survive; the log need not wait for the disk.
        note = functools.partial(
            self._judge.log.note,
            "release",
            durable=False,
            run=identity.run,
            round=identity.round,
            phase=identity.phase,
            to=identity.receiver or "neighbours",
            charged=self.account is not None,
            bytes=None if content is None else len(content),
        )
        # What the log knows and the ledger does not would be a letter that is missing.
        note() if self.account is None else self.account.afterwards(note)

    def budget(self) -> dict[str, Any]:
        """What all runs of these rows have told whoever may see this one's letters."""
        if self.setting.run.privacy is None:
            return {}
        promise, account = self.setting.promise, self._judge.account
        who = promise["observer"]
        return {
            "epsilon_spent": self.ledger.learnt(account, who, promise["delta"]),
            "epsilon_allowed": self.ledger.budget(account).epsilon,
            **promise,
            "relation": self.ledger.budget(account).relation,
            **self.ledger.basis(account, *self.ledger.people(account, who)),
        }

    @property
    def tells_budget(self) -> bool:
        """Whether the coordinator may see what is spent and left.

        That may depend on how many rows there are, and in a shared ledger on what
        other federations asked for.
        """
        private = self.setting.run.privacy is not None
        return private and self._in_force.policy.allow_row_counts and not self._shared

    def privacy(self) -> PrivacyReport:
        """What each observer may have learnt in this run."""
        observer, run = self.setting.promise["observer"], self.setting.run
        whose = (self._judge.account, observer, run.digest)
        besides = rounds_besides(self.ledger, *whose)
        return privacy_of(self.setting, len(self.ledger.rounds(*whose)), besides)


class Releases:
    """The way out of a site: the policy, the ledger and the log stand along it."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __call__(self, identity: Identity, content: bytes | None) -> None:
        """Let a letter leave, or raise and keep it back."""
        self._site.release(identity, content)

    @property
    def account(self) -> Account | None:
        """The site's, as it is now."""
        return self._site.account


def _stamp(rows: Rows) -> str:
    """Which rows they are: the stamp of a file, or a digest of all values."""
    if isinstance(rows, RowsFile):
        return rows.stamp
    digest = hashlib.sha256()
    for name in rows:
        digest.update(f"{name} {np.asarray(rows[name]).tolist()}".encode())
    return digest.hexdigest()
