"""A broker on loopback for the tests of this folder."""

from __future__ import annotations

import pytest

from tacita.federation import Hub


@pytest.fixture(scope="session")
def clinics(tmp_path_factory):
    """Invitations of two agents and a coordinator, whose broker is running."""
    folder = tmp_path_factory.mktemp("hub")
    with Hub.create(folder, "clinics", ["oslo", "turku"], port=0) as hub:
        yield hub.invitations
