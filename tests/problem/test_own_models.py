"""Networks of Flax and Equinox, and plain functions, as models of a problem."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.federation.describe import describe
from tacita.problem import from_equinox, from_flax, from_function
from tacita.problem.model.networks import cnn, mlp
from tacita.runtime.fingerprint import fingerprint

KINDS = ("flax", "equinox", "function")
AVERAGE = tacita.FedAvg(step_size=0.2, local_steps=2, oracle=tacita.Minibatch(size=4))


def made(kind: str, **options):
    """The same perceptron, 3-4-2, in each of the three ways."""
    if kind == "flax":
        nnx = pytest.importorskip("flax.nnx")
        layers = [nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.relu]
        return from_flax(
            nnx.Sequential(*layers, nnx.Linear(4, 2, rngs=nnx.Rngs(1))), **options
        )
    if kind == "equinox":
        equinox = pytest.importorskip("equinox")
        module = equinox.nn.MLP(3, 2, 4, depth=1, key=jax.random.key(0))
        return from_equinox(module, **options)
    return from_function(network, PARAMETERS, **options)


def network(p, x):
    return jax.nn.relu(x @ p["a"] + p["b"]) @ p["c"] + p["d"]


_rng = np.random.default_rng(0)
PARAMETERS = {
    "a": _rng.normal(size=(3, 4)).astype(np.float32),
    "b": np.zeros(4, np.float32),
    "c": _rng.normal(size=(4, 2)).astype(np.float32),
    "d": np.zeros(2, np.float32),
}
X = _rng.normal(size=(18, 3))
Y = (X[:, 0] > 0).astype(int)
AGENT = np.repeat([0, 1, 2], 6)


def problem_of(model, y=Y, **options):
    return tacita.from_arrays(X, y, AGENT, model=model, **options)


def test_a_function_is_the_perceptron_that_it_is():
    """Its names stand in the order of our layers, so that iterates can be compared."""
    own, ours = problem_of(made("function", classes=2)), problem_of(mlp(3, (4,), 2))
    assert own.dim == ours.dim and own.dtype == np.float32
    start = {"start": own.start, "record": ("loss", "accuracy"), "seed": 1}
    runs = [tacita.simulate(one, AVERAGE, 3, **start) for one in (own, ours)]
    np.testing.assert_allclose(runs[0].params, runs[1].params, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        runs[0].metrics["loss"], runs[1].metrics["loss"], rtol=1e-6
    )
    assert "network" in repr(own)


@pytest.mark.parametrize("kind", KINDS)
def test_it_runs_and_every_record_is_clipped(kind, tmp_path):
    problem = problem_of(made(kind, classes=2))
    # A norm that no gradient reaches clips nothing; a small one bounds the step.
    oracles = [tacita.Full(), *(tacita.Clipped(norm=norm) for norm in (1e6, 1e-3))]
    runs = [
        tacita.simulate(problem, tacita.FedAvg(step_size=0.2, oracle=o), 1, record=())
        for o in oracles
    ]
    plain, same, short = (run.params - problem.start for run in runs)
    np.testing.assert_allclose(same, plain, rtol=0, atol=1e-6)
    assert plain.dtype == np.float32 and np.abs(plain).max() > 1e-3
    assert 0 < np.linalg.norm(short) <= 0.2 * 1e-3 * 1.01
    runs[0].save(tmp_path / "run")
    again = tacita.load_run(tmp_path / "run")
    np.testing.assert_array_equal(again.params, runs[0].params)


@pytest.mark.long
def test_agent_by_agent_it_gives_the_same():
    problem = problem_of(made("flax", classes=2))
    told = (problem, AVERAGE, 1, 3)
    runs = [how(*told, record=()) for how in (tacita.simulate, tacita.debug)]
    np.testing.assert_allclose(runs[0].params, runs[1].params, rtol=0, atol=1e-6)


def test_the_same_network_built_again_is_the_same_run():
    """What a checkpoint recognises a run by."""
    for kind in KINDS:
        told = [fingerprint(problem_of(made(kind, classes=2)).population) for _ in "ab"]
        assert told[0] == told[1], kind


def test_losses_by_name_and_by_hand():
    rows, w = jnp.asarray(X, jnp.float32), jnp.asarray([0.5, -1.0, 2.0], jnp.float32)
    parameters = np.asarray(w)
    scores = X @ np.asarray(w, float)
    squared = from_function(lambda p, x: (x @ p)[:, None], parameters)
    np.testing.assert_allclose(
        squared.losses(w, rows, jnp.asarray(scores + 2, jnp.float32)), 4.0, rtol=1e-5
    )
    logistic = from_function(lambda p, x: x @ p, parameters, loss="logistic")
    assert logistic.classes == 2
    expected = np.log1p(np.exp(-np.where(Y == 1, 1, -1) * scores))
    np.testing.assert_allclose(
        logistic.losses(w, rows, jnp.asarray(Y)), expected, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(logistic.predict(w, rows), scores > 0)
    absolute = from_function(
        lambda p, x: x @ p, parameters, loss=lambda s, y: jnp.abs(s - y)
    )
    run = tacita.simulate(problem_of(absolute, y=scores), AVERAGE, 1, record=("loss",))
    assert np.isfinite(run.metrics["loss"][-1])


def test_rows_take_the_shape_and_the_kind_that_a_model_wants():
    def embedded(p, codes):
        assert codes.shape == (2, 2) and codes.dtype == jnp.int32
        return p[codes].sum()

    codes = np.arange(4).reshape(1, 4).repeat(6, axis=0)
    model = from_function(
        embedded, np.arange(4.0), row=(2, 2), whole=True, one_row=True
    )
    problem = tacita.from_arrays(codes, np.full(6, 6.0), np.zeros(6), model=model)
    assert problem.loss(problem.start) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_number_of_outputs_is_refused(kind):
    with pytest.raises(tacita.TacitaError, match="expected 5 scores of every row") as e:
        problem_of(made(kind, classes=5))
    assert "\n" not in str(e.value)
    with pytest.raises(tacita.TacitaError, match=r"expected one score .*got \(6, 2\)"):
        problem_of(made(kind))


def test_what_cannot_be_a_model_is_refused():
    cases = [
        (dict(apply=3, parameters=1.0), "expected apply a function"),
        (dict(parameters={}), "has no parameters"),
        (dict(parameters=np.arange(3)), "a parameter of model=network is of int64"),
        (dict(loss="hinge"), "unknown loss='hinge'"),
        (dict(loss="softmax"), "expected classes a number"),
        (dict(loss="squared", classes=2), "predicts a number"),
        (dict(loss="logistic", classes=3), "has two classes"),
        (dict(row=(0,)), "expected row a whole number"),
    ]
    for given, words in cases:
        whole = {"apply": network, "parameters": PARAMETERS, **given}
        with pytest.raises(tacita.TacitaError, match=words):
            from_function(**whole)
    with pytest.raises(tacita.TacitaError, match=r"rows of shape \(3,\)"):
        problem_of(made("function", classes=2, row=(7, 7)))


def test_code_does_not_travel():
    with pytest.raises(tacita.TacitaError, match="cannot carry the code of") as error:
        describe({"problem": {"model": made("function", classes=2)}}, me=None)  # pyright: ignore
    assert "\n" not in str(error.value)


def test_layers_that_draw_or_mix_rows_are_refused():
    nnx, equinox = pytest.importorskip("flax.nnx"), pytest.importorskip("equinox")
    rngs, key = nnx.Rngs(0), jax.random.key(0)
    with pytest.raises(tacita.TacitaError, match="batch statistics, which mixes rows"):
        from_flax(
            nnx.Sequential(nnx.Linear(3, 2, rngs=rngs), nnx.BatchNorm(2, rngs=rngs))
        )
    with pytest.raises(tacita.TacitaError, match="random numbers .dropout."):
        from_flax(
            nnx.Sequential(nnx.Linear(3, 2, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))
        )
    linear = equinox.nn.Linear(3, 2, key=key)
    with pytest.raises(tacita.TacitaError, match="such as BatchNorm"):
        norm = equinox.nn.BatchNorm(2, "batch", mode="batch")
        from_equinox(equinox.nn.Sequential([linear, norm]))
    with pytest.raises(tacita.TacitaError, match="Dropout, which draws"):
        from_equinox(equinox.nn.Sequential([linear, equinox.nn.Dropout(0.5)]))
    # Without effect they may stay.
    still = equinox.nn.Dropout(0.5, inference=True)
    assert from_equinox(equinox.nn.Sequential([linear, still])).dim == 8
    for make in (from_flax, from_equinox):
        with pytest.raises(
            tacita.TacitaError, match=r"expected mod.*Module, got a int"
        ):
            make(3)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flax.nnx", None)
    monkeypatch.setitem(sys.modules, "equinox", None)
    with pytest.raises(
        tacita.TacitaError, match=r"flax.nnx is not installed.*\[flax\]"
    ):
        from_flax(1)
    with pytest.raises(tacita.TacitaError, match=r"equinox is not .*\[equinox\]"):
        from_equinox(1)


def test_they_are_loaded_only_when_used():
    code = (
        "import sys, tacita; tacita.problem.from_function; tacita.FedOpt; "
        "print([m for m in ('flax', 'equinox', 'optax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_model_of_float32_stays_so_whatever_it_makes():
    """Runs allow float64, in which `jnp.zeros` would be made."""

    def with_zeros(p, x):
        return x @ p + jnp.zeros(len(x)) + jnp.arange(len(x)) / 3

    model = from_function(with_zeros, np.zeros(3, np.float32))
    with jax.enable_x64(True):
        x, w = jnp.asarray(X, jnp.float32), jnp.zeros(3, jnp.float32)
        y, one = jnp.zeros(18, jnp.float32), jnp.asarray(1 / 18, jnp.float32)
        for function, given in (
            (model.losses, (w, x, y)),
            (model.grad, (w, x, y, one)),
        ):
            told = str(jax.make_jaxpr(function)(*given))
            assert "f64" not in told and "f32" in told
        double = jax.eval_shape(model.losses, *(v.astype(float) for v in (w, x, y)))
        assert double.dtype == np.float64


def test_a_convolution_of_anybody_has_the_derivatives_of_ours():
    """The CNN of the package, as a function: found in what was traced of it."""
    ours = cnn((4, 4, 1), 3, (2,))
    own = from_function(ours.apply, ours.start(), classes=3)
    with jax.enable_x64(True):
        for model in (ours, own):
            w = jax.ShapeDtypeStruct((model.dim,), np.float32)
            x = jax.ShapeDtypeStruct((5, 16), np.float32)
            y = jax.ShapeDtypeStruct((5,), np.int32)
            one = jax.ShapeDtypeStruct((), np.float32)
            told = str(jax.make_jaxpr(model.grad)(w, x, y, one))
            # A kernel's derivative as JAX makes it exchanges rows and channels.
            assert "batch_group_count=1" in told
            assert "lhs_spec=(3, 0, 1, 2)" not in told


@pytest.mark.long
def test_the_page_about_it_runs():
    for library in ("flax", "equinox", "optax"):
        pytest.importorskip(library)
    page = Path(__file__).parents[2] / "docs" / "how-to-bring-your-own-model.md"
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(block, names)
    assert not names["run"].info["diverged"]
