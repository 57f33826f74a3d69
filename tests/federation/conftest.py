"""A broker on loopback for the tests of this folder."""

from __future__ import annotations

import socket

import pytest

from tacita.federation import broker, hub


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@pytest.fixture(scope="session")
def clinics(tmp_path_factory):
    """A hub with two agents and a coordinator, and its broker running."""
    folder = tmp_path_factory.mktemp("hub")
    port = free_port()
    invitations = hub.make(folder, "clinics", ["oslo", "turku"], port=port)
    with broker.running(folder / hub.CONFIG, port):
        yield invitations
