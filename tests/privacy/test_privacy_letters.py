"""What letters reveal: numbers by hand, exact laws, and refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import tacita
from tacita.algorithm import solvers
from tacita.privacy import (
    AdaptiveClipping,
    Clipped,
    Letters,
    Noisy,
    Question,
    Scope,
    account,
    fed_plt,
    gradient_noise,
    guarantee,
    letters_of,
)
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.letters import of_gradients
from tacita.privacy.letters.question import longest_row
from tacita.problem.model import networks
from tacita.theory.gaussian import epsilon_of_mu

COUNTS = (20, 40, 30)


@pytest.fixture(scope="module")
def problem():
    draw = np.random.default_rng(0)
    agent = np.repeat([0, 1, 2], COUNTS)
    x = draw.normal(size=(len(agent), 3))
    return tacita.from_arrays(x, x[:, 0] > 0, agent, l2=0.4)


def ask(**changes) -> Question:
    words = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}
    scope = Scope(**{name: changes.pop(name, words[name]) for name in words})
    return Question(
        **{"scope": scope, "agent": 0, "rounds": 10, "active": 3, **changes}
    )


CLIP = Clipped(norm=0.5)


def noisy(std, oracle=CLIP):
    return Noisy(std=std, oracle=oracle)


GD = tacita.ServerGD(step_size=0.1, oracle=noisy(0.2))


@pytest.mark.parametrize("observer", ("coordinator", "eavesdropper"))
def test_server_gd_by_hand(problem, observer):
    """K letters, each moved by at most 2 C / m: mu = sqrt(K) 2 C / (m sigma)."""
    found = guarantee(GD, problem, ask(observer=observer))
    assert found.mu == pytest.approx(math.sqrt(10) * 2 * 0.5 / 20 / 0.2)
    assert found.epsilon(1e-5) == pytest.approx(epsilon_of_mu(found.mu, 1e-5))
    bigger = guarantee(GD, problem, ask(observer=observer, agent=1))
    assert bigger.mu == pytest.approx(found.mu / 2)
    emptied = guarantee(GD, problem, ask(observer=observer, relation="add_remove"))
    assert emptied.mu == pytest.approx(found.mu / 2)
    client = guarantee(GD, problem, ask(observer=observer, unit="client"))
    assert client.mu == pytest.approx(found.mu * 20)
    never = guarantee(GD, problem, ask(observer=observer, rounds=0))
    assert never.epsilon(1e-5) == 0.0


def test_local_steps_compose():
    problem = tacita.problem.synthetic.logistic(agents=3, features=3, samples=20)
    several = tacita.FedAvg(step_size=0.1, local_steps=7, oracle=noisy(0.2))
    found = guarantee(several, problem, ask())
    assert found.mu == pytest.approx(math.sqrt(70) * 2 * 0.5 / 20 / 0.2)
    for observer in ("final_model", "neighbour"):  # noise passes through gradients
        seen = guarantee(several, problem, ask(observer=observer))
        # Without a bound on rows only the last step is covered by the others.
        others = 2 if observer == "final_model" else 1
        left = 6 + 1 / (1 + others)
        assert seen.mu == pytest.approx(found.mu * math.sqrt(left / 7))


def test_a_mean_carries_the_noise_of_all_its_letters(problem):
    """The law of the broadcast given the one before, written out."""
    noise = np.array([0.2, 0.3, 0.4])
    for weights in ("uniform", "samples"):
        mixed = tacita.FedAvg(step_size=0.1, oracle=noisy(noise), weights=weights)
        a = np.asarray(COUNTS, float) if weights == "samples" else np.ones(3)
        for agent in range(3):
            shift = a[agent] * 2 * 0.5 / COUNTS[agent]
            seen = guarantee(mixed, problem, ask(observer="final_model", agent=agent))
            spread = np.linalg.norm(a * noise)
            assert seen.mu == pytest.approx(math.sqrt(10) * shift / spread)
            # Another agent knows its own noise; the worst is the noisiest other.
            neighbour = guarantee(
                mixed, problem, ask(observer="neighbour", agent=agent)
            )
            known = max(a[j] * noise[j] for j in range(3) if j != agent)
            rest = math.sqrt(spread**2 - known**2)
            assert neighbour.mu == pytest.approx(math.sqrt(10) * shift / rest)
            assert any("others" in one.statement for one in neighbour.assumptions)


def test_a_cohort_mixes_the_letters_of_the_cohort_only(problem):
    noise = np.array([0.2, 0.3, 0.4])
    algorithm = tacita.ServerGD(step_size=0.1, oracle=noisy(noise))
    two = guarantee(algorithm, problem, ask(observer="final_model", active=2))
    assert two.mu == pytest.approx(math.sqrt(10) * 0.05 / math.hypot(0.2, 0.3))
    for active in (1, None):  # alone, or with nobody knows how many
        own = guarantee(algorithm, problem, ask(observer="final_model", active=active))
        assert own.mu == pytest.approx(math.sqrt(10) * 0.05 / 0.2)


def test_batches_are_accounted_as_they_are_drawn(problem):
    def of(sampling, relation):
        batch = tacita.Minibatch(size=5, sampling=sampling)
        oracle = Clipped(norm=0.5, oracle=batch)
        algorithm = tacita.FedAvg(
            step_size=0.1, local_steps=3, oracle=noisy(0.4, oracle)
        )
        assert letters_of(algorithm).relation == relation
        return guarantee(algorithm, problem, ask(relation=relation))

    seen = {"observer": "coordinator", "unit": "record", "noise_std": 0.4}
    poisson = account(
        **seen,
        relation="add_remove",
        sensitivity=0.1,
        rounds=30,
        sampling=Poisson(0.25),
    )
    assert of("poisson", "add_remove").epsilon(1e-5) == pytest.approx(
        poisson.epsilon(1e-5)
    )
    batch = Clipped(norm=0.5, oracle=tacita.Minibatch(size=5, sampling="poisson"))
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=3, oracle=noisy(0.4, batch))
    replaced = account(
        **seen,
        relation="replace_one",
        sensitivity=0.2,
        rounds=30,
        sampling=PoissonReplaced(0.25),
    )
    found = guarantee(algorithm, problem, ask(relation="replace_one"))
    assert found.epsilon(1e-5) == pytest.approx(replaced.epsilon(1e-5))
    drawn = account(
        **seen,
        relation="replace_one",
        sensitivity=0.2,
        rounds=30,
        sampling=WithoutReplacement(5, 20),
    )
    assert of("without_replacement", "replace_one").rdp(4.0) == pytest.approx(
        drawn.rdp(4.0)
    )
    # Three disjoint batches of 5 out of 20: a record is in one of them at most.
    shuffled = of("permutation", "replace_one")
    once = account(
        **seen,
        relation="replace_one",
        sensitivity=0.2,
        rounds=10,
        sampling=WithoutReplacement(15, 20),
    )
    assert shuffled.epsilon(1e-5) == pytest.approx(once.epsilon(1e-5))
    again = account(
        **seen,
        relation="replace_one",
        sensitivity=0.2,
        rounds=30,
        sampling=WithReplacement(5, 20),
    )
    assert of("with_replacement", "replace_one").epsilon(1e-5) == pytest.approx(
        again.epsilon(1e-5), rel=1e-6
    )


def test_shuffled_batches_count_epochs(problem):
    batch = tacita.Minibatch(size=6, sampling="permutation")  # three an epoch of 20
    algorithm = tacita.FedAvg(
        step_size=0.1,
        local_steps=7,
        oracle=noisy(0.4, Clipped(norm=0.5, oracle=batch)),
    )
    found = guarantee(algorithm, problem, ask(rounds=1))
    assert found.mu == pytest.approx(math.sqrt(3) * (1 / 6) / 0.4)


def test_shuffled_batches_are_disjoint_within_one_draw_only(problem):
    """FedLin shuffles twice a round, TAMUNA after every sixteen steps."""
    for algorithm, size, times in (
        (tacita.FedLin(step_size=0.1, local_steps=3), 5, 2),
        (tacita.TAMUNA(step_size=0.1, local_steps=18, fixed=True), 1, 2),
        (tacita.FiveGCS(gamma=1.0, tau=0.1, strong_convexity=0.3), 2, 2),
        (tacita.FedAvg(step_size=0.1, local_steps=4), 5, 1),
    ):  # all records are used: nothing is gained from the draw
        batch = tacita.Minibatch(size=size, sampling="permutation")
        oracle = noisy(0.4, Clipped(norm=0.5, oracle=batch))
        found = guarantee(
            dataclasses.replace(algorithm, oracle=oracle), problem, ask(rounds=1)
        )
        assert found.mu == pytest.approx(math.sqrt(times) * (1 / size) / 0.4)


def test_participation_is_a_mixture_of_whole_rounds(problem):
    """log(1 - p + p exp((a-1) r)) / (a-1) with r the divergence of all local steps."""
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=4, oracle=noisy(0.2))
    found = guarantee(algorithm, problem, ask(participation=0.3, active=None))
    order = 5.0
    r = order * 4 * (0.05 / 0.2) ** 2 / 2
    one = math.log(0.7 + 0.3 * math.exp((order - 1) * r)) / (order - 1)
    assert found.rdp(order) == pytest.approx(10 * one)
    assert any("participation" in one.statement for one in found.assumptions)


def plt(problem, oracle=CLIP, **solver):
    numbers = {"step_size": 0.2, "local_steps": 4, **solver}
    noise = gradient_noise(0.3, numbers["step_size"])
    steps = solvers.GradientDescent(**numbers)
    return tacita.FedPLT(rho=2.0, solver=steps, oracle=noisy(noise, oracle))


def test_fed_plt_uses_its_theorem_with_what_clipping_leaves(problem):
    algorithm = plt(problem)
    found = guarantee(algorithm, problem, ask())
    x, y, _ = problem.stacked()
    longest = np.linalg.norm(x[0], axis=1).max()
    assert longest_row(problem) == pytest.approx(
        max(np.linalg.norm(part, axis=1).max() for part in x)
    )
    high = problem.moduli.smoothness[0] + 0.25 * longest_row(problem) ** 2 / 20
    stated = fed_plt(
        observer="coordinator",
        strong_convexity=0.4,  # of the regulariser alone
        smoothness=high,
        rho=2.0,
        step_size=0.2,
        local_steps=4,
        noise_std=0.3,
        lipschitz=1.0,
        samples=20,
        rounds=10,
        clipped=True,
    )
    assert longest <= longest_row(problem)
    assert found.mu == pytest.approx(stated.mu)
    assert found.paper_claim is not None
    assert found.paper_claim.status == "refuted"
    assert "gradient" in next(
        one.statement for one in found.assumptions if "record" in one.statement
    )
    final = guarantee(algorithm, problem, ask(observer="final_model"))
    assert final.mu == found.mu and final.paper_claim.status == "unproven"
    partly = guarantee(algorithm, problem, ask(participation=0.5, active=None))
    assert partly.epsilon(1e-5) < found.epsilon(1e-5)
    assert partly.paper_claim is not None


def test_fed_plt_falls_back_to_composition(problem):
    """Where steps may not contract, every step counts: c = 1 in the same formula."""
    steps, tau, gamma = 4, 0.3, 0.2
    composed = math.sqrt(10 * steps * gamma / 2) * (1.0 / 20) / tau
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3))
    network = tacita.from_arrays(
        x,
        draw.integers(0, 2, 60),
        np.repeat([0, 1, 2], 20),
        model=networks.mlp(3, (2,), 2),
    )
    assert guarantee(plt(network), network, ask()).mu == pytest.approx(composed)
    contracting = guarantee(plt(problem), problem, ask())
    assert contracting.mu < composed
    long = guarantee(plt(problem, step_size=5.0), problem, ask())
    assert long.mu == pytest.approx(composed * 5)
    batch = Clipped(norm=0.5, oracle=tacita.Minibatch(size=5, sampling="permutation"))
    batched = guarantee(plt(problem, oracle=batch), problem, ask(rounds=1))
    assert batched.mu == pytest.approx(math.sqrt(gamma / 2) * (1 / 5) / tau)
    assert batched.paper_claim is None


def test_noise_of_a_gradient_and_back(problem):
    adaptive = AdaptiveClipping(algorithm=GD, share_noise_std=0.5)
    assert letters_of(letters_of(adaptive).with_noise(0.7)).noise_std == 0.7
    for algorithm in (GD, plt(problem), tacita.FedPLT(rho=1.0).resolve(problem)):
        louder = letters_of(algorithm).with_noise(0.7)
        np.testing.assert_allclose(letters_of(louder).noise_std, 0.7)
        assert type(louder) is type(algorithm)
        assert type(louder.oracle.oracle) in (Clipped, tacita.Full)
    each = letters_of(tacita.FedPLT(rho=1.0)).with_noise(np.arange(1.0, 4.0))
    np.testing.assert_allclose(letters_of(each).noise_std, [1, 2, 3])
    # A step adds sqrt(2 gamma) tau N(0, I): gamma times the noise of a gradient.
    gamma = np.array([0.1, 0.5])
    np.testing.assert_allclose(
        gamma * gradient_noise(0.3, gamma), np.sqrt(2 * gamma) * 0.3
    )


def test_adaptive_clipping_costs_letter_and_share(problem):
    inner = tacita.FedAvg(step_size=0.1, oracle=noisy(0.2))
    adaptive = AdaptiveClipping(algorithm=inner, share_noise_std=0.5)
    found = guarantee(adaptive, problem, ask())
    letter = 2 * 0.5 / 20 / 0.2
    share = (1 / 20) / 0.5
    assert found.mu == pytest.approx(math.sqrt(10 * (letter**2 + share**2)))


@pytest.mark.parametrize(
    ("algorithm", "message"),
    (
        (tacita.FedLin(step_size=0.1, oracle=CLIP), "FedLin has no noise"),
        (tacita.ServerGD(step_size=0.1, oracle=CLIP), "has no noise"),
        (tacita.ServerGD(step_size=0.1, oracle=noisy(0.0)), "has no noise"),
        (tacita.FedAvg(step_size=0.1, oracle=Noisy(std=0.1)), "are not clipped"),
        (tacita.FedPLT(rho=1.0, solver=solvers.GradientDescent()), "has no noise"),
        (plt(None, oracle=tacita.Full()), "are not clipped"),
        (tacita.FedProx(eta=1.0, oracle=noisy(0.1)), "by their curvature"),
        (tacita.ProxSkip(oracle=noisy(0.1)), "geometric draw without a bound"),
        (tacita.TAMUNA(oracle=noisy(0.1)), "without a bound; use fixed=True"),
        (
            tacita.FedSplit(rho=1.0, solver=solvers.Newton(), oracle=noisy(0.1)),
            "FedSplit say: Newton looks at the rows themselves",
        ),
        (
            tacita.FedRelax(alpha=0.1, oracle=noisy(0.1)),
            "without a solver it solves its problems by their curvature",
        ),
    ),
)
def test_refusals(problem, algorithm, message):
    with pytest.raises(tacita.TacitaError, match=message):
        guarantee(algorithm, problem, ask())


def test_clipped_noise_is_no_noise(problem):
    """Noise inside the clipping is bounded with the record: it hides nothing."""
    inside = Clipped(norm=0.5, oracle=Noisy(std=0.2))
    with pytest.raises(tacita.TacitaError, match="has no noise"):
        guarantee(tacita.ServerGD(step_size=0.1, oracle=inside), problem, ask())


BY_COMPOSITION = {
    "FedProx": (tacita.FedProx(eta=1.0, step_size=0.1, local_steps=3), 3),
    "FedLin": (tacita.FedLin(step_size=0.1, local_steps=3), 4),
    "LED": (tacita.LED(step_size=0.1, beta=0.1, local_steps=3), 3),
    "FedPD": (tacita.FedPD(eta=1.0, step_size=0.1, local_steps=3), 3),
    "FedSplit": (tacita.FedSplit(rho=1.0, solver=solvers.Accelerated()), 5),
    "FiveGCS": (tacita.FiveGCS(gamma=1.0, tau=0.1, strong_convexity=0.3), 6),
    "TAMUNA": (tacita.TAMUNA(step_size=0.1, local_steps=2.6, fixed=True), 3),
    "FedGD": (tacita.FedGD(alpha=0.1, step_size=0.1), 1),
    "FedSGD": (tacita.FedSGD(alpha=0.1, step_size=0.1), 1),
    "GradientTracking": (tacita.GradientTracking(step_size=0.1), 1),
    "GraphLED": (tacita.GraphLED(step_size=0.1, beta=0.1, local_steps=3), 3),
    "Mixed": (
        tacita.FedSplit(
            rho=1.0,
            solver=solvers.Mixed(
                solvers=(solvers.GradientDescent(local_steps=7), solvers.Accelerated()),
                group=[0, 1, 1],
            ),
        ),
        7,
    ),
}


@pytest.mark.parametrize("name", BY_COMPOSITION)
def test_whoever_asks_for_gradients_only_is_private_by_composition(problem, name):
    """mu = sqrt(K steps) 2 C / (m sigma), for every observer of what was sent."""
    algorithm, steps = BY_COMPOSITION[name]
    quiet = dataclasses.replace(algorithm, oracle=noisy(0.2))
    for observer in ("final_model", "neighbour", "eavesdropper"):
        found = guarantee(quiet, problem, ask(observer=observer))
        assert found.mu == pytest.approx(math.sqrt(10 * steps) * 2 * 0.5 / 20 / 0.2)


def test_every_guarantee_names_its_terms(problem):
    problem = dataclasses.replace(problem, bound=10.0)
    for algorithm in (GD, plt(problem)):
        for observer in ("final_model", "coordinator", "neighbour", "eavesdropper"):
            told = guarantee(algorithm, problem, ask(observer=observer)).as_dict(1e-5)
            for name in ("observer", "unit", "relation", "theorem", "assumptions"):
                assert told[name]
            assert {one["status"] for one in told["assumptions"]} == {
                "enforced",
                "believed",
            }


def test_a_new_algorithm_plugs_in(problem):
    """What DP-Norm and FedSPD-DP will do: a class of its own, one function."""

    class Newcomer(tacita.ServerGD):
        pass

    def theorem(problem, question):
        known = account(
            **question.scope.words,
            noise_std=1.0,
            sensitivity=0.1,
            rounds=question.rounds,
        )
        return dataclasses.replace(known, theorem="a theorem of its own")

    @letters_of.register(Newcomer)
    def _(algorithm) -> Letters:
        return of_gradients(algorithm, theorem=theorem)

    new = Newcomer(step_size=0.1, oracle=CLIP)
    made = tacita.privacy.forecast(problem, new, rounds=4)
    row = made.row("coordinator")
    assert row.mu == pytest.approx(0.2) and row.theorem == "a theorem of its own"
