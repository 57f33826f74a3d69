"""What the hub tells of itself: brokers, who is connected, when certificates end."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tacita.federation import certificates
from tacita.federation.broker_config import Broker
from tacita.federation.hub import Hub
from tacita.federation.metrics import Sample

#: Number of the broker's own report, ours, and its meaning.
_OF_BROKER = (
    ("connections", "connections", "gauge", "Connections that are open."),
    ("in_msgs", "messages_in_total", "counter", "Messages that came in."),
    ("out_msgs", "messages_out_total", "counter", "Messages that went out."),
    ("in_bytes", "in_bytes_total", "counter", "Bytes that came in."),
    ("out_bytes", "out_bytes_total", "counter", "Bytes that went out."),
    ("slow_consumers", "slow_readers_total", "counter", "Readers that were cut off."),
)


@dataclass(frozen=True)
class BrokerNumbers:
    """One broker as it sees itself.

    Attributes:
        server: Its address.
        numbers: Its own report; None if it does not answer here.
        parties: Who is connected to it.
    """

    server: str
    numbers: dict[str, Any] | None
    parties: frozenset[str]


def ask(broker: Broker) -> BrokerNumbers:
    """A broker's own numbers, which it tells on loopback."""
    try:
        numbers = _get(broker.monitor, "varz")
        users = _get(broker.monitor, "connz?auth=true&limit=65536")["connections"]
    except (OSError, ValueError, KeyError):
        return BrokerNumbers(broker.server, None, frozenset())
    names = {str(u.get("authorized_user", "")).removeprefix("CN=") for u in users}
    parties = frozenset(name.rpartition(".")[0] for name in names)
    return BrokerNumbers(broker.server, numbers, parties)


def _get(port: int, what: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{what}", timeout=2) as answer:
        return json.loads(answer.read(1 << 26))


class HubNumbers:
    """The hub's numbers, for its metrics and its status.

    Args:
        hub: The hub.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def ends(self) -> dict[str, int]:
        """When every certificate ends, in seconds since 1970."""
        hub = self._hub
        authority = certificates.read(hub.folder / "authority.pem")
        found = {"the authority": certificates.expires(authority)}
        for place, one in enumerate(hub.brokers):
            made = certificates.read(hub.broker_folder(place) / "broker.pem")
            found[f"broker {one.server}"] = certificates.expires(made)
        members = hub.roster.members.items()
        return found | {name: member.expires for name, member in members}

    def trouble(self) -> str | None:
        """What is wrong."""
        dead = [c for c in self._hub.children if c.poll() is not None]
        if dead or not self._hub.children:
            return "a broker has ended" if dead else "no broker was started"
        return None

    def samples(self) -> Iterator[Sample]:
        """The numbers."""
        hub = self._hub
        here = {"federation": hub.federation}
        roster = hub.roster
        for name, words, value in (
            ("roster_version", "Version of the roster.", roster.version),
            ("members", "Parties on the roster.", len(roster.names)),
        ):
            yield Sample(f"tacita_{name}", "gauge", words, float(value), here)
        for party, end in self.ends().items():
            words = "When the certificate ends."
            name = "tacita_certificate_end_timestamp_seconds"
            yield Sample(name, "gauge", words, float(end), {"party": party})
        found = [ask(broker) for broker in hub.brokers]
        for key, name, kind, words in _OF_BROKER:
            for one in found:
                if one.numbers is not None:
                    where = {"broker": one.server}
                    value = float(one.numbers.get(key, 0))
                    yield Sample(f"tacita_broker_{name}", kind, words, value, where)
        for one in found:
            up = float(one.numbers is not None)
            where = {"broker": one.server}
            yield Sample("tacita_broker_up", "gauge", "Whether it answers.", up, where)
