"""Envelopes: who wrote a letter is proven, and only its receiver can read it.

Every party has an Ed25519 key to sign with and an X25519 key to be written to. A
sealed letter is

    magic, version, sender, receiver, ephemeral public key, box

where the box is AES-256-GCM over (signature, letter) under a key derived from the
ephemeral and the receiver's key, fresh for every envelope, with all that stands before
the box as associated data. The signature covers that head and the letter, hence the
letter's whole identity: a broker can neither read, alter nor readdress it, and a reader
cannot pass it on as written to somebody else. Repeats are told by the identity.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import wire
from tacita.federation.json_words import read_table
from tacita.federation.wire import Letter, LetterRefused, Reader, word_bytes

MAGIC = b"TACITENV\x01"
_SIGNATURE, _KEY = 64, 32
#: What an envelope adds to a letter, at most.
OVERHEAD = len(MAGIC) + 2 * 256 + _KEY + _SIGNATURE + 16
#: Every envelope has a key of its own, so the nonce need not differ.
_NONCE = bytes(12)


@dataclass(frozen=True)
class PublicKeys:
    """What others know of a party."""

    sign: bytes
    write_to: bytes

    def as_words(self) -> dict[str, str]:
        """For a file."""
        return {"sign": self.sign.hex(), "write_to": self.write_to.hex()}

    @classmethod
    def of_words(cls, words: Mapping[str, str]) -> PublicKeys:
        """Out of a file."""
        try:
            keys = cls(bytes.fromhex(words["sign"]), bytes.fromhex(words["write_to"]))
        except (KeyError, ValueError, TypeError):
            keys = cls(b"", b"")
        if not len(keys.sign) == len(keys.write_to) == _KEY:
            refuse("public keys are damaged; ask their owner for them again")
        return keys


class PrivateKeys:
    """A party's own keys. Never printed: `repr` shows the public part only.

    Args:
        sign: The Ed25519 key to sign with.
        read: The X25519 key to be written to.
        former: The keys before these, the newest first; they open what they locked,
            and sign nothing.
    """

    def __init__(
        self, sign: bytes, read: bytes, former: Sequence[PrivateKeys] = ()
    ) -> None:
        self._bytes, self.former = (sign, read), tuple(former)
        self._sign = Ed25519PrivateKey.from_private_bytes(sign)
        self._read = X25519PrivateKey.from_private_bytes(read)
        self.public = PublicKeys(
            self._sign.public_key().public_bytes_raw(),
            self._read.public_key().public_bytes_raw(),
        )

    @classmethod
    def fresh(cls) -> PrivateKeys:
        """New keys from the operating system."""
        return cls(os.urandom(_KEY), os.urandom(_KEY))

    def __repr__(self) -> str:
        return f"PrivateKeys(public={self.public.sign.hex()[:16]}...)"

    def sign(self, content: bytes) -> bytes:
        """A signature of the content."""
        return self._sign.sign(content)

    def derive(self, purpose: str) -> bytes:
        """A secret for one purpose, which says nothing about the others."""
        return _hkdf(self._bytes[0] + self._bytes[1], purpose.encode())

    def lasting(self, purpose: str) -> bytes:
        """As `derive`, and the same after the keys were replaced."""
        return (self, *self.former)[-1].derive(purpose)

    def lock(self, purpose: str, content: bytes) -> bytes:
        """The content for one's own eyes: unreadable without these keys."""
        nonce = os.urandom(12)
        box = AESGCM(self.derive(purpose))
        return nonce + box.encrypt(nonce, content, purpose.encode())

    def unlock(self, purpose: str, locked: bytes) -> bytes:
        """What was locked; refused if it was changed, or locked with other keys."""
        for keys in (self, *self.former):
            try:
                box = AESGCM(keys.derive(purpose))
                return box.decrypt(locked[:12], locked[12:], purpose.encode())
            except (InvalidTag, ValueError):
                continue
        raise LetterRefused(f"the {purpose} was changed, or locked with other keys")

    def exchange(self, other: bytes) -> bytes:
        """The secret shared with the holder of an ephemeral key."""
        return self._read.exchange(X25519PublicKey.from_public_bytes(other))

    def save(self, path: Path) -> None:
        """Write the keys into a file that only its owner may read."""
        words = {"private": self.as_private_words(), "public": self.public.as_words()}
        write_private(path, json.dumps(words))

    def as_private_words(self) -> dict[str, str]:
        """The secrets themselves, for a file of the owner's."""
        sign, read = self._bytes
        return {"sign": sign.hex(), "read": read.hex()}

    @classmethod
    def of_words(
        cls, words: Mapping[str, str], former: Sequence[Mapping[str, str]] = ()
    ) -> PrivateKeys:
        """The secrets out of a file, and those that they replaced."""
        older = [cls.of_words(one) for one in former]
        return cls(bytes.fromhex(words["sign"]), bytes.fromhex(words["read"]), older)

    @classmethod
    def load(cls, path: str | Path) -> PrivateKeys:
        """Read a key file back; one that others may read is refused."""
        content = read_private(path)
        try:
            told = read_table(content, "the file")
            return cls.of_words(told["private"], told.get("former", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            refuse(f"{path} holds no keys; make new ones or restore the file")


def private_folder(path: Path) -> Path:
    """A folder that only its owner may look into; one that is there is closed."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        refuse(
            f"cannot make {path} a folder of your own: {error.strerror}; name another"
        )
    return path


def read_private(path: str | Path) -> bytes:
    """Read a file that nobody but its owner may read; refuse looser permissions."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; check the path")
    if stat.S_IMODE(mode) & 0o077:
        refuse(f"{path} holds secrets, yet others may read it; run: chmod 600 {path}")
    return content


class Plain:
    """No envelope, for measuring what envelopes cost. Proves and hides nothing."""

    def close(self, letter: Letter) -> bytes:
        """The letter as it is."""
        return wire.encode(letter)

    def open(self, content: bytes, most_bytes: int) -> Letter:
        """The letter as it came."""
        return wire.decode(content, most_bytes)


class Sealed:
    """Envelopes of one party.

    Args:
        name: The party itself.
        keys: Its own keys.
        others: Public keys of the parties that it talks to.
    """

    def __init__(
        self, name: str, keys: PrivateKeys, others: Mapping[str, PublicKeys]
    ) -> None:
        self.name, self._keys, self._others = name, keys, dict(others)
        self._gone: set[str] = set()

    def know(self, others: Mapping[str, PublicKeys], once: Iterable[str] = ()) -> None:
        """Take these keys for the others' from now on; whoever is missing is gone.

        Args:
            others: Everybody's keys.
            once: Who was there when a run began.
        """
        self._gone = {*self._gone, *self._others, *once} - set(others)
        self._others = dict(others)

    def close(self, letter: Letter) -> bytes:
        """Sign a letter and encrypt it to its receiver."""
        one = letter.identity
        if one.sender != self.name:
            refuse(f"{self.name!r} cannot write as {one.sender!r}")
        if one.receiver in self._others:
            to = self._others[one.receiver].write_to
        elif one.receiver in self._gone:
            # A run may go on without it, and nobody reads what it would have been told.
            to = X25519PrivateKey.generate().public_key().public_bytes_raw()
        else:
            refuse(f"no public key of {one.receiver!r} is known")
        ephemeral = X25519PrivateKey.generate()
        point = ephemeral.public_key().public_bytes_raw()
        names = word_bytes(one.sender) + word_bytes(one.receiver)
        head = MAGIC + names + point
        content = wire.encode(letter)
        signature = self._keys.sign(_signed(head, to, content))
        shared = ephemeral.exchange(_writable(to))
        box = AESGCM(_box_key(shared, head, to))
        return head + box.encrypt(_NONCE, signature + content, head)

    def open(self, content: bytes, most_bytes: int) -> Letter:
        """Decrypt and check a letter; `LetterRefused` says what is wrong with it."""
        if len(content) > most_bytes + OVERHEAD:
            raise LetterRefused(f"{len(content)} bytes are more than is accepted here")
        head, sender, receiver = _read_head(content)
        if receiver != self.name:
            raise LetterRefused(f"a letter to {receiver!r} came to {self.name!r}")
        if sender not in self._others:
            raise LetterRefused("the sender is not one that this party talks to")
        mine = self._keys.public.write_to
        try:
            shared = self._keys.exchange(head[-_KEY:])
            box = AESGCM(_box_key(shared, head, mine))
            inside = box.decrypt(_NONCE, content[len(head) :], head)
        except (InvalidTag, ValueError):
            raise LetterRefused("the envelope was damaged or altered") from None
        signature, letter = inside[:_SIGNATURE], memoryview(inside)[_SIGNATURE:]
        require_signature(
            self._others[sender], signature, _signed(head, mine, letter), "the letter"
        )
        read = wire.decode(letter, most_bytes)
        if (read.identity.sender, read.identity.receiver) != (sender, receiver):
            raise LetterRefused("the letter names another sender than its envelope")
        return read


#: How a party closes and opens letters.
Envelope = Plain | Sealed


def require_signature(
    keys: PublicKeys, signature: bytes, content: bytes, what: str
) -> None:
    """Refuse what the holder of the keys did not sign."""
    try:
        _verifier(keys.sign).verify(signature, content)
    except InvalidSignature:
        raise LetterRefused(f"{what} is not signed by whom it says") from None


@functools.lru_cache(1 << 12)
def _verifier(key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(key)


@functools.lru_cache(1 << 12)
def _writable(key: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(key)


def _read_head(content: bytes) -> tuple[bytes, str, str]:
    if content[: len(MAGIC)] != MAGIC:
        raise LetterRefused("not an envelope: it begins with other bytes")
    reader = Reader(content, "envelope")
    reader.take(len(MAGIC))
    sender, receiver = reader.word(), reader.word()
    head = content[: reader.at + _KEY]
    reader.take(_KEY + _SIGNATURE + 16)  # all that stands behind the names, at least
    return head, sender, receiver


def _signed(head: bytes, to: bytes, content: bytes | memoryview) -> bytes:
    """What a signature is over: a digest, so that large letters are read once."""
    digest = hashlib.sha256(b"tacita letter 1" + head + to)
    digest.update(content)
    return digest.digest()


def _box_key(shared: bytes, head: bytes, to: bytes) -> bytes:
    return _hkdf(shared, b"tacita box 1" + head + to)


def _hkdf(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), _KEY, salt=None, info=purpose).derive(secret)
