"""What the protocol of secure sums costs a party, without disk and network.

    python -m bench.secure_machines

Milliseconds of one core, by the number of agents and of entries in a letter: set-up for
one exchange (keys, checking the roster, dealing; a window of 64), exchanging keys ahead
of a question, masking an answer, and the coordinator's work when nobody and when a
tenth of the agents is missing. Beside them the bytes that an agent sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacita.aggregation.secure.dealing import Dealer, by_exchange, opened
from tacita.aggregation.secure.letters import Entries
from tacita.aggregation.secure.opened_secrets import OpenedSecrets
from tacita.aggregation.secure.signatures import keys_message
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import Roster, check_entries

#: Agents, colluding, least, entries of a letter.
CASES = (
    (3, 0, 2, (1_000, 1_000_000)),
    (20, 2, 14, (1_000, 100_000, 1_000_000)),
    (100, 10, 80, (1_000, 100_000, 1_000_000)),
)
CONTEXT = b"c" * 32


def milliseconds(work: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """What it returns, and the least of some times that it took."""
    found, best = None, np.inf
    for _ in range(repeats):
        begun = time.process_time()
        found = work()
        best = min(best, time.process_time() - begun)
    return found, 1e3 * best


class Federation:
    """All agents' hands of a window."""

    def __init__(
        self, agents: int, colluding: int, least: int, entries: int, window: int
    ) -> None:
        keys = {f"agent {k:03d}": Ed25519PrivateKey.generate() for k in range(agents)}
        self.terms = Terms(
            run="bench",
            coordinator="hub",
            signing={n: k.public_key().public_bytes_raw() for n, k in keys.items()},
            exchanges=window,
            entries=entries,
            word=32,
            least=least,
            colluding=colluding,
        )
        self.dealers = {
            n: Dealer(self.terms, n, n.encode().ljust(32)) for n in self.terms.names
        }
        bodies = [dealer.body(0, 0) for dealer in self.dealers.values()]
        signatures = [
            keys[name].sign(keys_message(self.terms, 0, 0, body))
            for name, body in zip(self.terms.names, bodies, strict=True)
        ]
        self.entries = Entries(0, 0, self.terms.names, tuple(bodies), tuple(signatures))
        self.roster = Roster(self.terms, self.entries)
        self.dealer = self.dealers[self.terms.names[agents // 2]]

    def held(self) -> dict[str, bytes]:
        """What every holder was dealt for the first exchange."""
        hands = {n: dealer.deal(self.roster) for n, dealer in self.dealers.items()}
        return {
            holder: by_exchange(
                self.roster, {dealer: hand[holder] for dealer, hand in hands.items()}
            )[0]
            for holder in self.terms.names
        }


def set_up(agents: int, colluding: int, least: int) -> str:
    window = 64
    made = Federation(agents, colluding, least, 1, window)
    times = [
        milliseconds(lambda: made.dealer.body(0, 0))[1],
        milliseconds(lambda: check_entries(made.terms, made.entries))[1],
        milliseconds(lambda: made.dealer.deal(made.roster))[1],
    ]
    each = " ".join(f"{t / window:8.2f}" for t in times)
    return f"{agents:6} {each} {sum(times) / window:8.2f}"


def exchange(agents: int, colluding: int, least: int, entries: int) -> str:
    made = Federation(agents, colluding, least, entries, 1)
    roster, names = made.roster, made.terms.names
    letter = np.arange(entries, dtype=np.uint32)
    commons, keys = milliseconds(lambda: made.dealer.commons(roster, 0))
    _, mask = milliseconds(
        lambda: made.dealer.masked(letter, roster, 0, commons, CONTEXT)
    )
    held = made.held()

    def opening(missing: int) -> float:
        chosen = names[missing:]
        given = {
            name: opened(roster, held[name], chosen) for name in names[: roster.needed]
        }
        return milliseconds(lambda: join(roster, chosen, given, letter))[1]

    times = opening(0), opening(max(1, agents // 10))
    sent = 4 * entries + 72 + made.terms.set_bytes + 32 * agents
    return (
        f"{agents:6} {entries:9} {keys:8.2f} {mask:8.2f} {times[0]:8.2f} "
        f"{times[1]:8.2f} {sent:9}"
    )


def join(
    roster: Roster,
    chosen: tuple[str, ...],
    given: dict[str, tuple[bytes, ...]],
    total: np.ndarray,
) -> np.ndarray:
    secrets = OpenedSecrets(roster, 0, chosen)
    for holder, shares in given.items():
        secrets.add(holder, shares)
    return secrets.sum_of(total, CONTEXT)


def main() -> None:
    print("set-up for one exchange, ms\nagents     keys    check     deal      all")
    for *case, _ in CASES:
        print(set_up(*case), flush=True)
    print("\nan exchange, ms (bytes: answer and opening of one agent)")
    print("agents   entries     keys     mask     open  missing     bytes")
    for *case, sizes in CASES:
        for entries in sizes:
            print(exchange(*case, entries), flush=True)


if __name__ == "__main__":
    main()
