"""Fed-PLT with noisy local steps in every way that the first version may mean.

A loop of its own, for readings that the package does not have: noise once a round,
losses summed or averaged, batches. All variances of one setting are run at once.

    y = mean z_i,  v = 2 y - z_i
    x_i <- x_i - gamma (g_i(x_i) + (x_i - v)/rho) + noise    Ne times
    z_i <- z_i + 2 (x_i - y)
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from papers.fed_plt.common.problems import EPSILON, ROWS, Instance
from tacita.trees import in_double_precision

AGENTS, STEPS = 10, 10
#: Standard deviations by the column's number and gamma, and whether every local step
#: gets noise or only the last one of a round.
NOISES: dict[str, tuple[Any, bool]] = {
    "each step, sqrt(2 gamma v)": (lambda v, step: np.sqrt(2 * step * v), True),
    "each step, sqrt(2 gamma) v": (lambda v, step: math.sqrt(2 * step) * v, True),
    "each step, sqrt(v)": (lambda v, step: np.sqrt(v), True),
    "each gradient, sqrt(v)": (lambda v, step: step * np.sqrt(v), True),
    "once a round, sqrt(2 gamma v)": (lambda v, step: np.sqrt(2 * step * v), False),
    "once a round, sqrt(v)": (lambda v, step: np.sqrt(v), False),
}
MEASURES = (
    "sum_i grad f_i(mean x)",
    "mean_i grad f_i(mean x)",
    "X - x*",
    "X - x*, over sqrt(N)",
    "mean x - x*",
    "y - x*",
    "Z - z*",
    "f(mean x) - f(x*)",
)


class Setting(NamedTuple):
    """One way to read the experiment."""

    loss: str  # "sum", which fits the other tables, or "mean", as printed
    noise: str
    batch: int = ROWS  # rows of a local gradient

    def __str__(self) -> str:
        rows = "" if self.batch == ROWS else f", batches of {self.batch}"
        return f"{self.loss} of losses, {self.noise}{rows}"


class Data(NamedTuple):
    """f_i(x) = share sum_h log(1 + exp(-s_h x)) + (weight/2) ||x||^2."""

    signed: Any  # b_h a_h, (agents, rows, features)
    share: float

    @property
    def weight(self) -> float:
        """Of the regulariser: the same in both forms."""
        return EPSILON

    def gradient(self, x: Array, rows: Array | None = None) -> Array:
        """Of every agent at its own x, (..., agents, features); of some rows."""
        signed = self.signed if rows is None else _taken(self.signed, rows)
        slopes = -jax.nn.sigmoid(-jnp.einsum("...ahf,...af->...ah", signed, x))
        share = self.share * self.signed.shape[1] / signed.shape[-2]
        return share * jnp.einsum("...ah,...ahf->...af", slopes, signed) + (
            self.weight * x
        )

    def value(self, x: Array) -> Array:
        """sum_i f_i at one x, (..., features)."""
        losses = jax.nn.softplus(-jnp.einsum("ahf,...f->...ah", self.signed, x))
        squares = len(self.signed) * self.weight / 2 * jnp.sum(x**2, axis=-1)
        return self.share * jnp.sum(losses, axis=(-2, -1)) + squares


def _taken(signed: Array, rows: Array) -> Array:
    return jnp.take_along_axis(signed, rows[..., None], axis=-2)


def data_of(instance: Instance, loss: str) -> Data:
    """The rows of an instance, with the labels' signs and the intercept."""
    rows = instance.problem.population.rows
    x = np.asarray(rows.x, float)
    x = np.swapaxes(x, 1, 2) if instance.problem.population.by_feature else x
    return Data(x * np.asarray(rows.y)[..., None], 1.0 if loss == "sum" else 1 / ROWS)


def optimum(data: Data) -> np.ndarray:
    """The minimiser of sum_i f_i, by Newton's method."""
    rows = np.asarray(data.signed).reshape(-1, data.signed.shape[-1])
    x, weight = np.zeros(rows.shape[1]), len(data.signed) * data.weight
    for _ in range(50):
        p = 1 / (1 + np.exp(rows @ x))
        gradient = -data.share * rows.T @ p + weight * x
        curved = data.share * (rows.T * (p * (1 - p))) @ rows
        x = x - np.linalg.solve(curved + weight * np.eye(len(x)), gradient)
    return x


def theory_step(data: Data, rho: float) -> float:
    """The step 2/(L + mu + 2/rho), L the largest Hessian bound of any agent."""
    grams = np.einsum("ahf,ahg->afg", data.signed, data.signed) / 4
    largest = data.share * np.linalg.eigvalsh(grams)[:, -1].max() + data.weight
    return 2 / (largest + data.weight + 2 / rho)


class Ready(NamedTuple):
    """An instance in one of its two forms, with what every setting needs of it."""

    data: Data
    best: np.ndarray
    start: np.ndarray
    step: float


def ready(instance: Instance, loss: str, rho: float) -> Ready:
    """Its optimum and its step of theory."""
    data = data_of(instance, loss)
    return Ready(data, optimum(data), instance.start, theory_step(data, rho))


@in_double_precision
def errors(
    given: Ready,
    setting: Setting,
    rho: float,
    variances: np.ndarray,
    rounds: int,
    seed: int,
) -> np.ndarray:
    """Every measure after every round, (measures, rounds, variances)."""
    std, every_step = NOISES[setting.noise]
    return np.asarray(
        _run(
            given.data,
            given.best,
            given.start,
            std(variances, given.step),
            jax.random.key(seed),
            rho,
            given.step,
            rounds,
            every_step,
            setting.batch,
        )
    )


@functools.partial(jax.jit, static_argnums=(7, 8, 9))
def _run(
    data: Data,
    best: Array,
    start: Array,
    std: Array,
    key: Array,
    rho: Any,
    gamma: Any,
    rounds: int,
    every_step: bool,
    batch: int,
) -> Array:
    shape = (len(std), *start.shape)
    rows = data.signed.shape[1]
    # One draw for all variances: their errors then differ by the scale alone.
    for_noise, for_rows = jax.random.split(key)
    noises = jax.random.normal(for_noise, (rounds, STEPS, *start.shape))
    if not every_step:
        noises = noises.at[:, :-1].set(0)
    z_best = best - rho * data.gradient(jnp.broadcast_to(best, start.shape))
    level = data.value(best)

    def local(carry: tuple[Array, Array], given: tuple[Array, Array]) -> Any:
        (x, v), (noise, draw) = carry, given
        chosen = None
        if batch < rows:
            order = jax.random.uniform(draw, (start.shape[0], rows))
            chosen = jnp.argsort(order, axis=-1)[:, :batch]
        slope = data.gradient(x, chosen) + (x - v) / rho
        return (x - gamma * slope + std[:, None, None] * noise, v), None

    def step(carry: tuple[Array, Array], given: tuple[Array, Array]) -> Any:
        (x, z), (noise, draw) = carry, given
        y = z.mean(axis=1, keepdims=True)
        draws = (noise, jax.random.split(draw, STEPS))
        x = jax.lax.scan(local, (x, 2 * y - z), draws)[0][0]
        z = z + 2 * (x - y)
        return (x, z), measured(x, z)

    def measured(x: Array, z: Array) -> Array:
        mean, norm = x.mean(axis=1), jnp.linalg.norm
        everywhere = jnp.broadcast_to(mean[:, None], x.shape)
        gradient = norm(data.gradient(everywhere).sum(axis=1), axis=-1)
        apart = jnp.sqrt(jnp.sum((x - best) ** 2, axis=(1, 2)))
        return jnp.stack(
            [
                gradient,
                gradient / AGENTS,
                apart,
                apart / math.sqrt(AGENTS),
                norm(mean - best, axis=-1),
                norm(z.mean(axis=1) - best, axis=-1),
                jnp.sqrt(jnp.sum((z - z_best) ** 2, axis=(1, 2))),
                data.value(mean) - level,
            ]
        )

    first = jnp.broadcast_to(start, shape)
    drawn = (noises, jax.random.split(for_rows, rounds))
    book = jax.lax.scan(step, (first, first), drawn)[1]
    return jnp.swapaxes(book, 0, 1)
