"""Following a run: every record is handed on, once, and changes nothing."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import tacita
from tacita.problem import synthetic
from tacita.runtime import progress

PAGE = Path(__file__).parents[2] / "docs" / "how-to-follow-a-run.md"
ALGORITHM = tacita.FedAvg(step_size=0.3)


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.logistic(agents=3, features=2, samples=6, seed=1)


def test_every_record_is_handed_on_once(problem, tmp_path):
    rows: list[dict] = []
    options: dict = {"record": ("loss", "accuracy"), "record_every": 2}
    run = tacita.simulate(problem, ALGORITHM, 9, **options, on_record=rows.append)
    plain = tacita.simulate(problem, ALGORITHM, 9, **options)
    assert run.params.tobytes() == plain.params.tobytes()
    assert [row["round"] for row in rows] == [2, 4, 6, 8, 9]
    for name in ("loss", "accuracy"):
        assert [row[name] for row in rows] == plain.metrics[name].tolist()
    assert {type(row["loss"]) for row in rows} == {float}
    # Resumed, only what is new is handed on.
    kept = {**options, "checkpoint": tmp_path, "on_record": rows.append}
    tacita.simulate(problem, ALGORITHM, 6, **kept)
    rows.clear()
    tacita.simulate(problem, ALGORITHM, 9, **kept, resume=True)
    assert [row["round"] for row in rows] == [8, 9]


def test_records_of_several_seeds_are_arrays_of_their_own(problem):
    rows: list[dict] = []
    run = tacita.simulate(
        problem, ALGORITHM, 3, seeds=2, record=("loss",), on_record=rows.append
    )
    assert rows[1]["loss"].shape == (2,)
    rows[1]["loss"][:] = 0.0
    assert (run.metrics["loss"] > 0).all()


def test_what_cannot_be_called_is_refused_and_errors_come_through(problem):
    with pytest.raises(tacita.TacitaError, match="expected on_record a function"):
        tacita.simulate(problem, ALGORITHM, 3, on_record="wandb")  # pyright: ignore

    def full(record: dict) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tacita.simulate(problem, ALGORITHM, 3, record=("loss",), on_record=full)


class Written(types.ModuleType):
    """A stand-in for a tracker: it keeps every call made of it, or of what it makes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, arguments, named))
            return self

        return call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.calls.append(("left", (), {}))


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        ("mlflow", ("log_metrics", ({"loss": 1.0},), {"step": 3})),
        ("wandb", ("log", ({"loss": 1.0},), {"step": 3})),
        ("tensorboardX", ("add_scalar", ("loss", 1.0, 3), {})),
    ],
)
def test_the_adapters_of_the_page_hand_every_record_on(module, wanted, monkeypatch):
    text = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    (block,) = (b for b in blocks if f"import {module}" in b or f"from {module}" in b)
    assert len([line for line in block.split("\n") if line.strip()]) <= 10
    stand_in = Written(module)
    monkeypatch.setitem(sys.modules, module, stand_in)

    def simulate(*_: Any, on_record: Any, **__: Any) -> None:
        on_record({"round": 3, "loss": 1.0})

    fake = types.SimpleNamespace(simulate=simulate)
    exec(block, {"tacita": fake, "problem": None, "algorithm": None})
    assert wanted in stand_in.calls
    assert stand_in.calls[-1][0] in ("left", "close")


class TestNotebook:
    """In a notebook a long run has a bar of its own; a short one leaves nothing."""

    @pytest.fixture
    def shown(self, monkeypatch):
        """What a cell shows, as a list that grows; the last entry is replaced."""
        outputs: list[str] = []

        class Handle:
            def update(self, told: dict, raw: bool) -> None:
                outputs[-1] = told["text/html"]

        def display(told: dict, raw: bool, display_id: bool) -> Handle:
            outputs.append(told["text/html"])
            return Handle()

        shell = types.SimpleNamespace(kernel=object())
        module = types.SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        screen = types.SimpleNamespace(display=display)
        monkeypatch.setitem(sys.modules, "IPython.display", screen)
        return outputs

    def test_a_short_run_leaves_nothing(self, problem, shown):
        assert progress.wanted(None) and not progress.wanted(False)
        tacita.simulate(problem, ALGORITHM, 3, record=("loss",))
        assert shown == []

    def test_a_long_run_has_one_bar_that_stays(self, shown, monkeypatch):
        monkeypatch.setattr(progress, "_SOON", 0.0)
        with progress.Bar(True, 40) as bar:
            bar.update(10, 0.5)
            assert shown == [
                '<progress value="10" max="40"></progress> '
                "round 10 of 40, loss 0.5, 0 s left"
            ]
            bar.update(40, 0.25)
        assert shown == [
            '<progress value="40" max="40"></progress> round 40 of 40, loss 0.25, 0 s'
        ]


def test_without_a_notebook_and_a_terminal_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: False))
    assert not progress.wanted(None)
    assert progress.wanted(True) and not progress.wanted(False)
