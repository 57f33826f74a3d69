"""A folder of one's own, a small run file, and `tacita` in this process."""

import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

from tacita.cli.app import app

#: Small, and the same shapes everywhere: compiled once.
SMALL = """
[problem]
data = "synthetic-logistic"
agents = 4
features = 3
samples = 12
l2 = 0.1

[algorithm]
name = "FedAvg"
step_size = 0.2
local_steps = 2

[run]
rounds = 6
participation = 0.5
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small(place):
    (place / "small.toml").write_text(SMALL)
    return "small.toml"


@pytest.fixture
def sites(place):
    """A table of patients at four sites, and a run file for it."""
    rng = np.random.default_rng(0)
    lines = ["age,dose,ill,site"]
    for i in range(40):
        age, dose = rng.normal(50, 9), rng.random()
        lines.append(f"{age:.3f},{dose:.3f},{int(age + 9 * dose > 53)},s{i % 4}")
    (place / "sites.csv").write_text("\n".join(lines))
    (place / "sites.toml").write_text(
        textwrap.dedent("""
        [problem]
        data = "sites.csv"
        target = "ill"
        agent = "site"
        scale = "standard"
        test_share = 0.2
        l2 = 0.1
        [algorithm]
        name = "FedAvg"
        [run]
        rounds = 3
        """)
    )
    return "sites.toml"


class Tacita:
    """The program, called in this process."""

    def __call__(self, *arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    def ok(self, *arguments):
        """Call it, and fail unless it succeeds; what it has said."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def refused(self, *arguments):
        """Call it with bad input: exit code 2 and lines that start with "error:"."""
        result = self(*arguments)
        assert result.exit_code == 2, result.output
        lines = result.stderr.strip().split("\n")
        assert all(line.startswith("error: ") for line in lines), result.stderr
        return [line.removeprefix("error: ") for line in lines]


@pytest.fixture
def tacita_():
    return Tacita()
