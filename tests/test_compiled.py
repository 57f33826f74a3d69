"""Compiled programs are kept, the package's own only, and no row is in any."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

import tacita
from tacita import compiled, keys
from tacita.problem import from_function, mlp, synthetic
from tacita.processor import cores_here, share_threads, threads_here
from tacita.runtime import engine
from tacita.runtime.ready import make_plan, make_world, prepare
from tests.cases import CASES
from tests.patience import HANG

FOLDER = "jax_compilation_cache_dir"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder of one's own; the tests' JAX has one too, which would be left alone."""
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(compiled, "_own_folders", {})
    before = getattr(jax.config, FOLDER)
    jax.config.update(FOLDER, None)
    yield tmp_path / "kept"
    jax.config.update(FOLDER, before)
    compiled.compilation_cache.reset_cache()


def programs(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("*/jit_*"))


@pytest.fixture
def slow(monkeypatch):
    """A program of three operations is worth a file."""
    name = "jax_persistent_cache_min_compile_time_secs"
    monkeypatch.setitem(compiled._SETTINGS, name, 0.0)


def compile_one(number: float, *trees: Any) -> None:
    def program(x):
        return x * number + 1

    with compiled.kept(None, *trees):
        jax.jit(program)(np.ones(3))


def test_programs_are_kept_and_found_again(place, slow):
    compile_one(2.0)
    (name,) = programs(place)
    (shared,) = place.iterdir()
    assert shared.stat().st_mode & 0o777 == 0o700
    file = shared / name
    # Another process finds it: it has its own folder, with a link.
    compiled._own_folders.clear()
    jax.clear_caches()
    compile_one(2.0)
    assert programs(place) == [name] and file.stat().st_nlink == 2


def test_a_process_that_leaves_at_once_leaves_no_folder(place, slow):
    compile_one(2.5)
    (shared,) = place.iterdir()
    assert len(list(shared.glob("process-*"))) == 1
    compiled.remove_own_folders()
    assert not list(shared.glob("process-*")) and len(programs(place)) == 1
    jax.clear_caches()
    compile_one(2.5)  # and should it go on, it has another
    assert len(list(shared.glob("process-*"))) == 1


def test_outside_nothing_is_kept_and_jax_is_as_before(place, slow):
    settings = {n: getattr(jax.config, n) for n in (FOLDER, *compiled._SETTINGS)}
    compile_one(3.0)
    jax.jit(lambda x: x * 4.0 - 1)(np.ones(3))
    assert len(programs(place)) == 1
    assert settings == {n: getattr(jax.config, n) for n in settings}


def test_what_the_user_has_set_is_left_alone(place, slow, tmp_path):
    jax.config.update(FOLDER, str(tmp_path / "mine"))
    compile_one(5.0)
    assert not place.exists()


def test_programs_made_for_another_number_of_threads_are_not_found(monkeypatch):
    cores = cores_here()

    def place(**told: Any) -> str:
        for name in ("PJRT_NPROC", "NPROC"):
            monkeypatch.setenv(name, str(told.get(name, "")))
        compiled._versions.cache_clear()
        return compiled._versions()

    by_number = {place(NPROC=cores + n): n for n in range(3)} | {place(NPROC=0): 0}
    assert len(by_number) == 4
    # As XLA reads them: the first that is a number, and what is none is nothing.
    assert place() == place(NPROC="none") == place(NPROC=f" {cores} ")
    first = place(PJRT_NPROC=cores + 1, NPROC=cores + 2)
    assert first == place(PJRT_NPROC="none", NPROC=cores + 1)
    assert place(NPROC=0) == place(NPROC=-3)
    compiled._versions.cache_clear()  # the next one asks again


@pytest.mark.parametrize(
    "told, threads",
    [
        ({}, None),
        ({"NPROC": ""}, None),
        ({"NPROC": "all"}, None),
        ({"NPROC": "0"}, None),
        ({"PJRT_NPROC": "-4"}, None),
        ({"NPROC": "7"}, 7),
        ({"PJRT_NPROC": "7"}, 7),
    ],
)
def test_processes_share_the_threads_unless_the_user_says_how_many(
    monkeypatch, told, threads
):
    for name in ("PJRT_NPROC", "NPROC"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    share_threads(2)
    assert threads_here() == (threads or max(1, cores_here() // 2))


def test_it_can_be_switched_off(place, slow, monkeypatch):
    monkeypatch.setenv(compiled.VARIABLE, "off")
    compile_one(6.0)
    assert not place.exists()


def test_a_place_that_cannot_be_used_does_no_harm(place, slow, monkeypatch):
    place.write_text("a file")
    compile_one(7.0)
    place.unlink()
    place.mkdir()
    place.chmod(0o777)
    compile_one(8.0)
    assert not list(place.iterdir())
    monkeypatch.setenv(compiled.VARIABLE, "/proc/nowhere")
    compile_one(9.0)


def test_half_a_file_of_a_killed_process_is_never_handed_on(place, slow):
    compile_one(10.0)
    (shared,) = place.iterdir()
    (own,) = compiled._own_folders.values()
    (own / "jit_half").write_bytes(b"half")
    compiled._own_folders.clear()  # it was killed while it wrote
    compile_one(11.0)
    assert not (shared / "jit_half").exists() and len(programs(place)) == 2


def test_it_does_not_grow_without_end(place, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_FILES", 3)
    shared = compiled._shared_folder()
    shared.mkdir(parents=True, mode=0o700)
    for i in range(6):
        (shared / f"jit_{i}").touch()
        os.utime(shared / f"jit_{i}", (i, i))
    for name in ("process-of-long-ago", "../0.0.1-other-version"):
        (shared / name).mkdir()
        os.utime(shared / name, (1, 1))
    own = compiled._folder_of_process(shared)  # a process begins
    kept = ["jit_3", "jit_4", "jit_5"]
    assert programs(place) == kept == sorted(path.name for path in own.iterdir())
    assert not (shared / "process-of-long-ago").exists()
    assert [path.name for path in place.iterdir()] == [shared.name]


def test_threads_share_it(place, slow):
    inside, go = threading.Event(), threading.Event()

    def stay() -> None:
        with compiled.kept():
            inside.set()
            go.wait(HANG)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(HANG)
    compile_one(14.0)
    assert getattr(jax.config, FOLDER) is not None  # the other one is still inside
    go.set()
    thread.join()
    assert getattr(jax.config, FOLDER) is None and len(programs(place)) == 1


def outsider(shared, agents):
    return shared.sum()


def test_a_users_own_functions_are_no_part_of_what_is_kept():
    problem = synthetic.logistic(agents=3, features=2, samples=4)
    network = mlp(2, (3,), 2)
    mine = from_function(lambda p, x: x @ p, np.zeros((2, 2)), classes=2)
    for model, own in ((network, True), (mine, False)):
        x, y = np.zeros((6, 2)), np.arange(6) % 2
        rows = tacita.from_arrays(x, y, np.arange(6) % 3, model=model)
        assert compiled.is_own(None, rows.population) == own
    algorithm = tacita.FedAvg(step_size=0.1)
    for record, own in ((("loss",), True), ((outsider,), False)):
        plan = make_plan(problem, algorithm, record, None, None)
        world = make_world(problem, algorithm, 1.0)
        assert compiled.is_own(plan, world, algorithm) == own

    # Nodes are numbered by a range.
    case = next(case for case in CASES if case.name == "FedGD")
    world = make_world(case.problem(np.float32), case.algorithm, 1.0)
    assert compiled.is_own(None, world, case.algorithm)

    class Mine(tacita.FedAvg):
        pass

    jax.tree_util.register_static(Mine)
    assert not compiled.is_own(None, Mine(step_size=0.1))
    for held in (np.zeros(3), object(), functools.partial(outsider, 1.0)):
        assert not compiled.is_own((1, "words", held))


def constants(jaxpr: Any) -> Iterator[np.ndarray]:
    """All arrays that a program holds."""
    if isinstance(jaxpr, ClosedJaxpr):
        yield from map(np.asarray, jaxpr.consts)
        jaxpr = jaxpr.jaxpr
    for equation in jaxpr.eqns:
        for value in jax.tree.leaves(
            equation.params, is_leaf=lambda v: isinstance(v, ClosedJaxpr | Jaxpr)
        ):
            if isinstance(value, ClosedJaxpr | Jaxpr):
                yield from constants(value)


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.name)
@tacita.trees.in_double_precision
def test_rows_are_arguments_of_programs_not_parts(case):
    problem = case.problem()
    ready = prepare(problem, case.algorithm)
    plan = make_plan(problem, ready, ("loss", "grad_norm_sq"), None, None)
    world, base = make_world(problem, ready, 1.0), keys.from_seed(0)
    carry = jax.eval_shape(
        lambda: engine.begin(plan, world, ready, base, problem.start)
    )
    book = np.zeros((2, engine.CAPACITY))
    program = engine.advance.of(world, ready)
    traced = program.trace(plan, world, ready, base, 0, carry, book, 1, 1, 0.0, None)
    rows = np.asarray(problem.population.rows.x).ravel()
    for constant in constants(traced.jaxpr):
        assert constant.size < rows.size
        assert not np.isin(constant.ravel(), rows[rows != 0]).any()
