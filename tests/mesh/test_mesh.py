"""Several devices and several processes: the same bits, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.cli.together import Part, team_of
from tacita.mesh.devices import mesh_of
from tacita.mesh.places import Places
from tacita.mesh.processes import PeerLostError, guarded
from tacita.processor import cores_here
from tacita.runtime import seeds
from tacita.trees import in_double_precision
from tests.patience import HANG

ROOT = Path(__file__).parents[2]


def program(*words: str, **options) -> subprocess.Popen:
    """A program of its own, which can tell JAX of its devices."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    # The tests' own settings of XLA add up in another order for another batch.
    env = {**os.environ, "PYTHONPATH": paths, "XLA_FLAGS": ""}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", *words], stdout=pipe, stderr=pipe, env=env, **options
    )


def compared(which: str, where: str = "on_devices") -> dict[str, bool]:
    said, wrong = program(f"tests.mesh.{where}", which).communicate()
    assert said, wrong.decode()
    return json.loads(said)


@pytest.fixture(scope="module")
def quick() -> dict[str, bool]:
    return compared("quick")


@pytest.mark.long
def test_devices_change_no_bit(quick):
    assert [name for name, fine in quick.items() if not fine] == []
    assert len(quick) > 10


@pytest.mark.long
def test_devices_change_no_bit_on_graphs():
    found = compared("quick", "graphs_on_devices")
    assert [name for name, fine in found.items() if not fine] == []
    assert len(found) > 10


@pytest.mark.long
@pytest.mark.variant
def test_graphs_of_every_shape_on_devices():
    found = compared("every", "graphs_on_devices")
    assert [name for name, fine in found.items() if not fine] == []
    assert len(found) > 15


@pytest.mark.long
@pytest.mark.variant
def test_every_algorithm_on_two_devices():
    found = compared("every")
    assert [name for name, fine in found.items() if not fine] == []
    assert len(found) > 40


@pytest.mark.parametrize("agents", [1, 2, 3, 10, 100, 1000, 12_345])
def test_blocks_leave_few_places_empty(agents):
    places = Places.of(agents)
    empty = places.blocks * places.block - agents
    assert 0 <= empty <= max(2, agents // 16)
    assert places.blocks & (places.blocks - 1) == 0


@in_double_precision
def test_sums_of_some_are_sums_of_their_blocks():
    places, values = Places.of(37), jnp.arange(37.0) ** 2
    some = jnp.array([0, 5, 6, 20, 36])
    weights = jnp.full(5, 0.5)
    sums = places.add(places.nothing(jnp.zeros(())), some, weights, values[some])
    assert float(places.joined(sums)) == 0.5 * float(values[some].sum())
    assert float(places.sum(values)) == float(values.sum())
    assert float(places.sum(values, values)) == float(jnp.sum(values * values))


@pytest.mark.parametrize("mesh", [3, 0, "two", True, 1.5])
def test_meshes_that_are_none(mesh):
    with pytest.raises(tacita.TacitaError, match="expected (mesh|devices)"):
        mesh_of(mesh)


def test_cores_are_told_before_jax_starts():
    jax.devices()
    with pytest.raises(tacita.TacitaError, match="started already, with 1 devices"):
        tacita.use_cores(64)
    assert tacita.use_cores(1) == 1


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(coordinator="here", process=0, of=2), "HOST:PORT"),
        (dict(coordinator="here:99999", process=0, of=2), "HOST:PORT"),
        (dict(coordinator="here:1", process=2, of=2), "process below of=2"),
        (dict(coordinator="127.0.0.1:1", process=0, of=2), "started already"),
    ],
)
def test_processes_that_are_none(given, words):
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.use_processes(**given)


def test_whom_a_command_starts():
    assert team_of(1, None, None) is None
    four = team_of(4, None, None)
    assert four is not None and four.parts[-1] == Part(4, 4)
    one = team_of(1, "host:70", "2/8")
    assert one is not None and one.parts == (Part(2, 8),)
    for wrong in [(1, "host:70", None), (1, None, "2/8"), (2, "host:70", "2/8")]:
        with pytest.raises(tacita.TacitaError, match="go together"):
            team_of(*wrong)
    for wrong in ["0/8", "9/8", "2", "a/b"]:
        with pytest.raises(tacita.TacitaError, match="from 1/N to N/N"):
            team_of(1, "host:70", wrong)


@pytest.mark.parametrize(
    "table, words",
    [
        ("devices = 3", "power of two"),
        ("devices = 0", "power of two"),
        ("cores = 4", "unknown key mesh.cores"),
        ("blocks = 24", "power of two"),
    ],
)
def test_tables_of_meshes_that_are_none(tmp_path, table, words):
    (tmp_path / "run.toml").write_text(f"{RUN}\n[mesh]\n{table}\n")
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.job.read(tmp_path / "run.toml")


RUN = """
[problem]
data = "synthetic-logistic"
agents = 8
features = 3
samples = 10
l2 = 0.1
graph = { kind = "ring" }

[algorithm]
name = "FedAvg"
step_size = 0.1

[run]
rounds = 400
record_every = 10
participation = 3
"""


#: Agents with a coordinator, and with numbers of their own; and on a graph: with one
#: letter for all, or one an edge.
WAYS = {
    "server": 'name = "FedAvg"\nstep_size = 0.1',
    "numbers": 'name = "FedPLT"',
    "graph": 'name = "FedGD"\nalpha = 0.4\nstep_size = 0.1',
    "edges": 'name = "GossipSGD"\nstep_size = 0.1',
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Callable[[str], Path]:
    """By way, a folder with a run file and its run in one process."""

    @cache
    def made(way: str) -> Path:
        place = tmp_path_factory.mktemp(way)
        (place / "run.toml").write_text(RUN.replace(WAYS["server"], WAYS[way]))
        begun = program("tacita", "run", "run.toml", "--out", "one", cwd=place)
        wrong = begun.communicate(timeout=HANG)[1]
        assert begun.returncode == 0, wrong.decode()
        return place

    return made


def same_run(place: Path, name: str) -> bool:
    one, two = (tacita.load_run(place / which) for which in ("one", name))
    assert two.rounds == 400 and not list((place / name).glob("checkpoint*"))
    return np.array_equal(one.params, two.params) and np.array_equal(
        one.agents, two.agents
    )


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_two_processes_are_as_one_and_say_no_more(alone, way):
    run = program(
        "tacita", "run", "run.toml", "--out", "two", "--processes", "2", cwd=alone(way)
    )
    said, wrong = run.communicate(timeout=HANG)
    assert run.returncode == 0, wrong.decode()
    assert said.decode().startswith("metric") and wrong == b""
    assert same_run(alone(way), "two")


@pytest.mark.long
def test_processes_that_load_their_own_rows_are_as_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def models(*parts: str) -> list[dict[str, np.ndarray]]:
        begun = [program("tests.mesh.own_rows", p, port, cwd=tmp_path) for p in parts]
        for one in begun:
            wrong = one.communicate(timeout=HANG)[1]
            assert one.returncode == 0, wrong.decode()
        names = [tmp_path / f"{part.replace('/', '-')}.npz" for part in parts]
        return [dict(np.load(name)) for name in names]

    (whole,), (first, second) = models("0/1"), models("0/2", "1/2")
    assert [len(one["agents"]) for one in (first, second)] == [7, 6]
    for name in ("params", "loss", "counts", "bytes"):
        assert np.allclose(first[name], whole[name], rtol=1e-12)
        assert np.array_equal(first[name], second[name])
    assert np.array_equal(first["params"], whole["params"])
    assert whole["threads"] == cores_here()
    assert first["threads"] == second["threads"] == max(1, cores_here() // 2)
    parts = np.concatenate([first["agents"], second["agents"]])
    assert np.array_equal(parts, whole["agents"])


def test_a_folder_of_several_processes_is_used_for_one_run(tmp_path):
    for _ in range(2):  # by all of them
        tacita.job.folder.share(tmp_path / "run", "rounds = 1")
    with pytest.raises(tacita.TacitaError, match="of another run file"):
        tacita.job.folder.share(tmp_path / "run", "rounds = 2")
    (tmp_path / "run" / "checkpoint-1-of-2.npz").touch()
    with pytest.raises(tacita.TacitaError, match="holds a run already"):
        tacita.job.folder.share(tmp_path / "run", "rounds = 1")


def test_a_private_process_killed_while_it_writes_keeps_its_secret(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    (tmp_path / seeds.NAME).write_text("12345")
    (tmp_path / "checkpoint-1-of-2.npz.before").touch()
    assert seeds._secret(tmp_path) == 12345


def under_way(place: Path, name: str) -> subprocess.Popen:
    """A run in two processes that has written something."""
    run = program(
        "tacita", "run", "run.toml", "--out", name, "--processes", "2", cwd=place
    )
    until = time.monotonic() + HANG
    while not (place / name / "checkpoint-1-of-2.npz").exists():
        assert run.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    return run


@pytest.mark.long
def test_an_interrupt_of_the_command_alone_ends_its_processes(alone):
    place = alone("server")
    run = under_way(place, "stopped")
    run.send_signal(signal.SIGINT)
    _, wrong = run.communicate(timeout=HANG)
    assert run.returncode == 130
    line = wrong.decode().strip()
    assert line == "interrupted; go on with: tacita resume stopped --processes 2"
    again = program("tacita", "resume", "stopped", "--processes", "2", cwd=place)
    _, wrong = again.communicate(timeout=HANG)
    assert again.returncode == 0, wrong.decode()  # it had not gone on to its end
    assert same_run(place, "stopped")


@pytest.mark.parametrize(
    "error, lost",
    [
        (jax.errors.JaxRuntimeError("UNAVAILABLE: heartbeat timeout"), True),
        (ValueError("UNKNOWN: Gloo all-reduce failed: Connection closed"), True),
        (ValueError("no connection between the nodes"), False),
        (tacita.TacitaError("expected Gloo, got NCCL"), False),
    ],
)
def test_what_jax_says_of_a_lost_process_is_one_line(monkeypatch, error, lost):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError if lost else type(error)) as caught:
        with guarded():
            raise error
    assert isinstance(caught.value, PeerLostError) == lost


@pytest.mark.long
@pytest.mark.parametrize(
    "way, victim",
    [pytest.param("server", 0, marks=pytest.mark.variant), ("server", 1), ("graph", 1)],
)
def test_a_killed_process_ends_the_other_and_all_go_on(alone, way, victim):
    alone, name = alone(way), f"killed-{victim}"
    run = under_way(alone, name)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    os.kill(int(children[victim]), signal.SIGKILL)
    _, wrong = run.communicate(timeout=HANG)
    assert run.returncode == 1
    line, *more = wrong.decode().splitlines()
    assert not more, wrong.decode()
    assert f"process {victim + 1} of 2 was ended by signal 9" in line
    assert line.endswith(f"tacita resume {name} --processes 2")
    fewer = program("tacita", "resume", name, cwd=alone)
    assert b"begun in 2 process(es)" in fewer.communicate(timeout=HANG)[1]
    again = program("tacita", "resume", name, "--processes", "2", cwd=alone)
    _, wrong = again.communicate(timeout=HANG)
    assert again.returncode == 0, wrong.decode()
    assert same_run(alone, name)
