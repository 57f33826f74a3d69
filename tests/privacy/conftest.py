import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def vectors():
    """Numbers computed independently, in high precision, from the papers' formulas."""
    return json.loads((Path(__file__).parent / "vectors.json").read_text())
