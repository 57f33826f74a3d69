"""Letters and envelopes: what was written comes back, everything else is refused."""

from __future__ import annotations

import json
import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tacita
from tacita.federation import seal, wire
from tacita.federation.seal import PrivateKeys, PublicKeys, Sealed
from tacita.federation.wire import Identity, Letter, LetterRefused

words = st.text(max_size=40)
identities = st.builds(
    Identity,
    federation=words,
    run=words,
    kind=st.sampled_from(wire.KINDS),
    round=st.integers(0, 2**64 - 1),
    phase=st.integers(0, 2**16 - 1),
    sender=words,
    receiver=words,
)
arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int64]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)
letters = st.builds(
    Letter, identity=identities, arrays=st.lists(arrays, max_size=4).map(tuple)
)
many = settings(max_examples=60, deadline=None)
MOST = 1 << 20


def letter_between(sender: str, receiver: str, **changes) -> Letter:
    fields = {"round": 3, "phase": 0, **changes}
    name = Identity(
        "clinics", "r1", "answer", **fields, sender=sender, receiver=receiver
    )
    return Letter(name, (np.arange(4.0), np.arange(3)))


@pytest.fixture(scope="module")
def people() -> dict[str, PrivateKeys]:
    return {name: PrivateKeys.fresh() for name in ("ada", "bob", "eve")}


def envelope(people: dict[str, PrivateKeys], name: str) -> Sealed:
    public = {who: keys.public for who, keys in people.items()}
    return Sealed(name, people[name], public)


@many
@given(letters)
def test_a_letter_comes_back_as_it_was(letter: Letter):
    back = wire.decode(wire.encode(letter))
    assert back.identity == letter.identity
    assert len(back.arrays) == len(letter.arrays)
    for a, b in zip(back.arrays, letter.arrays, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@many
@given(letters, st.data())
def test_truncated_and_lengthened_letters_are_refused(letter: Letter, data):
    content = wire.encode(letter)
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(LetterRefused):
        wire.decode(content[:cut])
    with pytest.raises(LetterRefused):
        wire.decode(content + data.draw(st.binary(min_size=1, max_size=9)))


@many
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_and_nothing_else_happens(content: bytes):
    for body in (content, wire.MAGIC + content, wire.MAGIC + b"\x01" + content):
        with pytest.raises(LetterRefused):
            wire.decode(body)


@many
@given(letters, st.data())
def test_a_changed_byte_never_crashes_the_reader(letter: Letter, data):
    content = bytearray(wire.encode(letter))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    try:
        read = wire.decode(bytes(content))
    except LetterRefused:
        return
    # What is still a letter is another one: nothing of the change was passed over.
    assert wire.encode(read) == bytes(content)


def test_pickles_objects_and_foreign_dtypes_are_refused():
    with pytest.raises(LetterRefused, match="begins with other bytes"):
        wire.decode(pickle.dumps(np.arange(3.0)))
    name = letter_between("ada", "bob").identity
    for bad in (np.array([None]), np.arange(3, dtype=np.float16), np.array(["a"])):
        with pytest.raises(LetterRefused, match="float32, float64 or int64"):
            wire.encode(Letter(name, (bad,)))


def test_oversized_declarations_are_refused_before_memory_is_taken():
    content = wire.encode(letter_between("ada", "bob"))
    with pytest.raises(LetterRefused, match="at most 10 are accepted"):
        wire.decode(content, most_bytes=10)
    small = struct.pack("<BB1Q", 1, 1, 4)
    assert small in content
    for length in (2**62, 2**40, 5):
        with pytest.raises(LetterRefused):
            wire.decode(content.replace(small, struct.pack("<BB1Q", 1, 1, length)))
    # Dimensions whose product is 0 must not smuggle in a huge one.
    empty = wire.encode(Letter(letter_between("a", "b").identity, (np.zeros((0, 2)),)))
    shape = struct.pack("<BB2Q", 1, 2, 0, 2)
    with pytest.raises(LetterRefused):
        wire.decode(empty.replace(shape, struct.pack("<BB2Q", 1, 2, 0, 2**63)))


def test_nan_is_refused_and_norms_are_right():
    wire.require_bounded([np.zeros(3), np.zeros(0), np.array([2**62])])
    for bad in (np.inf, -np.inf, np.nan, 1.7e308, -(2.0**50)):
        with pytest.raises(LetterRefused, match="NaN"):
            wire.require_bounded([np.zeros(3), np.array([0, bad])])
    with pytest.raises(LetterRefused, match="norm beyond 4"):
        wire.require_bounded([np.array([3.0, 4.0])], most_norm=4.0)
    assert wire.norm_of([np.array([3.0]), np.array([[4.0]])]) == 5.0


def test_a_sealed_letter_is_read_by_its_receiver_only(people):
    letter = letter_between("ada", "bob")
    content = envelope(people, "ada").close(letter)
    assert wire.encode(letter)[:40] not in content
    got = envelope(people, "bob").open(content, MOST)
    assert got.identity == letter.identity
    np.testing.assert_array_equal(got.arrays[0], letter.arrays[0])
    with pytest.raises(LetterRefused, match="came to 'eve'"):
        envelope(people, "eve").open(content, MOST)
    with pytest.raises(LetterRefused, match="altered"):
        Sealed("bob", people["eve"], {"ada": people["ada"].public}).open(content, MOST)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_flipped_bit_and_no_truncation_passes(people, data):
    content = bytearray(envelope(people, "ada").close(letter_between("ada", "bob")))
    at = data.draw(st.integers(0, 8 * len(content) - 1))
    content[at // 8] ^= 1 << at % 8
    with pytest.raises(LetterRefused):
        envelope(people, "bob").open(bytes(content), MOST)
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(LetterRefused):
        envelope(people, "bob").open(bytes(content[:cut]), MOST)


def test_a_forged_sender_is_refused(people):
    # Eve knows every public key, and writes to Bob as if she were Ada.
    public = {who: keys.public for who, keys in people.items()}
    forged = Sealed("ada", people["eve"], public).close(letter_between("ada", "bob"))
    with pytest.raises(LetterRefused, match="not signed"):
        envelope(people, "bob").open(forged, MOST)
    with pytest.raises(tacita.TacitaError, match="cannot write as"):
        envelope(people, "eve").close(letter_between("ada", "bob"))


def test_a_reader_cannot_pass_a_letter_on(people):
    # Bob opens Ada's letter and seals the same signed bytes to Eve.
    one = envelope(people, "ada").close(letter_between("ada", "bob"))
    with pytest.raises(LetterRefused):
        envelope(people, "eve").open(one.replace(b"\x03bob", b"\x03eve"), MOST)


def test_strangers_and_large_envelopes_are_refused(people):
    content = envelope(people, "ada").close(letter_between("ada", "bob"))
    alone = Sealed("bob", people["bob"], {})
    with pytest.raises(LetterRefused, match="not one that this party talks to"):
        alone.open(content, MOST)
    with pytest.raises(LetterRefused, match="more than is accepted"):
        envelope(people, "bob").open(bytes(MOST + seal.OVERHEAD + 1), MOST)
    with pytest.raises(tacita.TacitaError, match="no public key"):
        alone.close(letter_between("bob", "ada"))


def test_key_files_are_for_their_owner_only(tmp_path, people):
    path = tmp_path / "keys.json"
    people["ada"].save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    back = PrivateKeys.load(path)
    assert back.public == people["ada"].public
    assert back.derive("noise") == people["ada"].derive("noise")
    assert back.derive("noise") != back.derive("store")
    secret = json.loads(path.read_text())["private"]["sign"]
    assert secret not in repr(back)
    os.chmod(path, 0o640)
    with pytest.raises(tacita.TacitaError, match="chmod 600"):
        PrivateKeys.load(path)
    os.chmod(path, 0o600)
    path.write_text("{}")
    with pytest.raises(tacita.TacitaError, match="holds no keys"):
        PrivateKeys.load(path)


def test_public_keys_are_checked(people):
    words = people["ada"].public.as_words()
    assert PublicKeys.of_words(words) == people["ada"].public
    for bad in ({}, {**words, "sign": "zz"}, {**words, "sign": "00"}):
        with pytest.raises(tacita.TacitaError, match="damaged"):
            PublicKeys.of_words(bad)
