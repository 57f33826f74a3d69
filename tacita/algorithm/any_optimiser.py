"""FedOpt with any optimisers: those of optax, for agents and for the coordinator.

S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 1.

    agent i       w_i <- x, then K times w_i <- w_i + ClientOpt(g_i(w_i))
    coordinator   x <- x + ServerOpt(x - mean of w_i over the active)

Agents begin every round with a fresh ClientOpt: what they send is a function of the
broadcast and of this round's gradients, so that it is accounted as any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.fed_opt import once_begun
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, one_of, precision_of, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class Kept(NamedTuple):
    """What the coordinator remembers."""

    x: Array  # the shared model
    optimiser: Any  # the state of ServerOpt


def _step_size(problem: Problem, algorithm: Any) -> float | None:
    """1 / smoothness, where agents have no optimiser."""
    return None if algorithm.client else descent.safe_step_size(problem, algorithm)


@frozen
class FedOpt(ServerAlgorithm):
    """FedAvg with optimisers of optax at the agents, at the coordinator, or both.

    The numbers of an optimiser are part of the compiled program, and a new optimiser
    compiles anew; `FedAdam`, `FedYogi`, `FedAdagrad` and `FedAvgM` do not.

    Attributes:
        client: An optimiser such as `optax.adam(1e-3)` for the local steps, begun anew
            in every round; None takes gradient steps of `step_size`.
        server: An optimiser for the coordinator, whose gradient is how far the mean
            model fell behind the shared one; None takes the mean model.
        step_size: Of the local steps without `client`; None lets theory choose.
        local_steps: K, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    client: Any = static(None)
    server: Any = static(None)
    step_size: Number = rate(theory=_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    joining: ClassVar[Joining] = Joining(
        Around.BROADCAST,
        Rules.ANY,
        no_sum="steps of an optimiser cannot be parted into what rows add",
    )
    purpose: ClassVar[str] = "any optimiser of optax, at agents and coordinator"
    source: ClassVar[str] = (
        "S. J. Reddi et al., Adaptive Federated Optimization, ICLR 2021, Algorithm 1"
    )

    def __post_init__(self) -> None:
        for name in ("client", "server"):
            made = getattr(self, name)
            if made is not None and not hasattr(made, "update"):
                check.refuse(
                    f"expected {name} an optimiser such as optax.adam(1e-3), got "
                    f"{name}={made!r}"
                )
        if self.client is not None and self.step_size is not None:
            check.refuse(
                "client has a step size of its own; leave step_size out, or client"
            )

    def refuse_problem(self, problem: Problem) -> None:
        """Also optimisers that ask for more than a gradient."""
        super().refuse_problem(problem)
        w = jax.ShapeDtypeStruct((problem.dim,), problem.dtype)
        for name in ("client", "server"):
            made = getattr(self, name)
            try:
                # Shapes only: nothing is computed or compiled.
                if made is not None:
                    jax.eval_shape(lambda v, o=made: _stepped(o, v, v, o.init(v)), w)
            except Exception as error:
                first = str(error).strip().split("\n")[0]
                check.refuse(f"{name} cannot step along a gradient alone: {first}")

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return ModelState(w), w

    def init_coordinator(self, w: Array) -> Kept:
        """An optimiser that has seen nothing yet."""
        with precision_of(w.dtype):
            return Kept(w, () if self.server is None else self.server.init(w))

    def combine(
        self, key: Array, kept: Kept, mean: Array, now: Round
    ) -> tuple[Kept, Array]:
        """Step: x <- x + ServerOpt(x - mean of w_i)."""
        before = kept._replace(x=mean)
        if self.server is None:
            return before, mean
        change = mean - kept.x
        moved, state = _stepped(self.server, -change, kept.x, kept.optimiser)
        # x + step, from the mean: a step that is the change gives FedAvg to the bit.
        after = Kept(mean + (moved - change), state)
        told = once_begun(now, after, before)
        return told, told.x

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """w_i <- x, then K times w_i <- w_i + ClientOpt(g_i(w_i))."""
        if self.client is None:
            w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
            return ModelState(w), w

        def body(pair: tuple[Array, Any], draw: Any) -> tuple[tuple[Array, Any], None]:
            v, optimiser = pair
            step, optimiser = _stepped(self.client, oracle(draw, v), v, optimiser)
            return (v + step, optimiser), None

        with precision_of(inbox.dtype):
            start = (inbox, self.client.init(inbox))
        draws = oracle.draws(key, self.local_steps)
        w = jax.lax.scan(body, start, draws, length=self.local_steps)[0][0]
        return ModelState(w), w


def _stepped(
    optimiser: Any, gradient: Array, w: Array, state: Any
) -> tuple[Array, Any]:
    """The step that an optimiser takes from w, and what it remembers of it."""
    with precision_of(w.dtype):
        step, after = optimiser.update(gradient, state, w)
        same = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
        return jnp.asarray(step, w.dtype), same
