"""What a run costs: operations, bytes, and with the user's numbers joules and CO2e.

A. Jung, "Federated Learning: From Theory to Practice", 8.6. Operations are those that
the compiler counts in the program of one gradient; joules per operation and per byte,
and kilograms per kilowatt-hour, depend on machines, networks and places: nobody but the
user knows them, so there are no defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.algorithm import ClientDPFedAvg, DPFedAvg, DPNorm, FedSPD
from tacita.algorithm.base import Algorithm
from tacita.algorithm.wrapper import Wrapper
from tacita.privacy.clipped import clipping_of
from tacita.privacy.noisy import Noisy
from tacita.problem.oracles import Oracle
from tacita.problem.population import Local
from tacita.problem.problem import Problem
from tacita.problem.quantised import inside
from tacita.trace import Run
from tacita.trees import in_double_precision, replace, tree_rows

_JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Energy:
    """What a run costs.

    Attributes:
        operations: Floating-point operations of all agents' gradients, or None where
            it is not known how many an agent computes in a turn.
        bytes: Payload of all letters.
        joules: Of both, or None where it is not known what they take.
        kilograms: Of CO2e, or None likewise.
    """

    operations: float | None
    bytes: int
    joules: float | None = None
    kilograms: float | None = None


def energy(
    problem: Problem,
    algorithm: Algorithm,
    run: Run,
    *,
    gradients: int | None = None,
    joules_per_operation: float | None = None,
    joules_per_byte: float | None = None,
    kilograms_per_kwh: float | None = None,
) -> Energy:
    """What a run cost: sum_i turns_i gradients operations e_op + bytes e_byte.

    Args:
        problem: What was solved.
        algorithm: How.
        run: The run: its turns and its letters are counted.
        gradients: In one turn of an agent; default what the algorithm declares. The
            coordinator's work and the solving of small systems are not counted.
        joules_per_operation: Of the agents' machines. All of the last three are the
            user's to give.
        joules_per_byte: Of the network.
        kilograms_per_kwh: CO2e of the electricity.
    """
    while isinstance(algorithm, Wrapper):
        algorithm = algorithm.algorithm
    steps = _gradients(algorithm, gradients)
    turns = run.info.get("turns")
    if turns is None:
        check.refuse("the run keeps no turns of agents: it has too many of them")
    turns = np.reshape(turns, (-1, problem.n_agents)).mean(axis=0)  # over seeds
    each = operations_of_gradient(problem, algorithm)
    used = [algorithm.oracle.rows_used(int(rows)) for rows in problem.counts]
    share = np.array(used) / max(*used, 1)
    operations = float(np.sum(turns * share)) * steps * each
    sent = int(run.info["communication"]["bytes"])
    joules = kilograms = None
    if joules_per_operation is not None and joules_per_byte is not None:
        per_operation = check.not_negative(joules_per_operation=joules_per_operation)
        per_byte = check.not_negative(joules_per_byte=joules_per_byte)
        joules = operations * per_operation + sent * per_byte
    if kilograms_per_kwh is not None:
        intensity = check.not_negative(kilograms_per_kwh=kilograms_per_kwh)
        if joules is None:
            check.refuse(
                "CO2e follows from joules: give joules_per_operation and "
                "joules_per_byte too"
            )
        kilograms = joules / _JOULES_PER_KWH * intensity
    return Energy(operations, sent, joules, kilograms)


def gradients_of(algorithm: Algorithm) -> int | None:
    """How many gradients an agent computes in a turn; None if that is not known."""
    while isinstance(algorithm, Wrapper):
        algorithm = algorithm.algorithm
    declared = algorithm.gradients()
    if not isinstance(declared, str):
        return sum(declared)
    if isinstance(algorithm, DPFedAvg | ClientDPFedAvg | FedSPD | DPNorm):
        return algorithm.local_steps  # theirs have noise once, and no account by steps
    return None


def _gradients(algorithm: Algorithm, gradients: int | None) -> int:
    if gradients is not None:
        return check.count(gradients=gradients)
    known = gradients_of(algorithm)
    if known is None:
        check.refuse(
            f"how many gradients {type(algorithm).__name__} takes in a round is not "
            "known; give gradients= in Python, or no joules"
        )
    return known


@in_double_precision
def operations_of_gradient(problem: Problem, algorithm: Algorithm) -> float:
    """Floating-point operations of one gradient of the agent with most rows.

    As the compiler counts them in the program, random draws included.
    """
    oracle = algorithm.oracle.in_round(1)
    population = oracle.prepare(problem.population)
    local = population.local(tree_rows(population.rows, 0))
    clipped = clipping_of(oracle)
    if clipped is not None:
        # The compiler counts a loop once: let all rows be one batch of it.
        whole = replace(clipped, microbatch=local.padded_rows)
        oracle = inside(
            oracle,
            lambda o: replace(o, oracle=whole) if isinstance(o, Noisy) else whole,
        )
    w = jax.ShapeDtypeStruct((problem.dim,), problem.dtype)
    key = jax.eval_shape(lambda: jax.random.key(0))
    compiled = jax.jit(_one_gradient).lower(oracle, local, key, w).compile()
    counted: Any = compiled.cost_analysis()
    return float(counted["flops"])


def _one_gradient(oracle: Oracle, local: Local, key: jax.Array, w: Any) -> jax.Array:
    draws = oracle.draws(local, key, 1)
    return oracle.grad(local, jax.tree.map(lambda leaf: leaf[0], draws), jnp.asarray(w))
