"""The reference pages are complete, and their examples are valid."""

import re
import tomllib
from pathlib import Path

from tacit.cli import run_file
from tacit.cli.builders import network
from tacit.cli.builders.data import SPLITS
from tacit.cli.builders.problem import NETWORKS, PENALTIES, REGULARISERS
from tests.cli.test_cli_commands import COMMANDS

ROOT = Path(__file__).parents[2]


def blocks(page):
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"```toml\n(.*?)```", text, flags=re.S)


def test_every_key_of_a_run_file_is_described():
    text = (ROOT / "docs" / "ref-run-file.md").read_text()
    for table in (
        run_file.RunFile,
        run_file.ProblemTable,
        run_file.AlgorithmTable,
        run_file.RunTable,
    ):
        for key in table.model_fields:
            assert f"`{key}`" in text, key
    for kind in (*SPLITS, *network.KINDS, *PENALTIES, *REGULARISERS, *NETWORKS):
        assert f"`{kind}`" in text, kind


def test_the_run_files_in_the_reference_are_valid():
    found = [tomllib.loads(b) for b in blocks("ref-run-file.md")]
    whole = [table for table in found if "run" in table]
    assert whole
    for table in whole:
        run_file.validate(table)


def test_every_option_of_the_command_line_is_described(tacit_):
    text = (ROOT / "docs" / "ref-command-line.md").read_text()
    for command in COMMANDS:
        assert f"tacit {command}" in text
        for option in re.findall(
            r"(--[a-z-]+[a-z])", tacit_.ok(*command.split(), "--help")
        ):
            assert f"`{option}`" in text or option == "--help", (command, option)
