"""A process that spends from a ledger until it is killed, again and again.

Run as a script with a ledger, a file of sent letters and a number of kills. It forks
one victim at a time and ends it with SIGKILL after a random moment. A victim does what
an agent does: it charges a letter, and only then lets the letter leave (a synced line
in the file of sent letters). After a crash it takes up the last letter it knows of.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from tacita.privacy import Ledger, gaussian_guarantee

AGENT, OBSERVER, DELTA = "clinic", "coordinator", 1e-5


def letter():
    return gaussian_guarantee(
        observer=OBSERVER,
        unit="record",
        relation="replace_one",
        noise_std=100.0,
        sensitivity=1.0,
    )


def content(number):
    return f"letter {number}".encode()


def sent_letters(path):
    """Whole lines only: a line cut short by a kill was never sent."""
    text = Path(path).read_text() if Path(path).exists() else ""
    return [int(line) for line in text.split("\n")[:-1]]


def spend_for_ever(ledger_path, sent_path):
    with Ledger(ledger_path) as ledger:
        ledger.allow(agent=AGENT, epsilon=1e3, delta=DELTA)
        letters = [row.round or 0 for row in ledger.rows() if row.kind == "release"]
        number = max(letters, default=0)
        out = os.open(sent_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        while True:
            ledger.charge(
                letter(), agent=AGENT, run="run", round=number, content=content(number)
            )
            os.write(out, f"{number}\n".encode())
            os.fsync(out)
            number += 1


def main(ledger_path, sent_path, kills):
    draw = random.Random(7)
    letter().epsilon(DELTA)  # warm up imports, so that victims die at their work
    for _ in range(int(kills)):
        victim = os.fork()
        if victim == 0:
            try:
                spend_for_ever(ledger_path, sent_path)
            except BaseException:
                Path(f"{ledger_path}.error").write_text(traceback.format_exc())
            os._exit(1)
        time.sleep(draw.choice([draw.uniform(0.0, 0.02), draw.uniform(0.0, 0.15)]))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
