"""FedSPD-DP's pages: what the issue of the setting says, read back from the results."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from papers.fed_spd import figure_6
from papers.fed_spd.common.adult import public_columns

RESULTS = Path(__file__).parents[2] / "papers/fed_spd/results"


def rows_of(name: str) -> dict[str, list[str]]:
    with open(RESULTS / f"{name}.csv", encoding="utf-8") as file:
        return {row[0]: row[1:] for row in csv.reader(file)}


@pytest.mark.parametrize("name", [f"figure_{k}" for k in (2, 3, 4, 5, 6)])
def test_every_figure_has_a_picture_a_table_and_both_readings(name):
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert (RESULTS / f"{name}.png").stat().st_size > 10_000
    assert f"]({name}.png)" in page
    assert "**The paper**" in page and "**Here**" in page
    assert len(rows_of(name)) > 4


def test_the_audit_page_refutes_the_printed_claims_only():
    with open(RESULTS / "audit.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        found = float(row["epsilon at least"])
        claimed = float(row["claimed epsilon"].split()[0])
        assert (row["verdict"] == "refuted") == (found > claimed)
        if row["algorithm"].startswith("public"):
            assert row["verdict"] == "not refuted"
    first = rows[0]
    assert (first["K"], first["claimed epsilon"]) == ("100", "0.1")
    assert float(first["epsilon at least"]) >= 3


def test_adult_at_epsilon_one():
    rows = rows_of("accuracy_and_epsilon")
    column = rows["test accuracy, mean ± sd"].index("epsilon 1")
    means = {k: float(v[column].split()[0]) for k, v in rows.items() if "±" not in k}
    assert max(means.values()) >= 0.83
    assert means["FedSPD, hidden state"] < means["FedSPD, public state"]


def test_figure_6_has_the_order_of_its_page():
    found = figure_6.curves(0.2)
    end = {name: values[-1] for name, values in found.items()}
    assert end["FedSPD public state, sound, WOR"] < end["DP-ADMM, sound"]
    assert end["DP-ADMM, sound"] < end["FedSPD-DP hidden state, sound"]
    printed = rows_of("figure_6")["DP-ADMM, sound"][1]
    assert end["DP-ADMM, sound"] == pytest.approx(float(printed), rel=1e-3)


def test_public_columns_use_one_row_at_a_time():
    """A row's columns do not depend on other rows, and have norm 1."""
    names = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    x = np.array([[25, 13, 0, 0, 40, 1.0], [60, 9, 5000, 0, 20, 0.0]])
    names = (*names, "sex=Male")
    both = public_columns(x, names)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1)
    np.testing.assert_array_equal(public_columns(x[1:], names), both[1:])
