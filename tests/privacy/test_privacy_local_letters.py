"""FedSPD and DP-FedAvg as they run: accounting, reports, budgets, audits."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import tacita
from papers.fed_spd.common import one_record
from papers.fed_spd.common.as_printed import (
    fed_spd_as_printed,
    printed_noise,
    round_epsilon,
)
from papers.fed_spd.common.sensitivities import (
    hidden_state_sensitivities,
    one_round_sensitivity,
    public_state_sensitivity,
)
from tacita.algorithm.base import Round
from tacita.privacy import (
    Clipped,
    NoiseSchedule,
    Noisy,
    Question,
    Scope,
    WithoutReplacement,
    WithReplacement,
    account,
    forecast,
    gaussian_epsilon,
    guarantee,
    report,
    within_budgets,
)
from tacita.privacy.accounting.curve import LossCurve, renyi
from tacita.privacy.accounting.profiles import batch_profile
from tacita.privacy.accounting.releases import SampledGaussian
from tacita.privacy.budgets import Spoken

DELTA = 1e-4


def ask(**changes) -> Question:
    words = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}
    scope = Scope(**{name: changes.pop(name, words[name]) for name in words})
    return Question(**{"scope": scope, "agent": 0, "rounds": 10, **changes})


def unit_rows(agents=2, samples=325, features=2):
    """Rows of norm 1, so that the logistic loss is 1/4-smooth."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(agents * samples, features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    agent = np.repeat(np.arange(agents), samples)
    return tacita.from_arrays(x, x[:, 0] > 0, agent)


@pytest.fixture(scope="module")
def problem():
    return unit_rows()


def disjoint(batch=10, norm=1.0):
    return Clipped(
        norm=norm, oracle=tacita.Minibatch(size=batch, sampling="permutation")
    )


# Total claimed, K, Q -> RDP-WOR for pT rounds, participation mixture, T rounds:
# what dp-accounting gives for batches of Q b out of 325 at the noise of (20).
WITHOUT_REPLACEMENT = (
    (0.1, 20, 5, 0.0412, 0.0417, 0.0880),
    (0.5, 20, 5, 0.2176, 0.2297, 0.5293),
    (1.0, 20, 5, 0.4686, 0.4984, 1.146),
    (3.0, 20, 5, 1.638, 1.764, 4.094),
    (3.0, 10, 1, 10.997, 11.490, 39.55),
)


@pytest.mark.few(3)
@pytest.mark.parametrize("row", WITHOUT_REPLACEMENT)
def test_public_state_equals_dp_accounting(problem, row):
    """One record in one batch: z is the noise over the public-state sensitivity."""
    total, active, steps, by_count, mixture, everybody = row
    part = active / 100
    per_round = round_epsilon(
        epsilon=total, rate=10 * steps / 325, participation=part, rounds=100
    )
    multiplier = math.sqrt(2 * math.log(1.25 / DELTA)) / per_round
    # Constant gamma: the change of a letter by one hit, as a change of a gradient.
    gamma, rho = 795.0, 20.0
    change = public_state_sensitivity(
        gamma=gamma, rho=rho, inner_steps=steps, gradient_bound=1.0, batch=10
    )
    algorithm = tacita.FedSPD(
        rho=rho,
        gamma=gamma,
        local_steps=steps,
        noise_std=multiplier * change * (rho + gamma) / 2,
        oracle=disjoint(),
    )
    for question, expected in (
        (ask(rounds=active), by_count),
        (ask(rounds=100, participation=part), mixture),
        (ask(rounds=100), everybody),
    ):
        found = guarantee(algorithm, problem, question)
        # The table has three or four digits; a finer grid of orders gains up to 1 %.
        bounds = renyi(found.curve).epsilon(DELTA)
        assert bounds == pytest.approx(expected, rel=0.011)
        # Loss distributions, which are used, know better.
        assert 0.2 * bounds < found.epsilon(DELTA) < 0.85 * bounds
        exact = account(
            observer="coordinator",
            unit="record",
            relation="replace_one",
            noise_std=multiplier,
            sensitivity=1.0,
            rounds=question.rounds,
            participation=question.participation,
            sampling=WithoutReplacement(10 * steps, 325),
        )
        assert found.epsilon(DELTA) == pytest.approx(exact.epsilon(DELTA), rel=1e-7)
    assert "public-state" in found.theorem


def multiplier_of(algorithm, problem, **changes):
    """The noise over the sensitivity of one round without amplification."""
    return 1 / guarantee(algorithm, problem, ask(rounds=1, **changes)).mu


def test_every_step_and_the_general_form(problem):
    common = {"rho": 2.0, "gamma": 3.0, "local_steps": 4, "noise_std": 0.5}
    letter = 2 * 0.5 / 5.0
    whole = tacita.FedSPD(**common, oracle=Clipped(norm=1.0))
    # All records in every step: each changes by 2 G/m.
    s = one_round_sensitivity(gamma=3.0, rho=2.0, inner_steps=4, gradient_bound=1 / 325)
    assert multiplier_of(whole, problem) == pytest.approx(letter / s)
    # A whole client, and steps too long not to expand: 2 G in every step.
    s = one_round_sensitivity(gamma=3.0, rho=2.0, inner_steps=4, gradient_bound=1.0)
    assert multiplier_of(whole, problem, unit="client") == pytest.approx(letter / s)
    long = {**common, "gamma": 0.1}
    s = one_round_sensitivity(gamma=0.1, rho=2.0, inner_steps=4, gradient_bound=1.0)
    expands = tacita.FedSPD(**long, oracle=Clipped(norm=1.0))
    assert multiplier_of(expands, problem) == pytest.approx(2 * 0.5 / 2.1 / s)
    # DP-FedAvg: Q steps of 2 G/m, or one hit in one of Q disjoint batches of b.
    average = {"step_size": 0.5, "local_steps": 4, "noise_std": 0.5}
    full = tacita.DPFedAvg(**average, oracle=Clipped(norm=1.0))
    assert multiplier_of(full, problem) == pytest.approx(0.5 / (4 * 2 / 325))
    batches = guarantee(
        tacita.DPFedAvg(**average, oracle=disjoint()), problem, ask(rounds=3)
    )
    exact = account(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=0.5,
        sensitivity=0.2,
        rounds=3,
        sampling=WithoutReplacement(40, 325),
    )
    assert batches.rdp(8.0) == pytest.approx(exact.rdp(8.0))


@pytest.mark.long
def test_letters_of_dp_fed_avg_move_no_further(problem):
    """Neighbours' letters compared directly, at the same start and batches."""
    import jax
    import jax.numpy as jnp

    from tacita.audits.canary import neighbours, worst_canary
    from tacita.problem.oracles import AgentOracle

    small = unit_rows(agents=1, samples=12)
    algorithm = tacita.DPFedAvg(step_size=4.0, local_steps=3, oracle=disjoint(4, 0.5))
    pair = neighbours(small, worst_canary(small, algorithm))
    worst = 0.0
    with jax.enable_x64(True):
        for seed in range(20):
            key = jax.random.key(seed)
            told = jax.random.normal(key, (2,), jnp.float64)
            letters = []
            for one in pair:
                rows = jax.tree.map(lambda leaf: leaf[0], one.population.rows)
                oracle = AgentOracle(algorithm.oracle, one.population.local(rows))
                letters.append(algorithm.local(key, oracle, None, told)[1])
            worst = max(worst, float(jnp.linalg.norm(letters[0] - letters[1])))
    # The record is four times longer than allowed for, so steps of 4 may expand; it
    # is clipped, and moves its own step by 2 C eta/b.
    assert 0.3 < worst / (2 * 0.5 * 4.0 / 4) <= 1 + 1e-9


def test_hidden_state_report_has_claim_number_and_warning(problem):
    algorithm = fed_spd_as_printed(
        epsilon=1.0, delta=DELTA, rounds=100, participation=1.0, samples=325, dim=162
    )
    told = forecast(problem, algorithm, rounds=100, delta=DELTA).row("coordinator")
    assert told.paper_claim["claimed_epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert told.paper_claim["status"] == "refuted"
    assert "WARNING" in told.theorem
    gammas = algorithm.gamma.start * np.sqrt(np.arange(1, 101))
    s = hidden_state_sensitivities(
        gamma=gammas, rho=20.0, inner_steps=5, gradient_bound=1.0, batch=10
    )
    sigma = 2 * algorithm.noise_std / (20.0 + gammas)
    assert told.mu == pytest.approx(np.linalg.norm(s / sigma), rel=1e-9)
    assert told.epsilon > 30
    # Which 20 rounds is unknown: a bound over all choices.
    some = guarantee(algorithm, problem, ask(rounds=20, total=100))
    draw = np.random.default_rng(0)
    for chosen in (np.arange(20), np.arange(80, 100), draw.permutation(100)[:20]):
        active = np.sort(chosen)
        s = hidden_state_sensitivities(
            gamma=gammas[active],
            rho=20.0,
            inner_steps=5,
            gradient_bound=1.0,
            batch=10,
        )
        assert np.linalg.norm(s / sigma[active]) <= some.mu
    with pytest.raises(tacita.TacitaError, match="state='public'"):
        tacita.private(
            problem,
            tacita.FedSPD(state="hidden"),
            epsilon=1.0,
            delta=DELTA,
            observer="coordinator",
            rounds=2,
        )


@pytest.mark.long
def test_private_sets_the_noise_of_disjoint_batches(problem):
    safe = tacita.private(
        problem,
        tacita.FedSPD(rho=1.0, gamma=2.0, oracle=disjoint()),
        epsilon=1.0,
        delta=DELTA,
        observer="coordinator",
        rounds=3,
    )
    row = tacita.simulate(problem, safe, 3).privacy.row("coordinator")
    assert 0.99 < row.epsilon <= 1.0 and row.relation == "replace_one"
    # A third of the noise that one hit without amplification would need.
    alone = tacita.privacy.gaussian_sigma(1.0, DELTA, math.sqrt(3) * 0.2)
    assert safe.noise_std < alone / 2


def test_with_replacement_bounds_the_true_pair():
    """The mixture that the release really is, by quadrature, in both directions."""
    z, draws, samples = 1.3, 6, 20
    x = np.linspace(-25, 25, 40_001)
    k = np.arange(draws + 1)
    share = stats.binom.pmf(k, draws, 1 / samples)
    # A hit shifts by half the sensitivity up in D and down in D'.
    up = (share * stats.norm.pdf(x[:, None], k / 2, z)).sum(1)
    down = (share * stats.norm.pdf(x[:, None], -k / 2, z)).sum(1)
    grid = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
    bound = batch_profile(z, WithReplacement(draws, samples))(grid)
    for epsilon, most in zip(grid, bound, strict=True):
        for a, b in ((up, down), (down, up)):
            delta = np.maximum(a - np.exp(epsilon) * b, 0).sum() * (x[1] - x[0])
            assert delta <= most * (1 + 1e-9)
    curve = LossCurve(((SampledGaussian(z, WithReplacement(draws, samples)), 1),))
    for epsilon, most in zip(grid, bound, strict=True):
        assert curve.delta(float(epsilon)) == pytest.approx(most, rel=1e-2, abs=1e-9)
    # One record only: every draw hits, a plain Gaussian release of n times the change.
    plain = account(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=3.0,
        sensitivity=4.0,
        rounds=1,
    )
    certain = LossCurve(((SampledGaussian(3.0, WithReplacement(4, 1)), 1),))
    assert 0 <= certain.epsilon(DELTA) / plain.epsilon(DELTA) - 1 < 1e-5
    assert WithReplacement(50, 325).rate < 50 / 325


def test_with_replacement_in_fed_spd_composes_with_participation(problem):
    oracle = Clipped(
        norm=1.0, oracle=tacita.Minibatch(size=10, sampling="with_replacement")
    )
    algorithm = tacita.FedSPD(rho=20.0, gamma=795.0, noise_std=1.0, oracle=oracle)
    always = guarantee(algorithm, problem, ask(rounds=20))
    seldom = guarantee(algorithm, problem, ask(rounds=100, participation=0.2))
    worst = guarantee(algorithm, problem, ask(rounds=100))
    assert always.epsilon(DELTA) < seldom.epsilon(DELTA) < worst.epsilon(DELTA)
    assert "with replacement" in always.theorem


def test_budgets_are_one_for_all_or_one_each(problem):
    noisy = tacita.DPSGD(oracle=Noisy(std=0.2, oracle=Clipped(norm=1.0)))
    asked = dict(delta=DELTA, observer="coordinator")
    with pytest.raises(tacita.TacitaError, match="expected epsilon of shape"):
        within_budgets(problem, noisy, epsilon=[1.0] * 99, **asked)
    assert np.ndim(within_budgets(problem, noisy, epsilon=1.0, **asked).turns) == 1


@pytest.mark.parametrize("rounds", (None, 40))
def test_budgets_hold_in_whichever_rounds_a_client_speaks(problem, rounds):
    """Most noise comes first here, and who is drawn seldom speaks in late rounds."""
    schedule = NoiseSchedule(weights=[1.0] * 4 + [100.0])
    noise = Noisy(std=0.5, oracle=Clipped(norm=1.0), schedule=schedule)
    noisy = tacita.DPSGD(step_size=0.5, oracle=noise)
    asked = dict(delta=DELTA, observer="coordinator", epsilon=0.3, rounds=rounds)
    turns = within_budgets(problem, noisy, **asked).turns
    late = guarantee(noisy, problem, ask(rounds=int(turns[0]), total=40))
    more = guarantee(noisy, problem, ask(rounds=int(turns[0]) + 1, total=40))
    assert turns[0] >= 1 and late.epsilon(DELTA) <= 0.3 < more.epsilon(DELTA)


def test_budgets_that_allow_nobody_a_round_say_so(problem):
    loud = tacita.DPSGD(oracle=Noisy(std=0.2, oracle=Clipped(norm=1.0)))
    asked = dict(delta=DELTA, observer="coordinator")
    costs = guarantee(loud, problem, ask(rounds=1)).epsilon(DELTA)
    with pytest.raises(tacita.TacitaError, match=f"one costs epsilon={costs:.4g}"):
        within_budgets(problem, loud, epsilon=0.9 * costs, **asked)
    few = np.full(problem.n_agents, 0.9 * costs)
    few[1] = 1.1 * costs
    assert within_budgets(problem, loud, epsilon=few, **asked).turns.tolist() == [
        float(i == 1) for i in range(problem.n_agents)
    ]


def test_central_noise_is_not_set_for_letters(problem):
    budget = dict(epsilon=1.0, delta=DELTA, observer="final_model", unit="client")
    with pytest.raises(tacita.TacitaError, match="the coordinator's.*give noise_std="):
        tacita.private(
            problem, tacita.ClientDPFedAvg(step_size=0.5), rounds=3, **budget
        )


@pytest.mark.parametrize(("clients", "drawn"), [(2, 1), (4, 2)])
def test_a_client_knows_of_how_many_others_a_cohort_was_drawn(clients, drawn):
    few = unit_rows(agents=clients, samples=3)
    algorithm = tacita.ClientDPFedAvg(clip=0.5, noise_std=1.0, step_size=0.5)
    about = dict(rounds=1, participation=drawn / clients, active=drawn)
    printed = {
        who: guarantee(algorithm, few, ask(observer=who, unit="client", **about))
        for who in ("neighbour", "final_model")
    }

    def profile(rate, epsilon):
        # A sum with an update of one sign or the other in it, or of those at zero.
        grid = np.linspace(-12, 12, 40_001)
        one, other = (stats.norm.pdf(grid, at) for at in (0.5, -0.5))
        rest = stats.norm.pdf(grid, -0.5)
        p, q = (rate * mine + (1 - rate) * rest for mine in (one, other))
        return np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), grid)

    def exact(epsilon):
        in_it = drawn / clients
        others = clients - 1
        return in_it * profile((drawn - 1) / others, epsilon) + (1 - in_it) * profile(
            drawn / others, epsilon
        )

    told = printed["neighbour"].epsilon(DELTA)
    assert exact(told) <= DELTA
    # Who sees the last model only knows less; its number would be false here.
    assert exact(printed["final_model"].epsilon(DELTA)) > DELTA


@pytest.mark.long
def test_central_noise_protects_clients_from_who_sees_models(problem):
    many = unit_rows(agents=20, samples=5)
    algorithm = tacita.ClientDPFedAvg(clip=0.5, noise_std=1.0, step_size=0.5, cohort=4)
    run = tacita.simulate(many, algorithm, 10, seed=0, participation=0.2)
    told = report(run, many, algorithm, delta=DELTA)
    row = told.row("final_model", "client")
    from tacita.privacy import Poisson

    exact = account(
        observer="final_model",
        unit="client",
        relation="add_remove",
        noise_std=2.0,
        sensitivity=1.0,
        rounds=10,
        sampling=Poisson(0.2),
    )
    assert row.epsilon == pytest.approx(exact.epsilon(DELTA))
    assert any("honest" in one["statement"] for one in row.assumptions)
    assert told.row("coordinator", "client").epsilon is None
    drawn = guarantee(
        algorithm,
        many,
        ask(
            observer="neighbour",
            unit="client",
            participation=0.2,
            active=4,
        ),
    )
    exact = account(
        observer="neighbour",
        unit="client",
        relation="replace_one",
        noise_std=1.0,
        sensitivity=1.0,
        rounds=10,
        sampling=WithoutReplacement(4, 19),  # it knows whether it was drawn itself
    )
    assert drawn.epsilon(DELTA) == pytest.approx(exact.epsilon(DELTA))
    # A record is no worse off: another record makes another client.
    one = told.row("final_model", "record")
    whole = guarantee(
        algorithm,
        many,
        ask(observer="final_model", unit="client", participation=0.2, active=None),
    )
    assert one.epsilon == pytest.approx(whole.epsilon(DELTA))
    # The client's own row is under add_remove, and may be less: the words say so.
    assert "as its client under replace_one" in one.theorem
    assert told.row("coordinator", "record").epsilon is None


def clients_of_two(first, label, l2):
    """Three clients with two rows each; those of all but the first are empty."""
    x, y = np.zeros((6, 2)), np.zeros(6)
    x[:2, 0], y[:2] = first, label
    return tacita.from_arrays(x, y, np.repeat(range(3), 2), model="linear", l2=l2)


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_a_client_that_is_emptied_may_still_move_the_sum(l2):
    """Its regulariser pulls it to zero, where its rows pulled it away: 2 S, not S."""
    algorithm = tacita.ClientDPFedAvg(
        clip=1.0, noise_std=1.0, step_size=0.5, local_steps=2, oracle=Clipped(norm=10.0)
    )
    there, emptied = clients_of_two(1e-3, 1e9, l2), clients_of_two(0.0, 0.0, l2)
    asked = dict(rounds=1, seed=0, start=np.array([5.0, 0.0]), record=())
    runs = [tacita.simulate(p, algorithm, **asked) for p in (there, emptied)]
    # The same noise in both: of size noise_std/3 in the model.
    mu = 3 * np.linalg.norm(runs[0].params - runs[1].params)
    assert mu == pytest.approx(2.0 if l2 else 1.0)
    row = runs[0].privacy.row("final_model", "client")
    assert row.relation == "add_remove"
    assert row.epsilon == pytest.approx(gaussian_epsilon(1 / mu, row.delta))
    assert ("counts as a replaced one" in row.theorem) == (l2 > 0)


@pytest.mark.parametrize(
    "oracle",
    [
        Noisy(std=0.1, oracle=Clipped(norm=1.0)),
        tacita.Quantised(bits=2, range=1.0, rounding="nearest"),
    ],
)
def test_an_emptied_client_is_silent_with_exact_gradients_only(oracle):
    clients = clients_of_two(1e-3, 1e9, l2=0.0)
    algorithm = tacita.ClientDPFedAvg(noise_std=1.0, step_size=0.5, oracle=oracle)
    whole = dict(rounds=1, observer="final_model", unit="client")
    found = guarantee(algorithm, clients, ask(relation="add_remove", **whole))
    assert found.mu == guarantee(algorithm, clients, ask(**whole)).mu == 2.0


@pytest.mark.parametrize("observer", ["final_model", "coordinator"])
@pytest.mark.parametrize(
    "algorithm",
    (
        tacita.ClientDPFedAvg(clip=0.5, noise_std=1.0, step_size=0.5),
        tacita.DPFedAvg(step_size=0.5, noise_std=1.0, oracle=Clipped(norm=1.0)),
        tacita.FedAvg(step_size=0.5, oracle=Noisy(std=0.2, oracle=Clipped(norm=1.0))),
        tacita.FedPLT(
            rho=1.0,
            solver=tacita.solvers.GradientDescent(step_size=0.3, local_steps=2),
            oracle=Noisy(std=0.2, oracle=Clipped(norm=1.0)),
        ),
    ),
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_a_record_is_never_worse_off_than_its_client(problem, algorithm, observer):
    """Under replace_one a client with another record is another client."""
    found = []
    for unit in ("record", "client"):
        try:
            asked = ask(observer=observer, unit=unit, rounds=3, active=None)
            found.append(guarantee(algorithm, problem, asked).epsilon(DELTA))
        except tacita.TacitaError:
            found.append(np.inf)
    assert found[0] <= found[1]
    trusts = isinstance(algorithm, tacita.ClientDPFedAvg) and observer == "coordinator"
    assert np.isfinite(found[0]) != trusts


@pytest.mark.long
@pytest.mark.parametrize(
    "algorithm",
    (
        tacita.DPSGD(step_size=0.5, oracle=Noisy(std=0.5, oracle=Clipped(norm=1.0))),
        tacita.FedSPD(rho=1.0, gamma=1.0, noise_std=0.5, oracle=Clipped(norm=1.0)),
    ),
    ids=("active", "all"),
)
def test_a_spent_client_falls_silent_and_the_others_go_on(algorithm):
    """A rich and a poor client: equal to a run that the poor one leaves."""
    problem = unit_rows(agents=2, samples=40)
    algorithm = algorithm.resolve(problem)
    once = within_budgets(
        problem, algorithm, epsilon=[0.5, 5.0], delta=DELTA, observer="coordinator"
    )
    poor, rich = (int(v) for v in once.turns)
    assert 0 < poor < rich
    run = tacita.simulate(problem, once, poor + 2, seed=4)
    before = tacita.simulate(problem, algorithm, poor, seed=4)
    np.testing.assert_allclose(run.agents[0], before.agents[0], atol=1e-12)
    assert not np.allclose(run.agents[1], before.agents[1])
    told = report(run, problem, once, delta=DELTA).row("coordinator")
    # The rich one spoke in all rounds, the poor one in as many as it could pay for.
    spent = [
        guarantee(once, problem, ask(agent=i, rounds=poor + 2)).epsilon(DELTA)
        for i in range(2)
    ]
    assert spent[0] <= 0.5 and told.epsilon == pytest.approx(max(spent))
    beyond = guarantee(algorithm, problem, ask(rounds=poor + 1)).epsilon(DELTA)
    assert beyond > 0.5
    if algorithm.averages == "active":
        # Nobody is left: the model stays.
        silent = tacita.privacy.Budgeted(algorithm=algorithm, turns=1)
        one, three = (
            tacita.simulate(problem, silent, k, seed=0).params for k in (1, 3)
        )
        np.testing.assert_array_equal(one, three)


def test_the_sum_of_those_who_still_speak_is_not_that_of_all():
    """One of three speaks: its update counts once, as its noise is for."""
    summed = tacita.ClientDPFedAvg(clip=1.0, cohort=3.0, noise_std=2.0, step_size=0.1)
    silent = tacita.privacy.Budgeted(algorithm=summed, turns=[5, 0, 0])
    update, key = jnp.array([0.6, 0.8]), jax.random.key(0)
    # The mean of its letter and of two that weigh nothing.
    mean = Spoken(update / 3, jnp.asarray(1 / 3))
    now = Round(n_agents=3, h=None, number=1, active=3)
    (with_it, _), _ = silent.combine(key, (jnp.zeros(2), jnp.zeros(2)), mean, now)
    nothing = Spoken(jnp.zeros(2), jnp.asarray(1 / 3))
    (noise, _), _ = silent.combine(key, (jnp.zeros(2), jnp.zeros(2)), nothing, now)
    np.testing.assert_allclose(with_it - noise, update / 3, atol=1e-6)
    # Who never speaks costs nothing, and the report tells of the one who does.
    problem = unit_rows(agents=3, samples=4)
    scope = Scope("final_model", "client", "add_remove")
    spent = [
        guarantee(silent, problem, Question(scope=scope, agent=i, rounds=4)).mu
        for i in (0, 1)
    ]
    assert spent == [pytest.approx(2 / 2), 0.0]


SETTING = {"runs": 20_000, "rounds": 100, "chance": 1.0, "samples": 325}


@pytest.mark.long
def test_the_audit_refutes_the_printed_claim_and_not_the_public_state(problem):
    """All clients in every round, a claimed total of 0.1."""
    printed = fed_spd_as_printed(
        epsilon=0.1, delta=DELTA, rounds=100, participation=1.0, samples=325, dim=162
    )
    found = one_record.audit(printed, **SETTING, delta=DELTA)
    claim = guarantee(printed, problem, ask(rounds=100))
    assert claim.paper_claim.claimed_epsilon(DELTA) == pytest.approx(0.1)
    assert found.refutes(claim.paper_claim) and found.lower_bound > 1.5
    assert not found.refutes(claim)
    public = tacita.FedSPD(
        rho=20.0,
        gamma=printed.gamma,
        noise_std=2.0 * 0.2,
        oracle=disjoint(),
    )
    sound = guarantee(public, problem, ask(rounds=100))
    same = one_record.audit(public, **SETTING, delta=DELTA)
    assert not same.refutes(sound)
    # The same attack finds a noise that is too small for what is claimed.
    weak = tacita.FedSPD(
        rho=20.0,
        gamma=printed.gamma,
        noise_std=0.1 * 0.2,
        oracle=disjoint(),
    )
    assert one_record.audit(weak, **SETTING, delta=DELTA).lower_bound > 2


def test_printed_noise_is_20():
    """Against the formula for the letter: 4 Q G sqrt(2 ln(1.25/d))/((Q-1) e (r+g))."""
    noise = printed_noise(epsilon=0.44, delta=DELTA, local_steps=5)
    letter = 4 * 5 * math.sqrt(2 * math.log(1.25e4)) / (4 * 0.44 * 815.0)
    assert 2 * noise / 815.0 == pytest.approx(letter)
