"""Letters of the protocol: one encoding each, and one strict decoder."""

from __future__ import annotations

import pytest

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.letters import (
    Agreed,
    Alive,
    Call,
    Entries,
    Keys,
    Lacking,
    Open,
    Opening,
    Ready,
    Shares,
    Want,
)
from tacita.check import TacitaError
from tests.aggregation.secure_parties import agent_names, terms_of

TERMS = terms_of(10, least=8, exchanges=5, window=3)
NAMES = tuple(agent_names(10))
SOME = (NAMES[0], NAMES[7], NAMES[9])
DIGEST, SIGNATURE = b"d" * 32, b"s" * 64
BODY, LAST_BODY = b"b" * 64 * 3, b"b" * 64
ALL = [
    Call(2, 4),
    Keys(2, 0, BODY, SIGNATURE),
    Keys(2, 4, LAST_BODY, SIGNATURE),
    Entries(1, 1, SOME, (BODY,) * 3, (SIGNATURE,) * 3),
    Shares(DIGEST, 2, b"x" * 64 * 3),
    Want(DIGEST),
    Ready(DIGEST),
    Lacking(DIGEST, SOME),
    Alive(4, DIGEST, SOME),
    Agreed(4, DIGEST, SIGNATURE),
    Open(4, DIGEST, NAMES, (), ()),
    Open(4, DIGEST, SOME, NAMES[:8], (SIGNATURE,) * 8),
    Opening(0, DIGEST, SOME, (b"o" * 32,) * 3),
]


@pytest.mark.parametrize("letter", ALL, ids=letters.kind_of)
def test_letters_come_back_as_they_were(letter):
    kind, content = letters.kind_of(letter), letters.encode(letter, TERMS)
    assert letters.decode(kind, content, TERMS) == letter


@pytest.mark.parametrize("letter", ALL, ids=letters.kind_of)
def test_every_other_length_is_refused_in_one_line(letter):
    kind, content = letters.kind_of(letter), letters.encode(letter, TERMS)
    for wrong in (*(content[:k] for k in range(len(content))), content + b"\0"):
        with pytest.raises(TacitaError, match=f"a {kind} letter") as error:
            letters.decode(kind, wrong, TERMS)
        assert "\n" not in str(error.value)


def test_unknown_kinds_agents_and_exchanges_are_refused():
    with pytest.raises(TacitaError, match="no letter of kind"):
        letters.decode("keyes", b"", TERMS)
    alive = letters.encode(Alive(4, DIGEST, SOME), TERMS)
    with pytest.raises(TacitaError, match="not of this run"):
        letters.decode("alive", alive[:-1] + b"\x84", TERMS)
    with pytest.raises(TacitaError, match="exchange 5 of 5"):
        letters.decode("alive", (5).to_bytes(8, "little") + alive[8:], TERMS)
    with pytest.raises(TacitaError, match="exchange 18446744073709551615 of 5"):
        letters.decode("call", bytes(8) + b"\xff" * 8, TERMS)


@pytest.mark.parametrize(
    "settings, words",
    [
        (dict(agents=2), "3 to 128 agents"),
        (dict(agents=129), "3 to 128 agents"),
        (dict(agents=4, least=5), "least <= 4"),
        (dict(agents=5, least=2), "take least >= 3"),
        (dict(agents=3, least=3, colluding=2), "raise least"),
        (dict(agents=3, word=16), "word 32 or 64"),
        (dict(agents=3, entries=0), "entries"),
        (dict(agents=3, window=65), "window"),
        (dict(agents=3, coordinator="agent 001"), "is no agent"),
        (dict(agents=3, signing={n: b"k" * 32 for n in "abc"}), "same public key"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(settings, words):
    with pytest.raises(TacitaError, match=words):
        terms_of(**settings)
