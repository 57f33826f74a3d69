"""The hub: it makes a federation, runs its brokers, and tells parties the roster."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import broker, certificates
from tacita.federation.broker_config import CONFIG, Broker, listen_for
from tacita.federation.hub_folder import (
    OWN_INVITATION,
    OWNER,
    RECORD,
    ROSTER,
    Candidate,
    HubFolder,
)
from tacita.federation.protocol import PROTOCOL
from tacita.federation.registrar import Registrar
from tacita.federation.roster import HUB, Roster, check_party
from tacita.federation.seal import PrivateKeys, private_folder

_HOST = re.compile(r"^[\w.:-]+$")
_PORTS = 1 << 16


class Hub(HubFolder):
    """A hub. Used as a context, it runs the brokers.

    Args:
        folder: Where `Hub.create` has made it.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.children: list[subprocess.Popen] = []
        self._registrar: Registrar | None = None

    def start(self, only: Sequence[int] = ()) -> subprocess.Popen:
        """Start the brokers, wait until they listen, and tell the roster.

        Args:
            only: Numbers of the brokers that run here; all if there are none.

        Returns:
            The first broker's process.
        """
        numbers = list(only) or [n + 1 for n in range(len(self.brokers))]
        for number in numbers:
            if not 1 <= number <= len(self.brokers):
                refuse(f"expected a broker from 1 to {len(self.brokers)}, got {number}")
        self.children = []
        try:
            for number in numbers:
                self.children.append(self.start_broker(number))
            if self._registrar is None:
                files = (self.folder / OWN_INVITATION, self.folder / ROSTER)
                self._registrar = Registrar(*files, self._reload)
        except BaseException:
            self.stop()  # no broker outlives us
            raise
        return self.children[0]

    def start_broker(self, number: int) -> subprocess.Popen:
        """Start one broker, and wait until it listens."""
        one, path = self.brokers[number - 1], self.broker_folder(number - 1) / CONFIG
        return broker.start(path, one.port, address=one.here)

    def _reload(self) -> None:
        """Let the brokers read whom they let in."""
        for child in self.children:
            broker.reload(child)

    def stop(self) -> None:
        """Stop the brokers; they keep nothing, so they may be started again."""
        if self._registrar is not None:
            self._registrar.close()
            self._registrar = None
        for child in self.children:
            broker.stop(child)

    def __enter__(self) -> Hub:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @classmethod
    def create(
        cls,
        folder: str | Path,
        name: str,
        agents: Sequence[str] = (),
        *,
        coordinator: str = "coordinator",
        host: str | Sequence[str] = "127.0.0.1",
        port: int = 4222,
        brokers: int | None = None,
        listen: str | None = None,
    ) -> Hub:
        """Make a federation: authority, owner, brokers; for trials, parties too.

        Args:
            folder: A new folder; it holds the authority's key and must stay private.
            name: The federation's name.
            agents: Names of agents whose keys the hub makes, and could use to read
                their letters; none where all sites send requests.
            coordinator: Name of the coordinator that is made along with them.
            host: Names or addresses under which parties reach the brokers.
            port: Port of the first broker; 0 for ports that are free now.
            brokers: How many; by default one for each host.
            listen: Address to listen on; by default loopback if that is the host,
                else all.
        """
        folder = Path(folder)
        hosts = [host] if isinstance(host, str) else list(host)
        parties = dict.fromkeys(agents, "agent")
        if agents:
            parties[coordinator] = "coordinator"
            if len(parties) != len(agents) + 1:
                named = ", ".join([*agents, coordinator])
                refuse(f"every party needs a name of its own, got {named}")
        for one in (name, *parties):
            check_party(one)
        made = _brokers(hosts, port, len(hosts) if brokers is None else brokers, listen)
        if (folder / RECORD).exists():
            refuse(f"{folder} holds a federation already; choose another folder")
        private_folder(folder)
        for authority in ("authority", "cluster"):
            ca = certificates.authority(f"{name} {authority}")
            write_private(folder / f"{authority}.pem", ca.certificate)
            write_private(folder / f"{authority}.key", ca.key)
        owner = PrivateKeys.fresh()
        owner.save(folder / OWNER)
        told: dict[str, Any] = {
            "protocol": PROTOCOL,
            "federation": name,
            "allowed": {},
            "serials": {},
        }
        told |= {
            "owner": owner.public.as_words(),
            "brokers": [vars(one) for one in made],
        }
        write_private(folder / RECORD, json.dumps(told, indent=1))
        empty = Roster(name, 0, {}, tuple(one.server for one in made))
        write_private(folder / ROSTER, empty.signed(owner))
        hub = cls(folder)
        hub.renew_brokers()
        everybody = {HUB: "hub", **parties}
        hub.admit([Candidate.fresh(who, role) for who, role in everybody.items()])
        return hub


def _brokers(
    hosts: Sequence[str], port: int, count: int, listen: str | None
) -> list[Broker]:
    """Where the brokers are: one on each host, or all on the same with ports apart."""
    for host in (*hosts, *([] if listen is None else [listen])):
        if not _HOST.match(host):
            refuse(f"expected a host's name or address, got host={host!r}")
    if count < 1 or (len(hosts) > 1 and count != len(hosts)):
        refuse(f"expected one host, or one for each broker, got {len(hosts)} hosts")
    if not 0 <= port < _PORTS - count:
        refuse(f"expected a port from 1 to {_PORTS - 1}, got {port}")
    made = []
    for place in range(count):
        host = hosts[place % len(hosts)]
        own = port + place if len(hosts) == 1 else port
        if port == 0:
            ports = (broker.free_port(), broker.free_port(), broker.free_port())
        else:
            ports = (own, _beside(own, 4000), _beside(own, 2000))
        made.append(Broker(host, *ports, listen or listen_for(host)))
    return made


def _beside(port: int, distance: int) -> int:
    """A port at a distance, as NATS has them: 4222, 6222 and 8222."""
    return port + distance if port + distance < _PORTS else port - distance
