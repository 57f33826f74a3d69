"""What both parties of a secure sum need: its terms, its letters, what is on the disk.

The machines (`aggregation/secure`) know no disk and no network. What they have written
down becomes a part of the party's checkpoint, which is replaced whole once a round;
what they write in between is noted beside it. Their letters travel as letters of the
kind "secure", whose phase says which of them it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.letters import (
    DIGEST_BYTES,
    ENTRY_BYTES,
    SIGNATURE_BYTES,
)
from tacita.aggregation.secure.shares import SHARE_BYTES
from tacita.aggregation.secure.steps import (
    Answer,
    Drop,
    Keep,
    Row,
    Send,
    Step,
    Write,
)
from tacita.aggregation.secure.terms import MOST_WINDOW
from tacita.aggregation.secure.terms import Terms as SumTerms
from tacita.check import TacitaError, refuse
from tacita.federation.desk import Desk
from tacita.federation.wire import Letter, LetterRefused
from tacita.federation.work import ServerWork

_KINDS = tuple(letters.KINDS)


class SigningKeys(Mapping[str, bytes]):
    """The public keys of a run's agents, as they are whenever one is asked for.

    Keys are changed and agents removed while a run goes on. Who was removed stays one
    of the run's agents, with a key that nobody can sign for.
    """

    def __init__(
        self, agents: Sequence[str], key_of: Callable[[str], bytes | None]
    ) -> None:
        self._nobodys = {name: sha256(f"gone: {name}".encode()) for name in agents}
        self._key_of = key_of

    def __getitem__(self, name: str) -> bytes:
        gone = self._nobodys[name].digest()
        return self._key_of(name) or gone

    def __iter__(self) -> Iterator[str]:
        return iter(self._nobodys)

    def __len__(self) -> int:
        return len(self._nobodys)


def sum_terms(
    desk: Desk, work: ServerWork, agents: Sequence[str], coordinator: str, rounds: int
) -> SumTerms:
    """What all parties know of the run's secure sums."""
    rule, signer = work.algorithm.aggregation, desk.signer
    if signer is None:
        refuse("a secure sum needs everybody's public keys; give the desk a signer")
    (leaf,) = work.exchanges[0].letter.leaves
    exchanges = rounds * work.phases
    return SumTerms(
        run=desk.run,
        coordinator=coordinator,
        signing=SigningKeys(agents, signer.key_of),
        exchanges=exchanges,
        entries=int(np.prod(leaf.shape)),
        word=rule.word,
        least=rule.least or len(agents),
        colluding=rule.colluding,
        window=min(rule.window or MOST_WINDOW, MOST_WINDOW, exchanges),
        phases=work.phases,
    )


def most_bytes(terms: SumTerms) -> int:
    """Bytes of the largest letter of the protocol: the roster."""
    each = terms.window * ENTRY_BYTES + SIGNATURE_BYTES
    return len(terms.names) * each + terms.set_bytes + 64


def exchange_of(when: tuple[int, int], phases: int) -> int:
    """The number of an exchange, the first being 0."""
    number, phase = when
    return (number - 1) * phases + phase


def post(put_out: Callable[..., None], sends: Iterable[Send]) -> None:
    """Put letters of the protocol into a party's outbox."""
    for send in sends:
        assert isinstance(send.content, bytes)
        place = send.number, _KINDS.index(send.kind)
        put_out("secure", send.to, place, [np.frombuffer(send.content, np.uint8)])


def read(letter: Letter) -> tuple[str, bytes]:
    """Kind and bytes of a letter of the protocol."""
    phase, arrays = letter.identity.phase, letter.arrays
    if phase >= len(_KINDS):
        raise LetterRefused("a secure sum knows no such letter")
    if len(arrays) != 1 or arrays[0].dtype != np.uint8 or arrays[0].ndim != 1:
        raise LetterRefused("a letter of a secure sum is one string of bytes")
    return _KINDS[phase], arrays[0].tobytes()


def arrays_of(answer: Answer) -> list[np.ndarray]:
    """A masked letter as it travels: its context, its words, the shares with it."""
    context, opened = answer.context, b"".join(answer.opened)
    ends = [np.frombuffer(part, np.uint8) for part in (context, opened)]
    return [ends[0], answer.words, ends[1]]


def answer_in(step: Step) -> bytes:
    """The masked letter that a step puts on the disk, with its context."""
    (kept,) = (w for w in step.writes if isinstance(w, Keep) and w.name == "answer")
    return kept.content


def answer_of(arrays: Sequence[np.ndarray], terms: SumTerms) -> Answer:
    """The same out of a letter; refused unless it has this form."""
    most = SHARE_BYTES * len(terms.names)
    forms = [(a.shape, a.dtype) for a in arrays]
    expected = [((DIGEST_BYTES,), np.uint8), ((terms.entries,), terms.word_type)]
    if len(arrays) != 3 or forms[:2] != expected:
        raise LetterRefused(f"expected {terms.entries} words of {terms.word} bits")
    context, words, opened = arrays
    odd = opened.ndim != 1 or opened.size % SHARE_BYTES or opened.size > most
    if opened.dtype != np.uint8 or odd:
        raise LetterRefused(f"expected shares of {SHARE_BYTES} bytes")
    shares = opened.tobytes()
    cuts = range(0, len(shares), SHARE_BYTES)
    each = tuple(shares[at : at + SHARE_BYTES] for at in cuts)
    return Answer(context.tobytes(), words, each)


def refusing(act: Callable[..., Any], *told: Any) -> Any:
    """Do what a machine does; what it refuses is a letter that is refused."""
    try:
        return act(*told)
    except LetterRefused:
        raise
    except TacitaError as error:
        raise LetterRefused(str(error)) from None


def as_parts(
    kept: Mapping[str, bytes], rows: Iterable[Row] = ()
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What a machine has written down, for a checkpoint."""
    words = {
        "kept": [[name, len(content)] for name, content in kept.items()],
        "rows": [[row.kind, row.number, row.digest.hex()] for row in rows],
    }
    return words, [np.frombuffer(b"".join(kept.values()), np.uint8)]


def of_parts(
    words: Mapping[str, Any], arrays: Sequence[np.ndarray], notes: Iterable[bytes]
) -> tuple[dict[str, bytes], list[Row]]:
    """The same out of a checkpoint and the notes beside it."""
    content, kept, at = arrays[0].tobytes(), {}, 0
    for name, size in words["kept"]:
        kept[name] = content[at : at + size]
        at += size
    rows = [Row(kind, n, bytes.fromhex(digest)) for kind, n, digest in words["rows"]]
    for write in (write for note in notes for write in of_note(note)):
        if isinstance(write, Row):
            rows.append(write)
        elif isinstance(write, Keep):
            kept[write.name] = write.content
        else:
            kept.pop(write.name, None)
    return kept, rows


def as_note(writes: Iterable[Write]) -> bytes:
    """The writes of one step, as bytes."""
    told, contents = [], []
    for write in writes:
        if isinstance(write, Row):
            told.append(["row", write.kind, write.number, write.digest.hex()])
        elif isinstance(write, Keep):
            told.append(["keep", write.name, len(write.content)])
            contents.append(write.content)
        else:
            told.append(["drop", write.name])
    head = json.dumps(told).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *contents])


def of_note(note: bytes) -> Iterator[Write]:
    """The writes that a note of this party's own tells."""
    at = 4 + int.from_bytes(note[:4], "little")
    for what, *about in json.loads(note[4:at]):
        if what == "row":
            kind, number, digest = about
            yield Row(kind, number, bytes.fromhex(digest))
        elif what == "keep":
            name, size = about
            yield Keep(name, note[at : at + size])
            at += size
        else:
            yield Drop(*about)
