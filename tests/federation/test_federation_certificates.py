"""Keys and certificates that a flipped bit has made into something else."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

import tacita
from tacita.federation import Hub, Invitation, certificates

#: What says in a key that it is one of an elliptic curve, and of which.
KIND = bytes.fromhex("06072a8648ce3d0201")
CURVE = bytes.fromhex("06082a8648ce3d030107")


def altered(pem: str, part: bytes) -> str:
    """The same key with the last bit of a part flipped."""
    first, *middle, last = pem.strip().split("\n")
    content = base64.b64decode("".join(middle))
    assert part in content
    content = content.replace(part, part[:-1] + bytes([part[-1] ^ 1]))
    return "\n".join([first, base64.b64encode(content).decode(), last, ""])


@pytest.mark.parametrize("part", [KIND, CURVE])
def test_a_key_of_an_unknown_kind_is_damaged(tmp_path: Path, part: bytes):
    pem = certificates.key_pem(certificates.new_key()).decode()
    with pytest.raises(ValueError):
        certificates.load_key(altered(pem, part).encode())
    hub = Hub.create(tmp_path / "hub", "town", ["ada", "bob"], port=0)
    path = hub.invitations["ada"]
    told = json.loads(path.read_text())
    (name,) = (k for k, v in told["secrets"].items() if "PRIVATE KEY" in str(v))
    told["secrets"][name] = altered(told["secrets"][name], part)
    path.write_text(json.dumps(told))
    with pytest.raises(tacita.TacitaError, match="are damaged") as refusal:
        Invitation.load(path)
    assert "\n" not in str(refusal.value)
