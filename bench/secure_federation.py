"""What secure sums cost in a deployment: processes over NATS, as in `bench.federation`.

    python -m bench.secure_federation [turns]

A round with masks, shares and noise on a grid of 32 bits against a plain round of the
same algorithm (float64 letters, signed, encrypted, on the disk), in turns. A sum that
everybody has to be in takes one exchange; one that an agent may be missing in takes
two. `processor` is the ratio of what all processes used in a round, which depends less
on what else the machine does. Bytes that an agent sends in a round stand beside
4 d + 32 n, a word for every number and a share for every agent. Targets: 2 times the
plain round with 1,000 numbers, 1.3 with 10^6.
Then what exact noise costs a plain private round: integers of ChaCha20 against floats
of JAX's generator. Written to bench/results/secure_federation.md.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from bench.federation import SPARE, Measured, measure

RESULT = Path(__file__).parent / "results" / "secure_federation.md"

#: (agents, length of the vector, rounds, most times the plain round).
SETTINGS = ((3, 1_000, 60, 2.0), (20, 1_000, 40, 2.0), (3, 1_000_000, 12, 1.3))
TURNS = 3
#: (agents, length of the vector, rounds) of plain private rounds.
PRIVATE = ((3, 1_000, 60), (3, 1_000_000, 12))


class Median(NamedTuple):
    """Milliseconds of a round, of all processors in it, and bytes up of an agent."""

    round: float
    processor: float
    up: float


def medians(
    turns: int, agents: int, dim: int, rounds: int, *modes: str
) -> dict[str, Median]:
    """What a round takes in each mode, in turns."""
    found: dict[str, list[Measured]] = {mode: [] for mode in modes}
    for _ in range(turns):
        for mode, runs in found.items():
            runs.append(measure(agents, dim, rounds, mode))
    return {
        mode: Median(
            1e3 * statistics.median(t for run in runs for t in run.seconds),
            1e3 * statistics.median(run.processor for run in runs),
            runs[-1].bytes_up,
        )
        for mode, runs in found.items()
    }


def write(lines: list[str], turns: int) -> None:
    """What is known so far."""
    load = os.getloadavg()[0]
    RESULT.write_text(
        "# What secure sums and exact noise cost in a deployment\n\n"
        f"`python -m bench.secure_federation {turns}`, {os.cpu_count()} cores, load "
        f"{load:.0f} at the end; medians of the rounds of {turns} turns.\n\n"
        "```\n" + "\n".join(lines) + "\n```\n"
    )


def main(turns: int = TURNS) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)
        write(lines, turns)

    say(f"{'agents':>6} {'d':>8} {'least':>6} {'plain':>10} {'secure':>10} "
        f"{'ratio':>6} {'processor':>9}  goal")  # fmt: skip
    for agents, dim, rounds, goal in SETTINGS:
        found = medians(turns, agents, dim, rounds, "careful", *SPARE)
        plain = found.pop("careful")
        for mode, secure in found.items():
            ratio, processor = (secure[k] / plain[k] for k in (0, 1))
            say(
                f"{agents:>6} {dim:>8} {agents - SPARE[mode]:>6} "
                f"{plain.round:>7.1f} ms {secure.round:>7.1f} ms {ratio:>6.2f} "
                f"{processor:>9.2f}  {goal:g}: {'met' if ratio <= goal else 'missed'}; "
                f"{secure.up:,.0f} bytes up, 4 d + 32 n = {4 * dim + 32 * agents:,}"
            )
    say("")
    say(f"{'agents':>6} {'d':>8} {'floats':>10} {'integers':>10} {'ratio':>6}")
    for agents, dim, rounds in PRIVATE:
        found = medians(turns, agents, dim, rounds, "floats", "integers")
        floats, exact = (found[mode].round for mode in ("floats", "integers"))
        ratio = exact / floats
        say(f"{agents:>6} {dim:>8} {floats:>7.1f} ms {exact:>7.1f} ms {ratio:>6.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
