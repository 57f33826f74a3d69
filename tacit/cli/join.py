"""`tacit join`: take part in a federation with one's own rows."""

from __future__ import annotations

import json
import logging
import sys
import time
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "Example:  tacit join oslo.json --data patients.csv --policy policy.toml"


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
) -> None:
    """Wait for a run, check it against the policy, and take part in it.

    Killed and started again with the same folder, it goes on where it was.
    """
    from tacit.runtime.federation.description import Policy
    from tacit.runtime.federation.hub import Invitation
    from tacit.runtime.federation.nats_post import NatsPost

    # The event loop remarks on every TLS connection that ends, which is no news.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    invited = Invitation.load(invitation, keys)
    home = folder or Path(f"tacit-{invited.federation}-{invited.name}")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    allowed = Policy.of_words(_read_policy(policy))
    with NatsPost(invited) as post:
        typer.echo(f"{invited.name} is connected to {invited.server}")
        _Agent(invited, home, data, allowed).take_part(post, wait)


def _read_policy(path: Path | None) -> dict[str, Any]:
    from tacit.check import refuse

    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        refuse(f"cannot read the policy {path}: {error}")


class _Agent:
    """One agent's program, from the offer to the result."""

    def __init__(self, invited: Any, home: Path, data: Path, policy: Any) -> None:
        from tacit.cli import party
        from tacit.runtime.federation.seal import Sealed

        self.invited, self.home, self.data, self.policy = invited, home, data, policy
        self.envelope = Sealed(invited.name, invited.keys, invited.others)
        self.secret = party.secret_of(home)
        self.setting: Any = None

    def read(self, offer: str) -> Any:
        from tacit.runtime.federation.description import read_signed

        me = self.invited
        return read_signed(offer, me.federation, me.others, me.coordinator)

    def judge(self, offer: str) -> tuple[str, dict[str, Any]]:
        """Accept a run or say why not."""
        from tacit.check import refuse
        from tacit.cli import party
        from tacit.runtime.federation.seal import write_private

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
            self.setting = party.setting_of(run, party.own_problem(run, self.data))
            write_private(kept / "offer.json", offer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            typer.echo(f"refused: {error}", err=True)
            digest = "" if run is None else run.digest
            return "refuse", {"run": digest, "reason": str(error)}
        typer.echo(f"accepted: {run.name} ({run.digest}), {run.rounds} rounds")
        return "accept", self.acceptance()

    def acceptance(self) -> dict[str, Any]:
        """What the starter is told; the number of rows only where it is needed."""
        rows = int(self.setting.own.counts[0]) if self.setting.weighted else 1
        return {"run": self.setting.run.digest, "rows": rows}

    def unfinished(self) -> str | None:
        """The offer of a run that was begun here and is not over."""
        for path in sorted(self.home.glob("*/offer.json")):
            if not (path.parent / "result.json").exists():
                return path.read_text()
        return None

    def take_part(self, post: Any, wait: float | None) -> None:
        """One run, from its offer (or its checkpoint) to its end."""
        from tacit.cli import party
        from tacit.privacy import Ledger
        from tacit.runtime.federation import agreement
        from tacit.runtime.federation.drive import run_party
        from tacit.runtime.progress import Bar

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
            )
        else:
            run = self.read(offer)
            self.setting = party.setting_of(run, party.own_problem(run, self.data))
            typer.echo(f"going on with {run.name} ({run.digest})")
        run = self.setting.run
        with Ledger(self.home / "ledger.db") as ledger:
            self.setting, charge = party.with_budget(
                self.setting, me.name, ledger, self.policy.max_epsilon
            )
            agent = party.make_agent(self.setting, self.desk(charge), self.secret)
            with Bar(sys.stderr.isatty(), run.rounds) as bar:
                run_party(agent, post, self.watcher(post, ledger, bar))
            self.finish(agent, ledger)

    def desk(self, charge: Any) -> Any:
        from tacit.cli import party
        from tacit.runtime.federation.party import Desk
        from tacit.runtime.federation.store import Store
        from tacit.runtime.federation.wire import Identity

        me, run = self.invited, self.setting.run
        who = Identity(me.federation, run.digest, "state", 0, 0, me.name, me.name)
        key = party.derive(self.secret, f"store {run.digest}")
        store = Store(self.home / run.digest, key, who)
        return Desk(
            me.name,
            me.federation,
            run.digest,
            self.envelope,
            store,
            charge,
            1.0,
            self.greet,
        )

    def greet(self, letter: Any) -> Any:
        """The starter may not have heard that we accepted."""
        from tacit.runtime.federation.agreement import note

        me, one = self.invited, letter.identity
        if one.kind != "offer" or one.sender != me.coordinator:
            return None
        if self.read(letter.text).digest != self.setting.run.digest:
            return None
        words = json.dumps(self.acceptance())
        return note("accept", me.federation, me.name, me.coordinator, words)

    def watcher(self, post: Any, ledger: Any, bar: Any) -> Any:
        from tacit.cli import status

        run = self.setting.run

        def watch(agent: Any) -> None:
            now = time.monotonic()
            more = {
                "connected": post.connected,
                "seconds_since": {k: now - v for k, v in agent.heard_at.items()},
                **self.budget(ledger),
            }
            more |= {"under_way": post.under_way()}
            status.write_status(self.home, agent, run.rounds, more)
            agent.desk.remark = status.remark(agent, self.budget(ledger))
            bar.update(min(agent.round, run.rounds), None)

        return watch

    def budget(self, ledger: Any) -> dict[str, Any]:
        told = self.setting.run.privacy
        if told is None:
            return {}
        spent = ledger.spent(float(told["delta"]))
        allowed = self.policy.max_epsilon or float(told["epsilon"])
        used = spent.get((self.invited.name, self.setting.observer), 0.0)
        return {
            "epsilon_spent": used,
            "epsilon_allowed": allowed,
            "delta": float(told["delta"]),
            "observer": self.setting.observer,
            "unit": str(told.get("unit", "record")),
        }

    def finish(self, agent: Any, ledger: Any) -> None:
        """Keep the result here; nothing of it is sent."""
        import numpy as np

        from tacit.cli import party
        from tacit.runtime.federation.server_agent import ServerAgent

        own, run = self.setting.own, self.setting.run
        models = {"own": agent.model()}
        if isinstance(agent, ServerAgent):
            models["shared"] = agent.shared()
        told: dict[str, Any] = {"run": run.digest, "name": run.name}
        for name, model in models.items():
            told[f"loss_{name}"] = own.loss(model)
            if own.model.classes is not None:
                told[f"accuracy_{name}"] = own.accuracy(model)
        told |= self.budget(ledger) | {"sent": agent.counts.sent}
        told |= {"sent_bytes": agent.counts.sent_bytes}
        kept = self.home / run.digest
        np.savez(kept / "models.npz", **models)  # pyright: ignore
        if run.privacy is not None:
            report = party.privacy_of(self.setting).as_dict()
            (kept / "privacy.json").write_text(json.dumps(report, indent=1))
        (kept / "result.json").write_text(json.dumps(told, indent=1))
        typer.echo(f"the run is over; models and numbers are in {kept}")
