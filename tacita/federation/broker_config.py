"""What a `nats-server` is told: where it listens, whom it lets in, who may say what.

A party publishes only as itself and reads only what is addressed to it:

    tacita.FEDERATION.RECEIVER.SENDER

A certificate names its party and its serial number, so that an older certificate of
the same party can be shut out. Several brokers are joined into a cluster, over
certificates of an authority of its own: no party can pass for a broker.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Bytes of one message; larger letters are cut into several.
MOST_PAYLOAD = 8 << 20
#: Bytes that the broker holds for a slow reader before it cuts it off.
MOST_PENDING = 1 << 30
CONFIG = "broker.conf"
#: Subscriptions of one connection; a party needs one.
_MOST_SUBSCRIPTIONS = 16
#: Connections beyond four for each party: for those that come back before they left.
_SPARE_CONNECTIONS = 16


@dataclass(frozen=True)
class Broker:
    """One broker.

    Attributes:
        host: Name or address under which parties reach it.
        port: Its port.
        monitor: Port of its own numbers, on loopback only.
        cluster: Port for the other brokers.
        listen: Address that it listens on.
    """

    host: str
    port: int
    monitor: int
    cluster: int
    listen: str

    @property
    def server(self) -> str:
        """Its address for parties."""
        return _address(self.host, self.port)

    @property
    def here(self) -> str:
        """An address at which this machine reaches it."""
        every = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        return every.get(self.listen, self.listen)


def listen_for(host: str) -> str:
    """The address to listen on: loopback if that is where parties are sent.

    >>> listen_for("127.0.0.1"), listen_for("localhost"), listen_for("hub.example.org")
    ('127.0.0.1', '127.0.0.1', '0.0.0.0')
    """
    if host == "localhost":
        return "127.0.0.1"
    try:
        if ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass
    return "0.0.0.0"


def certificate_name(party: str, serial: int) -> str:
    """The common name in a party's certificate."""
    return f"{party}.{serial}"


def config(
    federation: str,
    allowed: Mapping[str, Sequence[int]],
    brokers: Sequence[Broker],
    place: int,
) -> str:
    """The configuration of one broker; paths are meant from its own folder.

    Args:
        federation: The federation's name.
        allowed: Serial numbers of the certificates that open the door, by party.
        brokers: All brokers.
        place: Which of them this is.
    """
    users = "\n".join(
        f'    {{ user: "CN={certificate_name(name, serial)}", permissions: {{\n'
        f'        publish: {{ allow: ["tacita.{federation}.*.{name}"] }}\n'
        f'        subscribe: {{ allow: ["tacita.{federation}.{name}.*"] }} }} }}'
        for name, serials in allowed.items()
        for serial in serials
    )
    me = brokers[place]
    return f"""server_name: "{federation}-{place + 1}"
listen: "{_address(me.listen, me.port)}"
http: "127.0.0.1:{me.monitor}"
max_connections: {4 * len(allowed) + _SPARE_CONNECTIONS}
max_subscriptions: {_MOST_SUBSCRIPTIONS}
max_payload: {MOST_PAYLOAD}
max_pending: {MOST_PENDING}
write_deadline: "30s"
tls {{
  cert_file: "broker.pem"
  key_file: "broker.key"
  ca_file: "authority.pem"
  verify_and_map: true
  min_version: "1.3"
  timeout: 10
}}
authorization {{
  users: [
{users}
  ]
}}
{_cluster(federation, brokers, place)}"""


def _cluster(federation: str, brokers: Sequence[Broker], place: int) -> str:
    if len(brokers) == 1:
        return ""
    me = brokers[place]
    others = [b for b in brokers if b is not me]
    routes = ", ".join(f'"tls://{_address(b.host, b.cluster)}"' for b in others)
    return f"""cluster {{
  name: "{federation}"
  listen: "{_address(me.listen, me.cluster)}"
  no_advertise: true
  routes: [{routes}]
  tls {{
    cert_file: "cluster-broker.pem"
    key_file: "cluster-broker.key"
    ca_file: "cluster.pem"
    verify: true
    timeout: 10
  }}
}}
"""


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
