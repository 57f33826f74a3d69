"""Signed privacy reports: what was signed stands, and every flipped byte shows."""

import json
import random

import pytest

from tacita.check import TacitaError
from tacita.federation import PrivateKeys, fingerprint, make_request, signed_report
from tests.trace.test_verdict import told


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "privacy.json"
    path.write_bytes(told().content())
    return path


def refused(path):
    with pytest.raises(TacitaError) as caught:
        signed_report.verify(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_report_is_what_was_signed(report):
    assert "is not signed" in refused(report)
    keys = PrivateKeys.fresh()
    beside = signed_report.sign(report, keys, "Ann", "a" * 64)
    signed = signed_report.verify(report)
    assert (signed.signer, signed.ledger_head) == ("Ann", "a" * 64)
    assert signed.sentence.endswith("within the budget of 2")
    assert signed.fingerprint == fingerprint(keys.public)
    assert beside.name == "privacy.json.signature"


def test_every_flipped_byte_is_refused(report):
    beside = signed_report.sign(report, PrivateKeys.fresh(), "Ann")
    draw = random.Random(0)
    for file, least in ((report, 60), (beside, None)):
        whole = file.read_bytes()
        places = range(len(whole)) if least is None else range(0, len(whole), least)
        for place in places:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << draw.randrange(8)
            file.write_bytes(flipped)
            refused(report)
        for cut in (whole[:-1], whole + b" ", b"", b"[" * 9999):
            file.write_bytes(cut)
            refused(report)
        file.write_bytes(whole)
    signed_report.verify(report)


def test_nobody_signs_for_another(report):
    """Neither with other keys under the same name, nor with words of their own."""
    beside = signed_report.sign(report, PrivateKeys.fresh(), "Ann")
    words = json.loads(beside.read_text())
    other = json.loads(
        signed_report.sign(report, PrivateKeys.fresh(), "Eve").read_text()
    )
    other["time"] = "2020-01-31T12:00:00+00:00"
    for key in ("signature", "keys", "signer", "time"):
        beside.write_text(json.dumps(words | {key: other[key]}, indent=1))
        assert "was changed or is no signature" in refused(report)
    for key in ("sentence", "verdict", "time"):
        beside.write_text(json.dumps(words | {key: 5}, indent=1))
        assert "was changed or is no signature" in refused(report)


def test_a_signer_cannot_stand_for_another_sentence(report, monkeypatch):
    kind = signed_report.verdict(told(epsilon=0.5))
    monkeypatch.setattr(signed_report, "verdict", lambda _: kind)
    signed_report.sign(report, PrivateKeys.fresh(), "Ann")
    monkeypatch.undo()
    assert "signed another sentence" in refused(report)


def test_keys_are_a_sites_or_made_at_the_first_use(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    keys, name = signed_report.signing_keys()
    assert name and signed_report.signing_keys()[0].public == keys.public
    kept = tmp_path / "settings" / "tacita" / "keys.json"
    assert kept.stat().st_mode & 0o077 == 0
    private, _ = make_request(tmp_path, "oslo")
    keys, name = signed_report.signing_keys(private)
    assert name == "oslo" and keys.public == PrivateKeys.load(private).public
    private.chmod(0o644)
    with pytest.raises(TacitaError, match="chmod 600"):
        signed_report.signing_keys(private)
    (tmp_path / "no.json").write_text("{}")
    (tmp_path / "no.json").chmod(0o600)
    with pytest.raises(TacitaError, match="holds no keys"):
        signed_report.signing_keys(tmp_path / "no.json")
