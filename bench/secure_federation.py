"""What secure sums cost in a deployment: processes over NATS, as in `bench.federation`.

    python -m bench.secure_federation [turns]

A round with masks, shares and noise on a grid of 32 bits against a plain round of the
same algorithm (float64 letters, signed, encrypted, on the disk), in turns. Bytes that
an agent sends in a round stand beside 4 d + 32 n, a word for every number and a share
for every agent. Targets: 2 times the plain round with 1,000 numbers, 1.3 with 10^6.
Then what exact noise costs a plain private round: integers of ChaCha20 against floats
of JAX's generator. Written to bench/results/secure_federation.md.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

from bench.federation import measure

RESULT = Path(__file__).parent / "results" / "secure_federation.md"

#: (agents, length of the vector, rounds, most times the plain round).
SETTINGS = ((3, 1_000, 60, 2.0), (20, 1_000, 40, 2.0), (3, 1_000_000, 12, 1.3))
TURNS = 3
#: (agents, length of the vector, rounds) of plain private rounds.
PRIVATE = ((3, 1_000, 60), (3, 1_000_000, 12))


def medians(
    turns: int, agents: int, dim: int, rounds: int, *modes: str
) -> tuple[list[float], float]:
    """Milliseconds of a round in each mode, in turns; bytes up in the last one."""
    found: dict[str, list[float]] = {mode: [] for mode in modes}
    up = 0.0
    for _ in range(turns):
        for mode, times in found.items():
            one = measure(agents, dim, rounds, mode)
            times += one.seconds
            up = one.bytes_up
    return [1e3 * statistics.median(times) for times in found.values()], up


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

    say(f"{'agents':>6} {'d':>8} {'plain':>10} {'secure':>10} {'ratio':>6}  goal")
    for agents, dim, rounds, goal in SETTINGS:
        (plain, secure), up = medians(turns, agents, dim, rounds, "careful", "secure")
        ratio, floor = secure / plain, 4 * dim + 32 * agents
        say(
            f"{agents:>6} {dim:>8} {plain:>7.1f} ms {secure:>7.1f} ms {ratio:>6.2f}  "
            f"{goal:g}: {'met' if ratio <= goal else 'missed'}; "
            f"{up:,.0f} bytes up, 4 d + 32 n = {floor:,}"
        )
    say("")
    say(f"{'agents':>6} {'d':>8} {'floats':>10} {'integers':>10} {'ratio':>6}")
    for agents, dim, rounds in PRIVATE:
        (floats, exact), _ = medians(turns, agents, dim, rounds, "floats", "integers")
        ratio = exact / floats
        say(f"{agents:>6} {dim:>8} {floats:>7.1f} ms {exact:>7.1f} ms {ratio:>6.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
