"""`tacita coordinate`: propose a run, and coordinate it."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "Example:  tacita coordinate run.toml --invitation coordinator.json"


def coordinate(
    file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run.")],
    invitation: Annotated[
        Path, typer.Option(help="The invitation of the coordinator.")
    ],
    folder: Annotated[
        Path | None, typer.Option(help="Where state and results are kept.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Own keys, if they were not made by the hub.")
    ] = None,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for all agents.")
    ] = 3600.0,
) -> None:
    """Propose a run to all agents, wait until they accept, and coordinate it.

    With an algorithm on a graph the agents need no coordinator: the run is proposed,
    and the rest is theirs. Killed and started again, it goes on where it was.
    """
    from tacita.check import refuse
    from tacita.federation import setting
    from tacita.federation.description import Description
    from tacita.federation.hub import Invitation
    from tacita.federation.nats_post import NatsPost
    from tacita.federation.seal import private_folder
    from tacita.job.run_file import read

    # The event loop remarks on every TLS connection that ends, which is no news.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    invited = Invitation.load(invitation, keys)
    if invited.name != invited.coordinator:
        refuse(
            f"{invitation} invites the agent {invited.name!r}; a run is proposed with "
            f"the invitation of {invited.coordinator!r}"
        )
    table = read(file)
    name = str(table.pop("name", file.stem))
    agents = tuple(table.pop("agents", invited.agents))
    run = Description(invited.federation, name, invited.name, agents, table)
    # Agents agree to a budget against somebody: the description names whom.
    run = setting.with_observer(run)
    setting = setting.setting_of(run, setting.blank_problem(run))
    home = folder or Path(f"tacita-{invited.federation}-{invited.name}")
    private_folder(home)
    with NatsPost(invited) as post:
        _Starter(invited, home, setting).lead(post, wait)


class _Starter:
    """The coordinator's program."""

    def __init__(self, invited: Any, home: Path, setting: Any) -> None:
        from tacita.federation.seal import Sealed

        self.invited, self.home, self.setting = invited, home, setting
        self.run = setting.run
        self.kept = home / self.run.digest
        self.kept.mkdir(exist_ok=True, mode=0o700)
        self.envelope = Sealed(invited.name, invited.keys, invited.others)
        self.offer = self.run.signed(invited.keys)

    def lead(self, post: Any, wait: float) -> None:
        """Agree, run, keep the result."""
        from tacita.check import refuse
        from tacita.cli import status
        from tacita.federation import setting
        from tacita.federation.drive import run_party
        from tacita.runtime.progress import Bar

        rows = self.agree(post, wait)
        if self.setting.weighted and len(rows) < len(self.run.agents):
            refuse("weights='samples' needs everybody's rows; leave out least_agents")
        if self.setting.on_graph:
            typer.echo("all agents have accepted; the run is theirs")
            status.write_note(self.home, self.invited.name, self.run.digest)
            return
        made = setting.make_coordinator(self.setting, self.desk(), rows)
        begun = time.monotonic()
        with Bar(sys.stderr.isatty(), self.run.rounds) as bar:
            run_party(made, post, self.watcher(post, bar))
        self.finish(made, time.monotonic() - begun)

    def agree(self, post: Any, wait: float) -> dict[str, int]:
        """Everybody's consent, which is kept: it is asked for once."""
        from tacita.check import TacitaError
        from tacita.federation import agreement
        from tacita.federation.seal import write_private

        path = self.kept / "accepted.json"
        if path.exists():
            return json.loads(path.read_text())
        typer.echo(f"{self.run.name} ({self.run.digest}) is offered to the agents")
        try:
            rows = agreement.gather(
                self.run, self.offer, self.envelope, post, wait, typer.echo
            )
        except (TacitaError, KeyboardInterrupt):
            # Whoever accepted already would wait for ever.
            agreement.withdraw(self.run, self.envelope, post)
            raise
        write_private(path, json.dumps(rows))
        return rows

    def desk(self) -> Any:
        from tacita.federation import setting
        from tacita.federation.checkpoints import Store
        from tacita.federation.party import Desk, no_charge
        from tacita.federation.wire import Identity

        me, run = self.invited, self.run
        who = Identity(me.federation, run.digest, "state", 0, 0, me.name, me.name)
        key = setting.derive(
            setting.secret_of(self.home, me.keys), f"store {run.digest}"
        )
        store = Store(self.kept, key, who)
        return Desk(
            me.name,
            me.federation,
            run.digest,
            self.envelope,
            store,
            no_charge,
            1.0,
            self.greet,
        )

    def greet(self, letter: Any) -> Any:
        """Somebody who lost its folder, or comes late, is offered the run again."""
        from tacita.federation.agreement import note

        one = letter.identity
        if one.kind != "ask" or one.sender not in self.run.agents:
            return None
        me = self.invited
        return note("offer", me.federation, me.name, one.sender, self.offer)

    def watcher(self, post: Any, bar: Any) -> Any:
        from tacita.cli import status

        def watch(made: Any) -> None:
            now = time.monotonic()
            since = {k: now - v for k, v in made.heard_at.items()}
            more = {"connected": post.connected, "seconds_since": since}
            more |= {"agents": list(self.run.agents), "told": status.told_by(made)}
            more |= {"under_way": post.under_way(), "promise": self.promise()}
            more |= {"dropped": post.dropped}
            status.write_status(self.home, made, self.run.rounds, more)
            bar.update(min(made.round, self.run.rounds) - 1, None)

        return watch

    def promise(self) -> dict[str, Any] | None:
        """What the agents' budgets are about, for the status."""
        told = self.run.privacy
        if told is None:
            return None
        unit = str(told.get("unit", "record"))
        observer = self.setting.observer
        return {"delta": float(told["delta"]), "observer": observer, "unit": unit}

    def finish(self, made: Any, seconds: float) -> None:
        """Keep the shared model."""
        import numpy as np

        counts = made.counts
        told = {
            "run": self.run.digest,
            "name": self.run.name,
            "rounds": self.run.rounds,
            "seconds": seconds,
            "letters": counts.sent + counts.received,
            "bytes": counts.sent_bytes + counts.received_bytes,
            "repeated": counts.repeated,
            "refused": dict(counts.refused),
        }
        np.savez(self.kept / "models.npz", shared=made.model())
        (self.kept / "result.json").write_text(json.dumps(told, indent=1))
        typer.echo(f"the run is over; the shared model is in {self.kept}")
