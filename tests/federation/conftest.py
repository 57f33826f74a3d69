"""A broker on loopback for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tacita.federation import Hub
from tests.federation.by_hand import ByHand


@pytest.fixture(scope="session")
def clinics(tmp_path_factory):
    """Invitations of two agents and a coordinator, whose broker is running."""
    folder = tmp_path_factory.mktemp("hub")
    with Hub.create(folder, "clinics", ["oslo", "turku"], port=0) as hub:
        yield hub.invitations


@pytest.fixture(autouse=True)
def agents_end_with_their_test() -> Iterator[None]:
    """A thread that goes on would compile, and write, in the midst of other tests."""
    yield
    ByHand.end_all()
