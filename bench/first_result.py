"""How long a new process takes to its first result: the README's run.

    python -m bench.first_result

Processor time of fresh processes: `import tacita`, the problem (which loads JAX), and
the first `simulate`: cold, with nothing compiled yet; warm, with the programs that an
earlier process kept (`TACITA_CACHE`); and with that cache off. In turns, medians,
written to bench/results/first_result.json.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPEATS = 5
AIMS = {"import": 1.0, "cold": 2.5, "warm": 1.0}
RESULT = Path(__file__).parent / "results" / "first_result.json"
RUN = """
import json, time
moments = [time.process_time()]
import tacita
moments.append(time.process_time())
problem = tacita.problem.synthetic.logistic(
    agents=100, features=5, samples=250, l2=0.5, seed=0
)
moments.append(time.process_time())
tacita.simulate(
    problem, tacita.FedAvg(step_size=0.1, local_steps=5), rounds=50, participation=20
)
moments.append(time.process_time())
print(json.dumps([b - a for a, b in zip(moments, moments[1:])]))
"""


def one(cache: str) -> list[float]:
    """Seconds of import, problem and simulation in a process of its own."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**variables, "TACITA_CACHE": cache},
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    times: dict[str, list[list[float]]] = {"cold": [], "warm": [], "off": []}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            times["cold"].append(one(folder))
            times["warm"].append(one(folder))
        times["off"].append(one("off"))
    parts = ("import", "problem", "simulate")
    found = {
        kind: dict(
            zip(
                parts,
                (round(statistics.median(p), 3) for p in zip(*rows, strict=True)),
                strict=True,
            )
        )
        for kind, rows in times.items()
    }
    RESULT.write_text(json.dumps({"seconds": found, "aims": AIMS}, indent=1) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main()
