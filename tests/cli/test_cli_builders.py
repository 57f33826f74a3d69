"""From tables to problems: each kind against a direct call, and the examples."""

import dataclasses
import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest
import tomli_w

import tacita
from tacita import data
from tacita.job import graphs, job_from, read, table_of
from tacita.job.records import build
from tacita.problem import graph, prox
from tacita.schedule import Polynomial
from tests.cases import CASES

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "runs").glob("*.toml"))


def job(algorithm=None, **problem):
    table = {
        "problem": problem,
        "algorithm": algorithm or {"name": "FedAvg", "step_size": 0.1},
        "run": {"rounds": 1},
    }
    return job_from(table, Path())


SPLITS = [
    ({"kind": "iid", "agents": 5}, lambda y: data.split_iid(y, 5, seed=7)),
    (
        {"kind": "dirichlet", "agents": 5, "alpha": 0.5},
        lambda y: data.split_dirichlet(y, 5, alpha=0.5, seed=7),
    ),
    (
        {"kind": "quantity", "agents": 5, "alpha": 1.0, "seed": 3},
        lambda y: data.split_quantity(y, 5, alpha=1.0, seed=3),
    ),
    (
        {"kind": "by-classes", "agents": 6, "classes_per_agent": 2, "balanced": True},
        lambda y: data.split_by_classes(y, 6, 2, seed=7, balanced=True),
    ),
]


@pytest.mark.parametrize(("split", "direct"), SPLITS)
def test_a_split_is_what_the_function_gives(split, direct):
    made = job(data="iris", split=split, seed=7).problem
    iris = data.load("iris", seed=7)
    agent = direct(iris.y)
    assert made.n_agents == agent.max() + 1
    np.testing.assert_array_equal(made.counts, np.bincount(agent[agent >= 0]))
    kept = agent >= 0
    want = tacita.from_arrays(iris.x[kept], iris.y[kept], agent[kept], model="softmax")
    models = np.random.default_rng(0).normal(size=(made.n_agents, made.dim))
    np.testing.assert_array_equal(made.grad(models), want.grad(models))
    held = made.holdings()
    for code, name in enumerate(iris.classes):
        mine = agent[(iris.y == code) & (agent >= 0)]
        want = np.bincount(mine, minlength=made.n_agents)
        np.testing.assert_array_equal(held[name], want)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("iris", tacita.problem.Softmax),
        ("breast-cancer", tacita.problem.Logistic),
        ("diabetes", tacita.problem.Linear),
    ],
)
def test_the_usual_model_fits_the_target(name, model):
    made = job(data=name, split={"kind": "iid", "agents": 2}, l2=0.1).problem
    assert isinstance(made.model, model)


def test_networks_are_given_by_tables():
    iid = {"kind": "iid", "agents": 2}
    made = job(data="digits", split=iid, model={"name": "mlp", "hidden": [4, 3]})
    assert made.problem.dim == 64 * 4 + 4 + 4 * 3 + 3 + 3 * 10 + 10
    assert made.problem.dtype == np.float32
    image = {"name": "cnn", "image": [8, 8, 1], "channels": [2]}
    assert job(data="digits", split=iid, model=image).problem.model.classes == 10
    for model, words in (
        ({"name": "mlp"}, "missing key problem.model.hidden"),
        ({"name": "mpl", "hidden": [3]}, "did you mean 'mlp'"),
        ({"name": "softmax", "hidden": [3]}, "this model has no options"),
        ({"hidden": [3]}, "missing key problem.model.name"),
    ):
        with pytest.raises(tacita.TacitaError, match=re.escape(words)):
            job(data="digits", split=iid, model=model)
    with pytest.raises(tacita.TacitaError, match="has its own biases"):
        job(
            data="digits",
            split=iid,
            intercept=True,
            model={"name": "mlp", "hidden": [3]},
        )


def test_penalties_and_regularisers():
    made = job(
        {"name": "FedPLT", "rho": 1.0},
        data="synthetic-logistic",
        agents=3,
        features=2,
        samples=6,
        h={"kind": "elastic-net", "l1": 0.1, "l2": 0.2},
        regulariser={"kind": "non_convex", "weight": 0.3},
    ).problem
    assert type(made.h).__name__ == "ElasticNet"
    assert type(made.population.regulariser).__name__ == "NonConvex"
    with pytest.raises(tacita.TacitaError, match="regulariser does not go with"):
        job(data="synthetic-linear", regulariser={"kind": "non_convex", "weight": 1})


def test_a_penalty_on_some_coordinates_is_told_and_read_again():
    """From the table of a run, and of an offer, came one that ended in a TypeError."""
    first = tacita.problem.Penalty(kind="l2", coordinates=[True, False])
    second = tacita.problem.Penalty(kind="squared", coordinates=[False, True])
    for penalty in (first, [first, second]):
        told = tacita.PrimalDual(alpha=0.1, penalty=penalty)
        again = build(table_of(told)).penalty
        assert again.mask(2).tolist() == told.penalty.mask(2).tolist()
        assert np.shape(again.curvature) == (2,)


def test_a_sum_of_functions_is_a_list_of_tables():
    parts = [{"kind": "l1", "weight": 0.1}, {"kind": "box", "low": 0.0, "high": 1.0}]
    known = dict(data="synthetic-linear", agents=3, features=2, samples=6)
    made = job(**known, h={"kind": "sum", "parts": parts, "steps": 9}).problem.h
    wanted = prox.Sum(parts=(prox.L1(0.1), prox.Box(0.0, 1.0)), steps=9)
    assert repr(made) == repr(wanted)
    with pytest.raises(tacita.TacitaError, match=r"problem\.h\.parts\[1\]"):
        job(**known, h={"kind": "sum", "parts": [parts[0], {"kind": "boxes"}]})
    with pytest.raises(tacita.TacitaError, match="expected parts a list of functions"):
        job(**known, h={"kind": "sum", "parts": []})
    # Of every node's own model, and back to a table.
    named = [{"name": "L1", "weight": 0.1}, {"name": "Box", "low": 0.0, "high": 1.0}]
    told = {"name": "FedGD", "alpha": 0.1, "h": {"name": "Sum", "parts": named}}
    algorithm = job(told, **known, graph={"kind": "ring"}).algorithm
    assert repr(algorithm.h) == repr(prox.Sum(parts=made.parts))
    again = job(table_of(algorithm), **known, graph={"kind": "ring"})
    assert repr(again.algorithm) == repr(algorithm)


def test_agents_have_the_weights_of_the_file():
    known = dict(data="synthetic-linear", agents=3, features=2, samples=6)
    assert job(**known, weights=[1, 2, 0.5]).problem.weights.tolist() == [1, 2, 0.5]
    assert job(**known, weights="samples").problem.weights.tolist() == [1, 1, 1]
    assert not job(**known).problem.weighted
    with pytest.raises(tacita.TacitaError, match=r"weights of shape \(3,\)"):
        job(**known, weights=[1, 2])


GRAPHS = [
    ({"kind": "ring"}, graph.ring(6)),
    ("star", graph.star(6)),
    ({"kind": "complete"}, graph.complete(6)),
    ({"kind": "grid", "rows": 2, "cols": 3}, graph.grid(2, 3)),
    ({"kind": "erdos-renyi", "p": 0.6}, graph.erdos_renyi(6, p=0.6, seed=5)),
    (
        {"kind": "random_regular", "degree": 3, "seed": 2},
        graph.random_regular(6, degree=3, seed=2),
    ),
]


@pytest.mark.parametrize(("table", "want"), GRAPHS, ids=lambda x: str(x)[:30])
def test_a_graph_is_what_the_builder_gives(table, want):
    made = job(
        {"name": "FedGD", "alpha": 1.0},
        data="synthetic-linear",
        agents=6,
        features=2,
        samples=3,
        seed=5,
        graph=table,
    ).problem.graph
    for field in ("receivers", "senders", "weights"):
        np.testing.assert_array_equal(getattr(made, field), getattr(want, field))


def test_a_rule_is_named_in_the_run_table():
    table = {
        "problem": {"data": "synthetic-logistic", "agents": 3},
        "algorithm": {"name": "FedAvg", "step_size": 0.1},
        "run": {"rounds": 2, "aggregation": "mean"},
    }
    made = job_from(table, Path())
    assert isinstance(made.options["aggregation"], tacita.aggregation.Mean)
    assert made.simulate().config["resolved"]["run"]["aggregation"]["name"] == "Mean"
    for wrong, words in [
        ("meen", "run.aggregation.name"),
        ({"name": "Mean", "trim": 2}, "unknown key run.aggregation.trim"),
        (7, "run.aggregation = 7"),
    ]:
        table["run"]["aggregation"] = wrong
        with pytest.raises(tacita.TacitaError, match=words):
            job_from(table, Path())


def test_an_asynchronous_run_on_a_graph_with_a_penalty():
    table = {
        "problem": {
            "data": "synthetic-linear",
            "agents": 4,
            "features": 2,
            "samples": 5,
            "graph": "ring",
        },
        "algorithm": {
            "name": "PrimalDual",
            "alpha": 0.1,
            "penalty": [
                {"name": "Penalty", "kind": "l2", "coordinates": [True, False]},
                {"name": "penalty", "kind": "l1", "coordinates": [False, True]},
            ],
        },
        "run": {"rounds": 3, "asynchronous": {"most_delay": 4, "lost": 0.1}},
    }
    made = job_from(table, Path("."))
    assert [part.kind for part in made.algorithm.penalty.parts] == ["l2", "l1"]  # pyright: ignore
    assert made.options["asynchronous"].most_delay == 4
    tacita.simulate(made.problem, made.algorithm, **made.options)
    table["algorithm"]["penalty"] = "l2"
    assert job_from(table, Path(".")).algorithm.penalty.kind == "l2"  # pyright: ignore
    for wrong, match in [
        ({"delay": 3}, "unknown key run.asynchronous.delay"),
        ({"lost": 0.1}, "needs a bound"),
        (7, "run.asynchronous = 7"),
        ({"most_delay": 4, "lost": [0.1, 0.2]}, "expected lost one number"),
    ]:
        table["run"]["asynchronous"] = wrong
        with pytest.raises(tacita.TacitaError, match=match):
            job_from(table, Path("."))
    table["algorithm"]["penalty"] = {"name": "Penalty", "coordinates": 1}
    with pytest.raises(tacita.TacitaError, match="coordinates a list of 2 booleans"):
        job_from(table, Path("."))
    table["problem"]["agents"] = 0
    with pytest.raises(tacita.TacitaError, match="expected agents a whole number >= 1"):
        job_from(table, Path("."))


@pytest.mark.parametrize(
    ("late", "match"),
    [
        ({"mean": [1.0, 2.0]}, "run: expected mean of shape"),
        ({"most_staleness": 0}, "run: with 2 letters a round .* most_staleness >= 1"),
    ],
)
def test_times_of_letters_are_looked_at_before_a_run_begins(late, match):
    table = {
        "problem": {"data": "synthetic-logistic", "agents": 4, "samples": 5},
        "algorithm": {"name": "FedBuff"},
        "run": {"rounds": 3, "participation": 2, "asynchronous": late},
    }
    with pytest.raises(tacita.TacitaError, match=match):
        job_from(table, Path("."))


def test_neighbours_are_near_on_the_globe():
    # One degree of longitude at 60 degrees north is half as long as at the equator.
    places = np.array([[60.0, 0.0], [60.0, 1.5], [61.0, 0.0]])
    made = graphs.build(
        {"kind": "nearest_neighbours", "k": 1}, ["a", "b", "c"], places, seed=0
    )
    assert set(made.to_networkx().edges) == {("a", "b"), ("a", "c")}
    with pytest.raises(tacita.TacitaError, match="needs the positions"):
        graphs.build({"kind": "nearest_neighbours", "k": 1}, [0, 1], None, seed=0)


def test_features_keep_the_names_of_their_columns(sites, place):
    table = tomllib.loads((place / sites).read_text())
    made = job_from(table, place).problem
    assert made.feature_names == ("age", "dose")


def test_edges_come_from_a_file_beside_the_run_file(sites, place):
    (place / "edges.csv").write_text("from,to,weight\ns0,s1,2\ns1,s2,1\ns2,s3,1\n")
    table = tomllib.loads((place / sites).read_text())
    table["problem"]["graph"] = {"kind": "file", "path": "edges.csv"}
    table["algorithm"] = {"name": "FedGD", "alpha": 0.1}
    made = job_from(table, place).problem.graph
    assert made.nodes == ("s0", "s1", "s2", "s3")
    np.testing.assert_array_equal(made.degrees, [2, 3, 2, 1])
    (place / "edges.csv").write_text("form,to\ns0,s1\n")
    with pytest.raises(
        tacita.TacitaError, match="no column 'from'; did you mean 'form'"
    ):
        job_from(table, place)
    (place / "edges.csv").unlink()
    with pytest.raises(tacita.TacitaError, match="cannot read"):
        job_from(table, place)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"from;to\ns0;s1\n", "only one column: are they parted by commas"),
        (b"from,to,weight\ns0,s1,1,5\n", "Expected 3 fields in line 2, saw 4"),
        (b"from,to\ns0,\n", "column 'to' of .* is empty in data row 1"),
        (b"from,to\nK\xf6ln,s1\n", "not text in UTF-8; save it in that"),
    ],
)
def test_a_file_of_edges_that_cannot_be_read_is_refused(place, content, words):
    (place / "edges.csv").write_bytes(content)
    with pytest.raises(tacita.TacitaError, match=words):
        graphs.from_file(str(place / "edges.csv"), ["s0", "s1"])


def test_an_agent_may_be_called_none(place):
    (place / "edges.csv").write_text("from,to,weight\nNone,a,2\n")
    made = graphs.from_file(str(place / "edges.csv"), ["None", "a"])
    assert made.n_edges == 1


def test_names_that_begin_with_zeros_stay_names(sites, place):
    text = (place / "sites.csv").read_text()
    for site, name in (("s0", "01"), ("s1", "1"), ("s2", "2"), ("s3", "10")):
        text = text.replace(site, name)
    (place / "sites.csv").write_text(text)
    (place / "edges.csv").write_text("from,to\n01, 1 \n1,2\n2,10\n")
    table = tomllib.loads((place / sites).read_text())
    table["problem"]["graph"] = {"kind": "file", "path": "edges.csv"}
    table["algorithm"] = {"name": "FedGD", "alpha": 0.1}
    made = job_from(table, place).problem
    assert made.ids == ("01", "1", "10", "2")
    np.testing.assert_array_equal(made.graph.degrees, [1, 2, 1, 2])


def test_agents_that_are_numbers_are_in_the_order_of_numbers(sites, place):
    text = (place / "sites.csv").read_text()
    for site, number in (("s0", "10"), ("s1", "2"), ("s2", "1"), ("s3", "33")):
        text = text.replace(site, number)
    (place / "sites.csv").write_text(text)
    made = job_from(tomllib.loads((place / sites).read_text()), place).problem
    assert made.ids == (1, 2, 10, 33)


def test_rows_of_a_table_can_be_split_anew(sites, place):
    table = tomllib.loads((place / sites).read_text())
    table["problem"]["split"] = {"kind": "iid", "agents": 12}
    job = job_from(table, place)
    made = job.problem
    assert any("by problem.split, not as the data" in note for note in job.notes)
    assert made.ids == tuple(range(12)) and made.counts.sum() == 32


def test_what_is_left_out_of_record_is_what_can_be_measured(sites, place):
    table = tomllib.loads((place / sites).read_text())
    record = job_from(table, place).options["record"]
    assert set(record) >= {"loss", "accuracy", "test_loss", "test_accuracy"}
    assert "accuracy" not in job(data="synthetic-linear", agents=2).options["record"]


def test_the_error_is_measured_from_the_optimum():
    table = {
        "problem": {"data": "synthetic-logistic", "agents": 3, "l2": 0.5},
        "algorithm": {"name": "FedAvg"},
        "run": {"rounds": 1, "record": ["error"]},
    }
    made = job_from(table, Path())
    np.testing.assert_array_equal(made.options["reference"], made.problem.solve())
    # Personal models have a goal of their own: the solution of GTVMin.
    table["problem"] |= {"data": "synthetic-linear", "graph": {"kind": "ring"}}
    for name in ("FedGD", "FedRelax", "PrimalDual"):
        table["algorithm"] = {"name": name, "alpha": 0.3}
        made = job_from(table, Path())
        norm = "l2" if name == "PrimalDual" else "squared"
        exact = tacita.GTVMin(made.problem, 0.3, norm).solve()
        np.testing.assert_array_equal(made.options["reference"], exact)


def test_there_are_examples():
    assert {"digits-fedavg", "digits-fedprox"} <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_run(path):
    assert read(path).name == path.stem


def test_a_job_keeps_the_file_it_came_from():
    made = job(data="iris", split={"kind": "iid", "agents": 2})
    again = job_from(tomllib.loads(made.toml), Path("/"))
    assert again.config == made.config and again.name == "fedavg-iris"
    assert dataclasses.asdict(again)["options"]["rounds"] == 1


def require_equal(one, other):
    """Records with the same fields, arrays compared by their numbers."""
    first, second = jax.tree.flatten(one), jax.tree.flatten(other)
    assert type(one) is type(other) and first[1] == second[1]
    for a, b in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_algorithm_is_written_as_the_table_that_it_is_read_from(case):
    table = table_of(case.algorithm)
    require_equal(case.algorithm, build(tomllib.loads(tomli_w.dumps(table))))


def test_clipped_and_noisy_gradients_are_written_too():
    clipped = tacita.Clipped(norm=1.5, oracle=tacita.Minibatch(size=4))
    noisy = tacita.Noisy(std=0.3, oracle=clipped)
    algorithm = tacita.FedAvg(step_size=0.1, oracle=noisy)
    require_equal(algorithm, build(table_of(algorithm)))


def test_step_sizes_by_round():
    made = build({"name": "FedAvg", "step_size": {"start": 0.1, "power": 0.5}})
    require_equal(made, tacita.FedAvg(step_size=Polynomial(start=0.1, power=0.5)))
    steps = {"name": "Piecewise", "values": [0.3, 0.03], "until": [100]}
    solver = {"name": "GradientDescent", "step_size": steps}
    inner = build({"name": "FedPLT", "solver": solver}).solver
    assert inner.step_size.over(101)[-2:].tolist() == [0.3, 0.03]
    for table, words in (
        ({"start": 0.1, "rate": 2}, "unknown key algorithm.step_size.rate"),
        ({"name": "Cosine"}, "unknown algorithm.step_size.name = 'Cosine'"),
        ({"start": -1.0}, "algorithm.step_size: expected start > 0"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            build({"name": "FedAvg", "step_size": table})
    with pytest.raises(tacita.TacitaError, match="algorithm.rho"):
        build({"name": "FedPLT", "rho": {"start": 0.1}})
    coarse = {"name": "Quantised", "bits": 4, "range": 1.0, "oracle": "Stream"}
    built = build({"name": "ServerGD", "oracle": coarse})
    require_equal(
        built,
        tacita.ServerGD(
            oracle=tacita.Quantised(bits=4, range=1.0, oracle=tacita.Stream())
        ),
    )


def test_what_is_no_number_and_no_name_is_not_written():
    class Own(tacita.Minibatch):
        """Nobody else knows it."""

    with pytest.raises(tacita.TacitaError, match="unknown algorithm.oracle"):
        table_of(tacita.FedAvg(step_size=0.1, oracle=Own(size=4)))


def test_a_job_by_another_algorithm_has_a_run_file_of_it():
    made = job(data="synthetic-linear", agents=3, features=2, samples=4)
    other = made.with_algorithm(tacita.FedProx(eta=0.5, step_size=0.1, local_steps=2))
    again = job_from(tomllib.loads(other.toml), Path("/"))
    require_equal(again.algorithm, other.algorithm)
    assert again.config == other.config
    run = again.simulate()
    direct = tacita.simulate(made.problem, other.algorithm, 1, record=())
    np.testing.assert_array_equal(run.params, direct.params)
    assert run.config["algorithm"]["name"] == "FedProx"
    assert run.config["resolved"]["run"]["rounds"] == 1
