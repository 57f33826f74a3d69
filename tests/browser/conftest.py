"""One browser for every file of tests; none, and the reason, where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    if reason := chromium.missing():
        pytest.skip(reason)
    with chromium.chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made
