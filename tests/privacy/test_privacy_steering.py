"""Who sees a mean only: bounds against the exact law of linear runs."""

import math

import numpy as np
import pytest

import tacita
from tacita.privacy import Question, Scope, forecast, guarantee
from tacita.privacy.letters.steering import noise_of_a_mean, settled

STEPS = st = (1, 2, 3, 5, 8)


def exact(curvatures, steps, eta, std, weights):
    """mu of the mean of scalar models with linear gradients, the worst change."""
    powers = (1 - eta * curvatures)[:, None] ** np.arange(steps)
    noise = np.sum((weights * eta * std) ** 2 * np.sum(powers**2, axis=1))
    return weights[0] * eta[0] * np.abs(powers[0]).sum() / math.sqrt(noise)


@pytest.mark.few(1)
@pytest.mark.parametrize("convex", [True, False])
def test_no_bound_is_below_the_exact_law_of_linear_steps(convex):
    draw = np.random.default_rng(0)
    ratios = []
    for _ in range(300):
        n, steps = int(draw.integers(2, 6)), int(draw.integers(1, 7))
        smooth = draw.uniform(0.01, 1.0)
        problem = tacita.problem.synthetic.logistic(
            agents=n, features=2, samples=4, l2=0.0, bound=math.sqrt(4 * smooth)
        )
        if not convex:
            labels = draw.integers(0, 3, 4 * n)
            problem = tacita.from_arrays(
                draw.normal(size=(4 * n, 2)),
                np.concatenate([[0, 1, 2], labels[3:]]),
                np.repeat(np.arange(n), 4),
                model="softmax",
                bound=math.sqrt(2 * smooth),
            )
        eta, std = draw.uniform(0.2, 1.5, n), draw.uniform(0.3, 2.0, n)
        low = 0.0 if convex else -smooth
        curvatures = draw.uniform(low, smooth, n) * draw.integers(0, 2, n)
        asked = Question(scope=Scope("final_model"), agent=0, rounds=1, active=n)
        algorithm = tacita.FedAvg(step_size=eta, local_steps=steps)
        seen = noise_of_a_mean(
            algorithm,
            problem,
            asked,
            factor=eta,
            std=std,
            steps=steps,
            smoothness=smooth,
        )
        mu = math.sqrt(steps) / seen
        ratios.append(mu / exact(curvatures, steps, eta, std, np.ones(n)))
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 1.6  # and it is not far


def flat_world(n, **given):
    """A problem that is nearly linear: tiny rows."""
    given = {"agents": n, "features": 2, "samples": 10, "l2": 0.0} | given
    return tacita.problem.synthetic.logistic(bound=1e-6, **given)


@pytest.mark.parametrize("observer", ["final_model", "neighbour"])
def test_without_curvature_a_mean_hides_all_steps(observer):
    noisy = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.5, local_steps=6, oracle=noisy)
    asked = Question(scope=Scope(observer), agent=2, rounds=7, active=5)
    letters = Question(scope=Scope("coordinator"), agent=2, rounds=7, active=5)
    problem = flat_world(5)
    ratio = (
        guarantee(algorithm, problem, asked).mu
        / guarantee(algorithm, problem, letters).mu
    )
    heard = 5 if observer == "final_model" else 4
    assert ratio == pytest.approx(1 / math.sqrt(heard), rel=1e-6)


def test_dp_fed_avg_letters_hide_in_their_mean():
    algorithm = tacita.DPFedAvg(step_size=0.5, local_steps=3, noise_std=0.4)
    algorithm = tacita.private(
        flat_world(4),
        algorithm,
        epsilon=1.0,
        delta=1e-5,
        observer="coordinator",
        rounds=5,
    )
    mu = {}
    for observer in ("coordinator", "final_model"):
        asked = Question(scope=Scope(observer), agent=0, rounds=5, active=4)
        mu[observer] = guarantee(algorithm, flat_world(4), asked).mu
    assert mu["final_model"] == pytest.approx(mu["coordinator"] / 2, rel=1e-6)


def test_rounds_that_contract_stop_costing():
    problem = tacita.problem.synthetic.logistic(
        agents=3, features=2, samples=20, l2=0.5, bound=1.0
    )
    noisy = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.ServerGD(step_size=1.0, oracle=noisy)

    def mu(observer, rounds, **given):
        given = {"active": 3, "total": rounds} | given
        asked = Question(scope=Scope(observer), agent=0, rounds=rounds, **given)
        return guarantee(algorithm, problem, asked).mu

    once = mu("final_model", 1)
    # q = max(|1 - 0.5|, |1 - 0.25 - 0.5|) = 0.5
    assert mu("final_model", 40) == pytest.approx(once * math.sqrt(3), rel=1e-9)
    assert mu("neighbour", 40) > 6 * once  # who sees every model is not helped
    # Nor is a silent agent's, nor one who knows of nobody else.
    assert mu("final_model", 20, total=40) == pytest.approx(once * math.sqrt(20))
    alone = mu("final_model", 40, active=1)
    assert alone == pytest.approx(mu("coordinator", 40))


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_settled_rounds_are_the_exact_law_of_a_contraction(kept):
    """A scalar x <- q x + change + noise: change against noise of the last model."""
    for rounds in (1, 2, 17):
        powers = kept ** np.arange(rounds)
        assert settled(kept, rounds) == pytest.approx(
            powers.sum() ** 2 / np.sum(powers**2), rel=1e-9
        )


@pytest.mark.parametrize("seeds", [None, 3])
def test_who_missed_a_round_is_told_of_too(seeds):
    """Rounds contract for who was in all of them; others may spend more."""
    problem = tacita.problem.synthetic.logistic(
        agents=8, features=2, samples=20, l2=0.5, bound=1.0
    )
    noisy = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.ServerGD(step_size=1.0, oracle=noisy)
    run = tacita.simulate(
        problem, algorithm, 10, seed=1, seeds=seeds, participation=7, record=()
    )
    turns = np.unique(run.info["turns"])
    assert turns[-1] == 10 and len(turns) > 1
    spent = []
    for rounds in turns.tolist():
        about = {"agent": 0, "rounds": rounds, "active": 7, "total": 10}
        asked = Question(scope=Scope("final_model"), **about)
        spent.append(guarantee(algorithm, problem, asked).epsilon(1e-5))
    assert run.privacy is not None
    told = run.privacy.row("final_model").epsilon
    assert told == pytest.approx(max(spent)) and told > spent[-1]


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_a_mean_that_weighs_a_letter_otherwise_in_every_round(weights):
    """One round with a small partner, then one with a large: by their exact law."""
    counts, eta = np.array([2, 2, 14]), 0.7
    agent = np.repeat(np.arange(3), counts)
    x = np.zeros((len(agent), 1))
    problem = tacita.from_arrays(x, x[:, 0], agent, "linear", l2=1.0, bound=0.1)
    std = np.array([0.01, 1.0, 1 / 7])
    noisy = tacita.Noisy(std=std, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=eta, weights=weights, oracle=noisy)
    asked = Question(scope=Scope("final_model"), agent=0, rounds=2, active=2, total=2)
    mu = guarantee(algorithm, problem, asked).mu
    assert mu is not None
    by_row = np.ones(3) if weights == "uniform" else counts
    moved = noise = 0.0
    for partner, kept in ((1, 1 - eta), (2, 1.0)):
        share = by_row[[0, partner]] / by_row[[0, partner]].sum()
        moved += kept * share[0] * 2 / counts[0]
        noise += np.sum((kept * share * std[[0, partner]]) ** 2)
    assert mu >= moved / math.sqrt(noise)


@pytest.mark.parametrize("observer", ["final_model", "neighbour"])
def test_with_weights_the_fewest_rows_need_not_spend_most(observer):
    """A batch of a large agent moves a weighted mean further than that of a small."""
    counts = [8, 16, 32, 64, 128, 400]
    draw, agent = np.random.default_rng(0), np.repeat(np.arange(6), counts)
    x, y = draw.normal(size=(len(agent), 2)), draw.integers(0, 2, len(agent))
    problem = tacita.from_arrays(x, y, agent)
    batches = tacita.Clipped(norm=1.0, oracle=tacita.Minibatch(size=4))
    algorithm = tacita.FedAvg(
        step_size=0.5, weights="samples", oracle=tacita.Noisy(std=1.5, oracle=batches)
    )
    whole = forecast(problem, algorithm, rounds=20).row(observer)
    each = [
        forecast(problem, algorithm, rounds=20, agent=i).row(observer).epsilon
        for i in range(6)
    ]
    assert whole.epsilon == max(each) and whole.agent != "0"


def test_a_rule_that_passes_single_letters_on_hides_nothing():
    from tacita.aggregation import Median

    noisy = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.5, local_steps=3, oracle=noisy)
    asked = {"scope": Scope("final_model"), "agent": 0, "rounds": 2, "active": 5}
    mean = guarantee(algorithm, flat_world(5), Question(**asked))
    rule = guarantee(algorithm, flat_world(5), Question(**asked, aggregation=Median()))
    assert rule.mu > 2 * mean.mu
