"""`tacita join`: take part in a federation with one's own rows."""

from __future__ import annotations

import json
import logging
import sys
import time
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

#: The offer of a run that this agent is in.
_OFFER = "offer.json"
EXAMPLE = "Example:  tacita join oslo.json --data patients.csv --policy policy.toml"


def join(
    invitation: Annotated[Path, typer.Argument(help="The invitation of this party.")],
    data: Annotated[
        Path, typer.Option(help="Own rows: .csv, .parquet or .npz. They never leave.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(help="Where state, ledger and results are kept."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="What this agent agrees to; see the docs.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Own keys, if they were not made by the hub.")
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Seconds to wait for a run; for ever if left out."),
    ] = None,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon", help="Give up the run that was begun here; wait for another."
        ),
    ] = False,
) -> None:
    """Wait for a run, check it against the policy, and take part in it.

    Killed and started again with the same folder, it goes on where it was.
    """
    from tacita.check import refuse
    from tacita.federation.hub import Invitation
    from tacita.federation.nats_post import NatsPost
    from tacita.federation.policy import Policy
    from tacita.federation.seal import private_folder
    from tacita.privacy import Ledger

    # The event loop remarks on every TLS connection that ends, which is no news.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    invited = Invitation.load(invitation, keys)
    if not data.is_file():
        refuse(f"there is no file {data}; name your own rows with --data")
    home = folder or Path(f"tacita-{invited.federation}-{invited.name}")
    private_folder(home)
    allowed = Policy.of_words(_read_policy(policy))
    with NatsPost(invited) as post, Ledger(home / "ledger.db") as ledger:
        typer.echo(f"{invited.name} is connected to {invited.server}")
        agent = _Agent(invited, home, data, allowed, ledger)
        if abandon:
            agent.put_aside()
        while not agent.take_part(post, wait):
            pass


def _read_policy(path: Path | None) -> dict[str, Any]:
    from tacita.check import refuse

    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        refuse(f"cannot read the policy {path}: {error.strerror}; check the path")
    except ValueError as error:
        refuse(f"the policy {path} is not valid TOML: {error}")


class _Agent:
    """One agent's program, from the offer to the result."""

    def __init__(
        self, invited: Any, home: Path, data: Path, policy: Any, ledger: Any
    ) -> None:
        from tacita.federation import setting
        from tacita.federation.seal import Sealed

        self.invited, self.home, self.data = invited, home, data
        self.policy, self.ledger = policy, ledger
        self.envelope = Sealed(invited.name, invited.keys, invited.others)
        self.secret = setting.secret_of(home, invited.keys)
        self.setting: Any = None
        self.charge: Any = None
        self.agent: Any = None
        self._told, self._told_at = "", -1.0

    def read(self, offer: str) -> Any:
        from tacita.federation.description import read_signed

        me = self.invited
        return read_signed(offer, me.federation, me.others, me.coordinator)

    def judge(self, offer: str) -> tuple[str, dict[str, Any]]:
        """Accept a run or say why not."""
        from tacita.check import refuse
        from tacita.federation.seal import write_private

        run: Any = None
        try:
            run = self.read(offer)
            if self.invited.name not in run.agents:
                refuse("this agent is not one of the run")
            objection = self.policy.objection(run)
            if objection:
                refuse(objection)
            kept = self.home / run.digest
            if (kept / "result.json").exists():
                refuse("this run is over already; give the new one another name")
            self.prepare(run)
            write_private(kept / _OFFER, offer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            typer.echo(f"refused: {error}", err=True)
            digest = "" if run is None else run.digest
            return "refuse", {"run": digest, "reason": str(error)}
        typer.echo(f"accepted: {run.name} ({run.digest}), {run.rounds} rounds")
        return "accept", self.acceptance()

    def prepare(self, run: Any) -> None:
        """Read the rows, set the noise, see that the ledger has room for it all."""
        from tacita.federation import setting

        setting = setting.setting_of(run, setting.own_problem(run, self.data))
        self.setting, self.charge = setting.with_budget(
            setting, self.invited.name, self.ledger, self.policy.max_epsilon
        )

    def acceptance(self) -> dict[str, Any]:
        """What the starter is told; the number of rows only where it is needed."""
        rows = int(self.setting.own.counts[0]) if self.setting.weighted else 1
        return {"run": self.setting.run.digest, "rows": rows}

    def unfinished(self) -> str | None:
        """The offer of a run that was begun here and is not over."""
        for path in self._begun():
            return path.read_text()
        return None

    def _begun(self) -> list[Path]:
        offers = sorted(self.home.glob(f"*/{_OFFER}"))
        return [p for p in offers if not (p.parent / "result.json").exists()]

    def put_aside(self) -> None:
        """Leave what was begun; offered again, it goes on where it was."""
        for path in self._begun():
            path.replace(path.with_name("withdrawn.json"))
            typer.echo(f"{path.parent.name} is given up")

    def take_part(self, post: Any, wait: float | None) -> bool:
        """One run, from its offer (or its checkpoint) to its end.

        Returns:
            False if it was withdrawn.
        """
        from tacita.federation import agreement, setting
        from tacita.federation.drive import run_party
        from tacita.federation.party import Withdrawn
        from tacita.runtime.progress import Bar

        me = self.invited
        offer = self.unfinished()
        if offer is None:
            agreement.await_offer(
                me.federation,
                me.name,
                me.coordinator,
                self.envelope,
                post,
                self.judge,
                wait,
                typer.echo,
            )
        else:
            run = self.read(offer)
            self.prepare(run)
            typer.echo(
                f"going on with {run.name} ({run.digest}); --abandon gives it up"
            )
        run = self.setting.run
        self.agent = setting.make_agent(self.setting, self.desk(), self.secret)
        try:
            with Bar(sys.stderr.isatty(), run.rounds) as bar:
                run_party(self.agent, post, self.watcher(post, bar))
        except Withdrawn as reason:
            typer.echo(f"{run.name} ({run.digest}) ends here: {reason}")
            self.put_aside()
            return False
        self.finish()
        return True

    def desk(self) -> Any:
        from tacita.federation import setting
        from tacita.federation.checkpoints import Store
        from tacita.federation.party import Desk
        from tacita.federation.wire import Identity

        me, run = self.invited, self.setting.run
        who = Identity(me.federation, run.digest, "state", 0, 0, me.name, me.name)
        key = setting.derive(self.secret, f"store {run.digest}")
        store = Store(self.home / run.digest, key, who)
        return Desk(
            me.name,
            me.federation,
            run.digest,
            self.envelope,
            store,
            self.charge,
            1.0,
            self.greet,
            self.remark,
        )

    def greet(self, letter: Any) -> Any:
        """The starter may not have heard that we accepted, or take the run back."""
        from tacita.federation.agreement import note
        from tacita.federation.party import Withdrawn

        me, one, run = self.invited, letter.identity, self.setting.run
        if one.sender != me.coordinator or one.kind not in ("offer", "withdraw"):
            return None
        if one.kind == "withdraw":
            if letter.text == run.digest:
                raise Withdrawn(f"{me.coordinator} withdrew it")
            return None
        if self.read(letter.text).digest != run.digest:
            # Nothing was said yet, so nothing is lost by turning to the new one.
            if self.agent.round == 0:
                raise Withdrawn(f"{me.coordinator} offers another run instead")
            return None
        words = json.dumps(self.acceptance())
        return note("accept", me.federation, me.name, me.coordinator, words)

    def remark(self, kind: str) -> str:
        """What the coordinator's status shows of us: each second, and at the end."""
        from tacita.cli import status

        now = time.monotonic()
        if kind == "done" or now - self._told_at >= 1.0:
            self._told_at = now
            self._told = status.remark(self.agent, self.budget())
        return self._told

    def watcher(self, post: Any, bar: Any) -> Any:
        from tacita.cli import status

        run = self.setting.run

        def watch(agent: Any) -> None:
            now = time.monotonic()
            more = {
                "connected": post.connected,
                "seconds_since": {k: now - v for k, v in agent.heard_at.items()},
                "under_way": post.under_way(),
                "dropped": post.dropped,
                **self.budget(),
            }
            status.write_status(self.home, agent, run.rounds, more)
            bar.update(min(agent.round, run.rounds), None)

        return watch

    def budget(self) -> dict[str, Any]:
        """What all runs of this agent have spent, as its ledger says."""
        told = self.setting.run.privacy
        if told is None:
            return {}
        who = (self.invited.name, self.setting.observer)
        return {
            "epsilon_spent": self.ledger.spent(float(told["delta"])).get(who, 0.0),
            "epsilon_allowed": self.ledger.budget(*who).epsilon,
            "delta": float(told["delta"]),
            "observer": self.setting.observer,
            "unit": str(told.get("unit", "record")),
        }

    def finish(self) -> None:
        """Keep the result here; nothing of it is sent."""
        import numpy as np

        from tacita.federation import setting
        from tacita.federation.server_agent import ServerAgent

        agent, own, run = self.agent, self.setting.own, self.setting.run
        models = {"own": agent.model()}
        if isinstance(agent, ServerAgent):
            models["shared"] = agent.shared()
        told: dict[str, Any] = {"run": run.digest, "name": run.name}
        for name, model in models.items():
            told[f"loss_{name}"] = own.loss(model)
            if own.model.classes is not None:
                told[f"accuracy_{name}"] = own.accuracy(model)
        told |= self.budget() | {"sent": agent.counts.sent}
        told |= {"sent_bytes": agent.counts.sent_bytes}
        kept = self.home / run.digest
        np.savez(kept / "models.npz", **models)  # pyright: ignore
        if run.privacy is not None:
            who = (self.invited.name, self.setting.observer)
            charged = self.ledger.releases(*who, run.digest)
            report = setting.privacy_of(self.setting, charged).as_dict()
            (kept / "privacy.json").write_text(json.dumps(report, indent=1))
        (kept / "result.json").write_text(json.dumps(told, indent=1))
        typer.echo(f"the run is over; models and numbers are in {kept}")
