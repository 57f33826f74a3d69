"""The page: complete, self-contained, and safe against names with HTML in them."""

import base64
import re
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest

import tacita
from tacita.check import TacitaError
from tacita.report import facts, write_report

VOID = {"wbr", "meta", "img", "source", "br"}


class Page(HTMLParser):
    """Text, links and pictures of a page; fails on tags that do not close."""

    def __init__(self, path):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.code, self.ids, self.style = [], [], ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        elif self.open and self.open[-1] == "code":
            self.code.append(data)
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def written(make_run, tmp_path_factory):
    run, folder = make_run("my run", seeds=3), tmp_path_factory.mktemp("page")
    return run, Page(write_report(run, folder)), folder


def test_the_page_has_everything(written):
    run, page, _ = written
    assert page.ids == [
        "settings", "curves", "metrics", "communication", "holdings", "origin"
    ]  # fmt: skip
    for words in (
        "my run",
        "FedAvg on toy (softmax with 4 parameters): 3 agents, 21 rows, 40 rounds.",
        "accuracy on test rows",
        "loss, summed over agents",
        "medians over 3 seeds",
        "1 234",
        "40.0 kB",
        "50.0 kB",
        "90.0 kB",
        "site 2",
        "21 rows at 3 agents",
        "step size",
        "3.99.1",
        "0.0.7",
        "12 s",
    ):
        assert words.replace(" ", "") in re.sub(r"\s", "", page.text), words
    last = sorted(run.metrics["loss"][:, -1])
    for value in last:
        assert f"{value:.4g}" in page.text
    assert tomllib.loads(page.code[0]) == run.config


def test_the_page_needs_nothing_from_outside(written):
    _, page, _ = written
    assert not {"script", "link", "iframe", "object", "base", "a"} & set(page.tags)
    for _, name, value in page.attributes:
        if name in ("src", "srcset", "href"):
            assert value.startswith("data:image/png;base64,")
    assert "url(" not in page.style and "@import" not in page.style
    assert "http" not in page.style + page.text


def test_pictures_are_in_the_page_and_beside_it(written):
    _, page, folder = written
    inside = [
        base64.b64decode(value.split(",", 1)[1])
        for tag, name, value in page.attributes
        if tag == "img" and name == "src"
    ]
    beside = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    assert set(beside) == {
        "curve-test_accuracy.png", "curve-loss.png", "who-holds-what.png"
    }  # fmt: skip
    assert sorted(inside) == sorted(beside.values())
    assert all(content.startswith(b"\x89PNG") for content in inside)
    dark = [value for tag, name, value in page.attributes if name == "srcset"]
    assert len(dark) == 3
    assert all(value for tag, name, value in page.attributes if name == "alt")


def test_nothing_else_is_left_in_the_folder(written):
    *_, folder = written
    assert {path.suffix for path in folder.iterdir()} == {".html", ".png"}


EVIL = '<script>alert("1")</script>&amp;\'x'


@pytest.mark.long
def test_names_with_html_in_them_are_shown_as_they_are(make_run, tmp_path):
    runs = {EVIL: make_run(EVIL, classes=(EVIL, "</table>")), "b": make_run()}
    for run in runs.values():
        run.info["holdings"]["agent"][0] = EVIL
        run.info["extra"] = {EVIL: EVIL}
        run.metrics["<b>lambda"] = run.metrics["loss"]
    page = Page(write_report(runs, tmp_path, title=EVIL))
    assert "script" not in page.tags and "b" not in page.tags
    assert page.text.count(EVIL) > 5
    assert (tmp_path / "curve--b-lambda.png").exists()


def test_a_comparison_overlays_and_tells_what_differs(make_run, tmp_path):
    runs = {"slow": make_run("slow", decay=0.9), "fast": make_run("fast", decay=0.5)}
    page = Page(write_report(runs, tmp_path, tolerance={"loss": 1.0}))
    assert page.tags.count("img") == 3  # two metrics, and holdings that all share
    assert "slow, fast: 2 runs compared on toy" in page.text
    assert "rounds to loss, summed over agents <= 1" in page.text
    assert re.search(r"algorithm\.step_size\s+0\.9\s+0\.5", page.text)
    assert len(page.code) == 2


def test_runs_on_other_data_have_their_own_holdings(make_run, tmp_path):
    runs = {"a": make_run(agents=3), "b": make_run(agents=4)}
    page = Page(write_report(runs, tmp_path))
    assert "21 rows at 3 agents (a)" in page.text
    assert "28 rows at 4 agents (b)" in page.text
    assert (tmp_path / "who-holds-what-2.png").exists()


def test_a_run_that_diverged_or_stopped_early_says_so(make_run, tmp_path):
    bad = make_run(diverged=True)
    bad.metrics["loss"][4:] = float("nan")
    early = make_run(stopped_early=True)
    page = Page(write_report({"bad": bad, "early": early}, tmp_path))
    assert "bad: the run diverged" in page.text
    assert "early: the run stopped after round 40" in page.text


def test_seeds_that_diverged_are_counted_on_the_page(make_run, tmp_path):
    bad = make_run(seeds=3, diverged=True, diverged_lanes=[False, True, False])
    bad.metrics["loss"][1, 4:] = float("nan")
    one = Page(write_report({"bad": bad}, tmp_path / "one"))
    last = np.median(bad.metrics["loss"][[0, 2], -1])
    for words in (
        "loss, summed over agents; 1 of 3 seeds diverged",
        f"{last:.4g}",
        "they are of the others: of bad 1 of 3 seeds diverged.",
        "1 of 3 seeds diverged: a model holds",
    ):
        assert words in one.text, words
    both = Page(write_report({"bad": bad, "fine": make_run(seeds=3)}, tmp_path / "two"))
    assert "others: of bad 1 of 3 seeds diverged." in both.text


def test_a_run_with_many_agents_or_without_metrics_has_a_page(make_run, tmp_path):
    run = make_run()
    del run.info["holdings"], run.info["turns"]
    run.metrics.clear()
    run.metrics["round"] = []
    page = Page(write_report(run, tmp_path))
    assert "No metric was recorded" in page.text
    assert "too many" in page.text


def test_what_a_run_adds_to_its_folder_is_on_the_page(make_run, tmp_path):
    page = Page(write_report(make_run(budget={"epsilon": 2.5}), tmp_path))
    assert re.search(r"budget\.epsilon\s+2\.5", page.text)


def test_what_was_done_to_the_data_is_told_once(make_run, tmp_path):
    noted = {name: make_run(data_notes=["rows were cut"]) for name in "ab"}
    assert Page(write_report(noted, tmp_path)).text.count("Rows were cut.") == 1


def test_a_sweep_is_shown_as_the_runs_it_is_made_of(make_run, tmp_path):
    sweep = make_run("tuning", seeds=3)
    sweep.config["run"]["configs"] = 3
    sweep.config["algorithm"] |= {"step_size": [0.1, 0.2, 0.4], "eta": [1.0, 1.0, 1.0]}
    sweep.params[2] = float("nan")
    page = Page(write_report(sweep, tmp_path))
    assert "tuning step_size=0.1, tuning step_size=0.2, tuning step_size=0.4" in (
        page.text
    )
    for k in range(3):
        assert f"{sweep.metrics['loss'][k, -1]:.4g}" in page.text
    assert "median" not in page.text
    assert page.text.count("the run diverged") == 1
    assert "tuning step_size=0.4: the run diverged" in page.text


def test_a_run_made_from_a_run_file_shows_both(make_run, tmp_path):
    run = make_run()
    described = dict(run.config)
    run.config.clear()
    run.config.update({"name": "mine", "run": {"rounds": 40}, "resolved": described})
    page = Page(write_report(run, tmp_path))
    assert "step size" in page.text
    assert tomllib.loads(page.code[0]) == {"name": "mine", "run": {"rounds": 40}}


def test_a_file_in_the_way_is_refused(make_run, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(TacitaError, match="it is a file"):
        write_report(make_run(), tmp_path / "taken")
    with pytest.raises(TacitaError, match="at least one run"):
        write_report({}, tmp_path)


@pytest.mark.long
def test_a_private_run_shows_its_observers_and_its_spending(tmp_path):
    problem = tacita.problem.synthetic.logistic(agents=4, features=2, samples=50)
    algorithm = tacita.private(
        problem,
        tacita.ServerGD(step_size=1.0),
        epsilon=2.0,
        delta=1e-5,
        observer="coordinator",
        rounds=6,
    )
    run = tacita.simulate(problem, algorithm, rounds=6)
    page = Page(write_report(run, tmp_path))
    assert page.ids[3] == "privacy"
    assert (tmp_path / "epsilon.png").read_bytes().startswith(b"\x89PNG")
    for row in run.privacy.rows:
        assert row.theorem in page.text
        for one in row.assumptions:
            assert f"{one['status']}: {one['statement']}" in page.text
    assert "epsilon = 2 at delta = 1e-05 against the coordinator" in page.text
    columns, cells = run.privacy.table()
    assert all(word in page.text for word in columns)
    # What stands in brackets is in small print there.
    shown = (line[2].replace("(", "").replace(")", "") for line in cells)
    assert all(epsilon in page.text for epsilon in shown)


def test_a_run_without_privacy_has_no_privacy_section(written):
    assert "privacy" not in written[1].ids


def test_records_that_are_seldom_by_choice_of_the_program_are_explained(make_run):
    often, seldom = make_run("often"), make_run("seldom", recorded_by_cost=12)
    assert facts.recorded({"often": often}) == ""
    words = facts.recorded({"often": often, "seldom": seldom})
    assert "seldom every 12 rounds" in words and "often every" not in words
