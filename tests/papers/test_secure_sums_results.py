"""The page on secure sums says what its numbers say."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from papers.secure_sums.accuracy_and_epsilon import (
    AGENTS,
    EPSILONS,
    LOCAL,
    NAME,
    RESULTS,
    SECURE,
    TARGETS,
    cells,
)


def accuracies():
    with open(RESULTS / f"{NAME}.csv", newline="", encoding="utf-8") as file:
        return {
            (
                row["data"],
                int(row["agents"]),
                float(row["epsilon"]),
                row["noise"],
            ): np.array(row["accuracies"].split(), float)
            for row in csv.DictReader(file)
        }


def test_every_cell_is_there_with_five_seeds():
    found = accuracies()
    assert set(found) == set(cells())
    assert all(len(v) == 5 for key, v in found.items() if key[-1] != "no noise")


@pytest.mark.parametrize("agents", AGENTS)
@pytest.mark.parametrize("data", TARGETS)
def test_targets_are_reached_and_the_agents_do_not_matter(data, agents):
    found = accuracies()
    for epsilon, target in zip(EPSILONS, TARGETS[data], strict=True):
        secure = found[data, agents, epsilon, SECURE].mean()
        assert secure >= target
        assert secure > found[data, agents, epsilon, LOCAL].mean() + 0.005
        other = found[data, AGENTS[0], epsilon, SECURE].mean()
        assert abs(secure - other) < 0.003


def test_the_page_shows_the_numbers():
    page = (RESULTS / f"{NAME}.md").read_text()
    for (*_, noise), values in accuracies().items():
        shown = f"{values.mean():.4f}"
        assert shown in page, noise
