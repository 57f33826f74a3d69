"""What secure sums cost in a deployment: processes over NATS, as in `bench.federation`.

    python -m bench.secure_federation

A round with masks, shares and noise on a grid of 32 bits against a plain round of the
same algorithm (float64 letters, signed, encrypted, on the disk), in turns. Bytes that
an agent sends in a round stand beside 4 d + 32 n, a word for every number and a share
for every agent. Targets: 2 times the plain round with 1,000 numbers, 1.3 with 10^6.
"""

from __future__ import annotations

import statistics

from bench.federation import measure

#: (agents, length of the vector, rounds, most times the plain round).
SETTINGS = ((3, 1_000, 60, 2.0), (20, 1_000, 40, 2.0), (3, 1_000_000, 12, 1.3))
TURNS = 3


def main() -> None:
    print(f"{'agents':>6} {'d':>8} {'plain':>10} {'secure':>10} {'ratio':>6}  goal")
    for agents, dim, rounds, goal in SETTINGS:
        found: dict[str, list[float]] = {"careful": [], "secure": []}
        up = 0.0
        for _ in range(TURNS):
            for mode, times in found.items():
                one = measure(agents, dim, rounds, mode)
                times += one.seconds
                up = one.bytes_up if mode == "secure" else up
        plain, secure = (1e3 * statistics.median(t) for t in found.values())
        ratio, floor = secure / plain, 4 * dim + 32 * agents
        print(
            f"{agents:>6} {dim:>8} {plain:>7.1f} ms {secure:>7.1f} ms {ratio:>6.2f}  "
            f"{goal:g}: {'met' if ratio <= goal else 'missed'}; "
            f"{up:,.0f} bytes up, 4 d + 32 n = {floor:,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
