"""An algorithm whose letters a secure sum joins: increments instead of letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.aggregation.secure.rule import SecureSum
from tacita.algorithm.base import (
    MOST_STEPS,
    Algorithm,
    Averages,
    Gradients,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.wrapper import Wrapper
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import AgentOracle
from tacita.trees import frozen, replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Who may use one, for refusals.
_WAY_OUT = "use ServerGD, DPSGD, FedAvg(local_steps=1), DPFedAvg or ClientDPFedAvg"


class Known(NamedTuple):
    """The coordinator's memory."""

    inner: Any
    told: Any  # what increments answer; None before the first round
    first: Any = None  # the mean letter before the first round


@frozen
class Summed(Wrapper):
    """The same algorithm, whose letters enter a secure sum as increments.

    Made by `tacita.private(..., aggregation=tacita.SecureSum(...))`, or by running an
    algorithm with `aggregation=`.

    Attributes:
        algorithm: One that says it may (`joining`), without noise of its own.
        aggregation: What is agreed of the sum.
    """

    algorithm: Any
    aggregation: SecureSum

    def __post_init__(self) -> None:
        refuse_algorithm(self.algorithm)

    @property
    def source(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.source

    @property
    def averages(self) -> Averages:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Increments belong to their round."""
        return Averages.ACTIVE

    def gradients(self) -> Gradients:
        """The inner algorithm's."""
        return self.algorithm.gradients()

    def refuse_problem(self, problem: Problem) -> None:
        """Also needs double precision, and a regulariser that parts from the rows."""
        inner = self.algorithm
        inner.refuse_problem(problem)
        if problem.dtype != np.float64:
            check.refuse(
                f"a secure sum needs letters in double precision, got {problem.dtype}: "
                "sums of float32 bound no change of a record; make the problem with "
                "dtype='float64'"
            )
        if problem.dim == 0:
            check.refuse("a letter without numbers has no sum; the model has dim=0")
        for leaf in jax.tree.leaves(inner):
            if np.ndim(leaf) == 1:  # a schedule has columns
                check.refuse(
                    "a secure sum takes numbers that are common to all agents, and "
                    f"{type(inner).__name__} has some that differ; give one for all"
                )
        if not isinstance(problem.population.regulariser, SquaredL2):
            check.refuse(
                "a secure sum leaves the regulariser to the coordinator, which works "
                "for l2= only"
            )

    def resolve(self, problem: Problem) -> Self:
        """Let theory set what was left out; without noise that is the step too."""
        rule = self.aggregation.without_noise_on(problem.n_agents)
        ready = self.algorithm.resolve(problem)
        return replace(self, algorithm=ready, aggregation=rule)

    def init(self, w: Array) -> tuple[Any, Array]:
        """Nothing was added yet."""
        return self.algorithm.init(w)[0], jnp.zeros_like(w)

    def init_coordinator(self, w: Array) -> Known:
        """The inner coordinator's, and the letter it begins with."""
        first = self.algorithm.init(w)[1]
        return Known(self.algorithm.init_coordinator(w), None, first)

    def combine(
        self, key: Array, kept: Known, mean: Array, now: Round
    ) -> tuple[Known, Any]:
        """The inner coordinator's step; a round with too few letters is void."""
        inner = self.algorithm
        if kept.told is None:
            memory, told = inner.combine(key, kept.inner, kept.first, now)
            return Known(memory, told), told
        letter = inner.joined(kept.inner, kept.told, mean, now)
        after = inner.combine(key, kept.inner, letter, now)
        if self.aggregation.least is not None:
            enough = jnp.asarray(now.active) >= self.aggregation.least
            before = (kept.inner, kept.told)
            after = jax.tree.map(lambda a, b: jnp.where(enough, a, b), after, before)
        return Known(*after), after[1]

    def local(
        self, key: Array, oracle: AgentOracle, state: Any, inbox: Any
    ) -> tuple[Any, Array]:
        """What rows add; nothing to a question that is out of bounds."""
        state, added = self.algorithm.increment(key, oracle, state, inbox)
        most, norm = self.aggregation.broadcast, oracle.oracle.norm
        step = self.algorithm.step_before_noise()
        if step is not None and norm is not None:
            most = jnp.minimum(most, MOST_STEPS * step * norm)
        within = [jnp.all(jnp.abs(leaf) <= most) for leaf in jax.tree.leaves(inbox)]
        return state, jnp.where(jnp.all(jnp.asarray(within)), added, 0)

    def shared(self, broadcast: Any) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.shared(broadcast)

    def model(self, state: Any) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.model(state)


def refuse_algorithm(algorithm: Any) -> None:
    """Refuse, in one line, letters that a secure sum cannot join."""
    name = type(algorithm).__name__
    if not isinstance(algorithm, Algorithm):
        return  # a placeholder of JAX
    why = algorithm.joining.no_sum
    if why is not None:
        check.refuse(f"{name} has no secure sum: {why}; {_WAY_OUT}")
    assert isinstance(algorithm, ServerAlgorithm)
    if not (_nothing(algorithm.noise_std) and _nothing(algorithm.oracle.std)):
        check.refuse(
            f"{name} has noise of its own, and a secure sum brings its noise: leave "
            "noise_std and tacita.Noisy out, and let tacita.private set the sum's"
        )


def _nothing(std: Any) -> bool:
    """No noise, as far as a value is there to look at."""
    if std is None:
        return True
    return not check.is_number(std) or not np.any(np.asarray(std) > 0)


def summed(algorithm: Any, rule: Any) -> Any:
    """The algorithm as a rule joins its letters: a secure sum joins increments.

    `rule` may be the word "secure": everybody in every sum, nobody colludes.
    """
    if isinstance(rule, str) and rule == "secure":
        rule = SecureSum()
    if not isinstance(rule, SecureSum):
        return algorithm
    if isinstance(algorithm, Summed):
        check.refuse(
            "the algorithm has its secure sum already, with noise and grid set; leave "
            "aggregation out"
        )
    return Summed(algorithm=algorithm, aggregation=rule)
