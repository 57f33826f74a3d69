"""A privacy report that somebody signs, and what whoever is shown it can check.

Beside `privacy.json` lies `privacy.json.signature`: who signed what and when, the head
of the ledger where there is one, and an Ed25519 signature over all of that and over the
digest of the report. A signature shows that the holder of a key stood for these very
bytes; whose key it is, its fingerprint shows to who was told it by another way.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tacita.check import printable, refuse
from tacita.disk import write_whole
from tacita.federation.invitation import fingerprint
from tacita.federation.json_words import read_table
from tacita.federation.seal import (
    PrivateKeys,
    PublicKeys,
    read_private,
    require_signature,
)
from tacita.federation.wire import LetterRefused
from tacita.trace import PrivacyReport, verdict

_DOMAIN = b"tacita signed privacy report 1\n"
#: Bytes of a report, and of a signature, that are read at most.
_MOST_REPORT, _MOST_SIGNATURE = 1 << 26, 1 << 16
#: The report of a run folder, and what a signature's file adds to its name.
REPORT, SUFFIX = "privacy.json", ".signature"


@dataclass(frozen=True)
class Signed:
    """What a signature is over.

    Attributes:
        report: The digest (SHA-256) of the report's bytes.
        sentence: What the report comes to, in words.
        verdict: How it stands to its budget.
        signer: How the signer is called, as the signer says.
        keys: Public halves of the signer's keys.
        time: When, in UTC, as the signer's clock says.
        ledger_head: The digest of the last row of the signer's ledger, if there is one.
    """

    report: str
    sentence: str
    verdict: str
    signer: str
    keys: Mapping[str, str]
    time: str
    ledger_head: str | None = None

    def content(self) -> bytes:
        """The bytes that are signed: the same words give the same bytes."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return _DOMAIN + text.encode()

    def of_words_only(self) -> Signed:
        """Itself; a TypeError if something else than words stands where words do."""
        words = {**vars(self), "keys": "", "ledger_head": self.ledger_head or ""}
        if not all(isinstance(word, str) for word in words.values()):
            raise TypeError("expected words only")
        return self

    @property
    def fingerprint(self) -> str:
        """Of the signer's keys, to be read out: the one that a hub's owner knows."""
        return fingerprint(PublicKeys.of_words(self.keys))


def sign(
    path: Path, keys: PrivateKeys, signer: str, ledger_head: str | None = None
) -> Path:
    """Sign a privacy report; returns the file of the signature, beside it."""
    content, report = _report(path)
    told = verdict(report)
    signed = Signed(
        report=hashlib.sha256(content).hexdigest(),
        sentence=told.sentence,
        verdict=told.keeping.value,
        signer=signer,
        keys=keys.public.as_words(),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        ledger_head=ledger_head,
    )
    words = _file(signed, keys.sign(signed.content()))
    beside = signature_of(path)
    write_whole(beside, lambda to: to.write_bytes(words))
    return beside


def verify(path: Path) -> Signed:
    """Check that the report is what was signed; returns what the signature says."""
    content, report = _report(path)
    beside = signature_of(path)
    if not beside.exists():
        refuse(
            f"{path} is not signed: there is no {beside.name} beside it; sign it "
            "with: tacita privacy sign"
        )
    words = _bytes_of(beside, _MOST_SIGNATURE)
    try:
        told = read_table(words, "the file")
        signature = bytes.fromhex(told.pop("signature"))
        signed = Signed(**told).of_words_only()
        if _file(signed, signature) != words:
            raise ValueError("written in another way")
        keys = PublicKeys.of_words(signed.keys)
        require_signature(keys, signature, signed.content(), "it")
    except (LetterRefused, KeyError, TypeError, ValueError):
        refuse(f"{beside} was changed or is no signature; ask the signer for it again")
    who = printable(signed.signer, 100)
    if hashlib.sha256(content).hexdigest() != signed.report:
        refuse(
            f"{path} is not what {who} signed on {signed.time[:10]}: it was changed; "
            "ask the signer for it again"
        )
    read = verdict(report)
    if (read.sentence, read.keeping) != (signed.sentence, signed.verdict):
        refuse(
            f"{path} comes to {read.sentence!r}, and {who} signed another sentence: "
            f"{printable(signed.sentence, 300)!r}; ask the signer"
        )
    return signed


def _file(signed: Signed, signature: bytes) -> bytes:
    """The file of a signature, to the byte."""
    words = {**asdict(signed), "signature": signature.hex()}
    return json.dumps(words, indent=1).encode()


def grounds_of(path: Path) -> str:
    """What the sentence of a report rests on."""
    return verdict(_report(path)[1]).grounds


def signature_of(path: Path) -> Path:
    """Where the signature of a report lies."""
    return path.with_name(path.name + SUFFIX)


def signing_keys(path: Path | None = None) -> tuple[PrivateKeys, str]:
    """Keys to sign with, and how their holder is called.

    Args:
        path: A site's key file, or an invitation that holds keys. If left out, the
            user's own keys, made at the first call.
    """
    if path is None:
        home = _own_file()
        if not home.exists():
            PrivateKeys.fresh().save(home)
        return PrivateKeys.load(home), _user()
    content = read_private(path)
    try:
        told = read_table(content, "the file")
        secrets = told.get("secrets", told)
        keys = PrivateKeys.of_words(secrets["private"])
    except (LetterRefused, KeyError, TypeError, ValueError, AttributeError):
        refuse(f"{path} holds no keys; name the key file of your site")
    return keys, str(told.get("name") or path.name.split(".")[0])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a name for its user
        return "unknown"


def _own_file() -> Path:
    """`$XDG_CONFIG_HOME/tacita/keys.json`, else `~/.config/tacita/keys.json`."""
    named = os.environ.get("XDG_CONFIG_HOME", "").strip()
    # The XDG base directory specification: a relative path is invalid, ignore it.
    home = Path(named) if Path(named).is_absolute() else Path.home() / ".config"
    return home / "tacita" / "keys.json"


def _report(path: Path) -> tuple[bytes, PrivacyReport]:
    content = _bytes_of(path, _MOST_REPORT)
    try:
        return content, PrivacyReport.from_dict(json.loads(content))
    except (ValueError, RecursionError, AttributeError):
        refuse(f"{path} is no privacy report; name the privacy.json of a run folder")


def _bytes_of(path: Path, most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; check the path")
    if len(content) > most:
        refuse(f"{path} has more than {most} bytes; it is none of Tacita's files")
    return content
