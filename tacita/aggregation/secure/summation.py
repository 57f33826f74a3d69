"""How a coordinator brings one sum about: answers, a set that stands, openings.

Where only the whole roster can be summed, openings come with the answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacita.aggregation.secure.letters import Agreed, Alive, Open, Opening, send_all
from tacita.aggregation.secure.opened_secrets import OpenedSecrets
from tacita.aggregation.secure.signatures import is_signed, set_message
from tacita.aggregation.secure.steps import Answer, Keep, Memory, Send, Step, Sum, Void
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import refuse


@dataclass(frozen=True)
class Fixed:
    """What an exchange is about to open: it never changes once it is written.

    Attributes:
        exchange: Which.
        context: What the masks are bound to.
        chosen: The agents whose answers are in the total.
        total: The sum of their answers.
    """

    exchange: int
    context: bytes
    chosen: tuple[str, ...]
    total: np.ndarray

    def as_bytes(self, terms: Terms) -> bytes:
        """For a file."""
        head = self.exchange.to_bytes(8, "little") + self.context
        return head + terms.pack(self.chosen) + self.total.tobytes()

    @classmethod
    def of_bytes(cls, content: bytes, terms: Terms) -> Fixed:
        """Out of a file."""
        cut = 40 + terms.set_bytes
        return cls(
            int.from_bytes(content[:8], "little"),
            content[8:40],
            terms.unpack(content[40:cut]),
            np.frombuffer(content[cut:], terms.word_type),
        )


class Summation:
    """The part of the coordinator's machine that ends with a sum, or void.

    Args:
        roster: Of the exchange.
        exchange: Which.
        context: What the masks are bound to.
        memory: What the coordinator has written down.
    """

    def __init__(
        self, roster: Roster, exchange: int, context: bytes, memory: Memory
    ) -> None:
        self.terms, self.roster = roster.terms, roster
        self.exchange, self.context, self._memory = exchange, context, memory
        #: Who answered, first come first.
        self._heard: dict[str, None] = {}
        #: Who is asked to open the sum.
        self._holders = roster.members
        self._total = np.zeros(self.terms.entries, self.terms.word_type)
        self._agreed: dict[str, bytes] = {}
        self.fixed: Fixed | None = None
        self._secrets: OpenedSecrets | None = None
        if roster.only_whole:
            self._secrets = OpenedSecrets(roster, exchange, roster.members)
        self.refresh()

    def refresh(self) -> None:
        """Read what is on the disk now."""
        content = self._memory.kept.get("fixed", b"")
        stamp = self.exchange.to_bytes(8, "little")
        if self.fixed is None and content[:8] == stamp:
            fixed = Fixed.of_bytes(content, self.terms)
            self.fixed, self.context = fixed, fixed.context
            self._secrets = OpenedSecrets(self.roster, self.exchange, fixed.chosen)

    @property
    def stage(self) -> str:
        """What it waits for: "answers", "agreed" or "opening"."""
        if self.fixed is None:
            return "answers"
        whole = self.fixed.chosen == self.roster.members
        enough = whole or len(self._agreed) >= self.roster.needed
        return "opening" if enough else "agreed"

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not sent what it waits for."""
        everybody = self.roster.members
        asked, here = {
            "answers": (everybody, self._heard),
            "agreed": (everybody, self._agreed),
            "opening": (self._holders, self._secrets.holders if self._secrets else ()),
        }[self.stage]
        return tuple(n for n in asked if n not in here)

    def answer(self, sender: str, answer: Answer) -> Step:
        """Take in an answer; with the last of them the set is everybody."""
        terms, words = self.terms, answer.words
        if sender not in self.roster.members:
            refuse(f"{sender!r} is not in the roster")
        if words.dtype != self._total.dtype or words.shape != self._total.shape:
            refuse(
                f"expected an answer of {terms.entries} words of {terms.word} bits, "
                f"got {words.dtype} of shape {words.shape}"
            )
        shares = len(self.roster.members) if self.roster.only_whole else 0
        if len(answer.opened) != shares:
            refuse(
                f"expected an answer with {shares} shares, got {len(answer.opened)} "
                f"of {sender!r}"
            )
        if answer.context != self.context:
            refuse(f"{sender!r} was asked something else in exchange {self.exchange}")
        if sender in self._heard:
            return Step()
        if self.fixed is not None:
            refuse(f"the set of exchange {self.exchange} stands: {sender!r} is late")
        self._heard[sender] = None
        self._total += words
        if self._secrets is not None:
            self._secrets.add(sender, answer.opened)
        if self.awaited:
            return Step()
        return self._open_at_once() if self.roster.only_whole else self._fix()

    def _open_at_once(self) -> Step:
        """Every answer came with its opening.

        Nothing has to be written down: no other set could be opened, and who is asked
        once more sends the same again.
        """
        self.fixed = Fixed(
            self.exchange, self.context, self.roster.members, self._total
        )
        return self._judge()

    def time_up(self) -> Step:
        """Go on without those who are awaited, if enough are left."""
        if self.fixed is None:
            return self._fix() if len(self._heard) >= self.terms.least else Step()
        return self._judge() if self._all_asked else self.again()

    def _fix(self) -> Step:
        """Write down the set and the total; then tell of them.

        Where nobody is missing, those who answered first are asked to open it, as many
        as it takes; all others, once one of these does not.
        """
        everybody = self.roster.members
        chosen = tuple(n for n in everybody if n in self._heard)
        quick = [*self._heard][: self.roster.needed]
        self._holders = tuple(quick) if chosen == everybody else everybody
        fixed = Fixed(self.exchange, self.context, chosen, self._total)
        kept = Keep("fixed", fixed.as_bytes(self.terms))
        return Step((kept,), self._telling(chosen))

    def again(self) -> Step:
        """Ask once more for what is awaited; questions are the caller's.

        Whoever was asked to open the sum may be gone: from now on it is everybody.
        """
        if self.fixed is None:
            return Step()
        self._holders = self.roster.members
        sends = self._telling(self.fixed.chosen)
        return Step((), tuple(s for s in sends if s.to in self.awaited))

    def _telling(self, chosen: tuple[str, ...]) -> tuple[Send, ...]:
        """`open` where the set stands, else `alive`."""
        roster, agreed = self.roster, self._agreed
        name = self.exchange, roster.digest, chosen
        whole = chosen == roster.members
        if not whole and len(agreed) < roster.needed:
            letter: Alive | Open = Alive(*name)
            return send_all(roster.members, letter, self.exchange, self.terms)
        signers = () if whole else tuple(n for n in roster.members if n in agreed)
        letter = Open(*name, signers, tuple(agreed[n] for n in signers))
        return send_all(self._holders, letter, self.exchange, self.terms)

    def agreed(self, sender: str, agreed: Agreed) -> Step:
        """Take in a signature; with enough of them the set stands."""
        fixed, _ = self._of_this(sender, agreed)
        message = set_message(
            self.terms, self.roster.digest, self.exchange, fixed.chosen
        )
        if not is_signed(self.terms.signing[sender], agreed.signature, message):
            refuse(f"{sender!r} has not signed the set of exchange {self.exchange}")
        if self.stage == "opening":
            return Step()
        self._agreed[sender] = agreed.signature
        stands = self.stage == "opening"
        return Step((), self._telling(fixed.chosen)) if stands else Step()

    def opening(self, sender: str, opening: Opening) -> Step:
        """Take in an opening; with enough of them the sum is known."""
        fixed, secrets = self._of_this(sender, opening)
        if opening.members != self.roster.members:
            refuse(f"{sender!r} opens another roster")
        if secrets.add(sender, opening.opened):
            return self._sum(fixed, secrets)
        if self.awaited:
            return Step()
        return self._judge() if self._all_asked else self.again()

    @property
    def _all_asked(self) -> bool:
        return len(self._holders) == len(self.roster.members)

    def _judge(self) -> Step:
        """Make what can be made of the openings that are here, or name the liars."""
        fixed, secrets = self.fixed, self._secrets
        if fixed is None or secrets is None or self.stage != "opening":
            return Step()
        if secrets.search():
            return self._sum(fixed, secrets)
        if liars := secrets.liars:
            reason = f"{', '.join(liars)} dealt shares that do not fit"
        elif not self.awaited:
            reason = "shares do not fit, and whose fault it is cannot be told"
        else:
            return Step()
        return Step(outcome=Void(self.exchange, reason, liars))

    def _sum(self, fixed: Fixed, secrets: OpenedSecrets) -> Step:
        total = secrets.sum_of(fixed.total, fixed.context)
        found = Sum(self.exchange, fixed.chosen, total, secrets.false_holders)
        return Step(outcome=found)

    def _of_this(
        self, sender: str, letter: Agreed | Opening
    ) -> tuple[Fixed, OpenedSecrets]:
        if sender not in self.roster.members:
            refuse(f"{sender!r} is not in the roster")
        named = letter.exchange, letter.roster
        fixed, secrets, here = self.fixed, self._secrets, self.roster.digest
        if fixed is None or secrets is None or named != (self.exchange, here):
            refuse(f"{sender!r} speaks of another exchange or roster")
        return fixed, secrets
