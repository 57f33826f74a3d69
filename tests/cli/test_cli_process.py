"""The program as a process of its own: killed, resumed, interrupted, piped."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL
from tests.cli.test_cli_run import same_bits
from tests.patience import HANG

#: Long enough to be killed in its middle, several times.
ROUNDS = 30_000
#: A test run in the background may have been told to ignore Ctrl-C; the program is not.
ATTENTIVE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
PROGRAM = [sys.executable, "-c", f"{ATTENTIVE}; from tacita.cli import main; main()"]


@pytest.fixture
def start(place):
    """Start the program; whatever still runs at the end of a test is killed."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    started = []

    def start_one(*arguments, **options):
        process = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for_change(path, process, before):
    """Wait until a file is written anew; False if the process ended without."""
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_mtime_ns != before:
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    raise AssertionError(f"{path} was not written in two minutes")


@pytest.mark.long
def test_a_run_killed_at_random_moments_and_resumed_has_the_same_bits(
    start, tacita_, small
):
    rounds = f"run.rounds={ROUNDS}"
    killed = start("run", small, "--set", rounds, "--out", "cut")
    # The same run without a pause, in this process, while the other one starts.
    tacita_.ok("run", small, "--set", rounds, "--out", "whole")
    checkpoint, moments, kills = Path("cut/checkpoint.npz"), random.Random(4), 0
    before = 0
    for _ in range(3):
        if not wait_for_change(checkpoint, killed, before):
            break
        time.sleep(moments.uniform(0, 0.3))
        killed.kill()
        kills += killed.wait() == -signal.SIGKILL
        if Path("cut/run.json").exists():
            break
        assert not (set(os.listdir("cut")) - {
            "config.toml", "checkpoint.npz", ".checkpoint.npz.partial"
        })  # fmt: skip
        before = checkpoint.stat().st_mtime_ns
        killed = start("resume", "cut")
    out, err = killed.communicate(timeout=HANG)
    assert killed.returncode == 0 or Path("cut/run.json").exists(), err
    assert kills >= 1
    assert same_bits("cut", "whole")
    assert set(os.listdir("cut")) >= {"config.toml", "run.json", "trace.npz"}


@pytest.mark.long
def test_a_run_killed_before_its_first_checkpoint_starts_anew(start, tacita_, small):
    process = start("run", small, "--out", "cut")
    while not Path("cut").exists() and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert Path("cut/config.toml").read_text().startswith('name = "fedavg-synth')
    if not Path("cut/run.json").exists():
        tacita_.ok("resume", "cut")
    tacita_.ok("run", small, "--out", "whole")
    assert same_bits("cut", "whole")


@pytest.mark.long
def test_ctrl_c_leaves_a_run_that_can_be_resumed(start, small):
    process = start("run", small, "--set", f"run.rounds={50 * ROUNDS}", "--out", "cut")
    assert wait_for_change(Path("cut/checkpoint.npz"), process, 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG)
    assert process.returncode == 130
    assert err.strip().split("\n")[-1] == "interrupted; go on with: tacita resume cut"
    assert "Traceback" not in err


def test_the_program_says_one_line_and_exits_with_2(start, place):
    (place / "bad.toml").write_text(SMALL.replace("rounds", "roundz"))
    process = start("run", "bad.toml")
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 2 and out == ""
    assert "unknown key run.roundz = 6; did you mean 'rounds'?" in err
    assert "Traceback" not in err
