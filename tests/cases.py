"""The table of algorithms that the contract is tested on: one row each.

Adding an algorithm to the package means adding a row here; the contract, the parity
and the privacy tests then run on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tacita
from tacita.algorithm import solvers
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.problem import graph, prox, synthetic
from tacita.schedule import Geometric, Listed, Piecewise, Polynomial


@dataclass(frozen=True)
class Case:
    """One algorithm with a setting in which every promise can be tried.

    Attributes:
        algorithm: The algorithm, all numbers set.
        changed: The same with another number: must not compile anew.
        bad: Arguments that the constructor must refuse, each alone.
    """

    algorithm: Algorithm
    changed: dict[str, Any]
    bad: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return type(self.algorithm).__name__

    @property
    def on_graph(self) -> bool:
        return isinstance(self.algorithm, GraphAlgorithm)

    @property
    def other(self) -> Algorithm:
        return replace(self.algorithm, **self.changed)  # pyright: ignore

    def problem(self, dtype: Any = np.float64) -> tacita.Problem:
        """Unequal agents, so that masks are exercised; a graph where one is needed."""
        made = synthetic.logistic(agents=6, features=3, samples=12, seed=1)
        features, labels, _ = made.stacked()
        x, y = features.reshape(-1, 3), labels.ravel()
        agent = np.repeat(np.arange(6), 12)
        keep = np.ones(len(x), bool)
        keep[[3, 4, 30]] = False
        network = graph.ring(6) if self.on_graph else None
        return tacita.from_arrays(
            x[keep], y[keep], agent[keep], l2=0.3, graph=network, dtype=dtype
        )


minibatch = tacita.Minibatch(size=4)


def noisy(std: Any, oracle: Any = None) -> tacita.Noisy:
    return tacita.Noisy(std=std, oracle=oracle or tacita.Full())


CASES = [
    Case(
        tacita.ServerGD(step_size=0.5, oracle=tacita.Quantised(bits=5, range=2.0)),
        {"oracle": tacita.Quantised(bits=4, range=2.0)},
        {"step_size": -1.0, "local_steps": 0},
    ),
    Case(
        tacita.FedAvg(
            step_size=Polynomial(start=0.3, power=0.5), local_steps=3, oracle=minibatch
        ),
        {"step_size": Polynomial(start=0.3, power=0.7, decay=0.5)},
        {"step_size": 0.0, "local_steps": 0, "weights": "sample"},
    ),
    Case(
        tacita.FedAvgM(step_size=0.3, local_steps=3, oracle=minibatch),
        {"momentum": 0.5},
        {"momentum": 1.0, "server_step": 0.0, "step_size": 0.0, "local_steps": 0},
    ),
    Case(
        tacita.FedAdagrad(step_size=0.3, weights="samples"),
        {"tau": 1e-2},
        {"server_step": -1.0, "beta_1": 1.0, "tau": 0.0, "weights": "sample"},
    ),
    Case(
        tacita.FedYogi(step_size=0.3, local_steps=2, oracle=minibatch),
        {"beta_2": 0.9},
        {"beta_1": -0.1, "beta_2": 1.0, "tau": -1.0},
    ),
    Case(
        tacita.FedAdam(step_size=0.3, local_steps=2, oracle=noisy(0.1)),
        {"server_step": 0.2},
        {"beta_1": 1.0, "beta_2": float("nan"), "step_size": -1.0},
    ),
    Case(
        tacita.FedProx(
            eta=0.5, step_size=Geometric(start=0.2, factor=0.8), local_steps=3
        ),
        {"eta": 0.7},
        {"eta": -0.5, "step_size": float("nan"), "local_steps": 1.5},
    ),
    Case(
        tacita.FedPLT(
            rho=0.8,
            solver=solvers.GradientDescent(step_size=0.3, local_steps=3),
            oracle=noisy(0.1, minibatch),
        ),
        {"rho": 0.6},
        {"rho": 0.0},
    ),
    Case(
        tacita.FedPLT(
            rho=0.8,
            solver=solvers.Mixed(
                solvers=(
                    solvers.GradientDescent(step_size=np.linspace(0.2, 0.4, 6)),
                    solvers.Accelerated(local_steps=2),
                    solvers.QuasiNewton(local_steps=2),
                    solvers.Newton(local_steps=1),
                ),
                group=np.array([0, 1, 2, 3, 0, 1]),
            ),
        ),
        {"rho": 0.6},
        {"rho": -1.0},
    ),
    Case(
        tacita.FedPD(eta=0.8, step_size=0.3, local_steps=3, skip=0.4),
        {"skip": 0.2},
        {"eta": 0.0, "step_size": -1.0, "local_steps": 0, "skip": 1.0},
    ),
    Case(
        tacita.FedLin(
            step_size=0.2,
            local_steps=3,
            own_steps=np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0]),
            entries_sent=2,
            entries_told=2,
            oracle=minibatch,
        ),
        {"step_size": 0.1},
        {"step_size": 0.0, "local_steps": 2.5},
    ),
    Case(
        tacita.SCAFFOLD(
            step_size=Listed(values=[0.2, 0.1, 0.05]),
            local_steps=3,
            server_step=Polynomial(start=1.0, power=0.1),
            oracle=minibatch,
        ),
        {"step_size": Listed(values=[0.2, 0.15, 0.05])},
        {"step_size": 0.0, "local_steps": 0, "server_step": -1.0},
    ),
    Case(
        tacita.TAMUNA(step_size=0.3, eta=0.3, local_steps=3),
        {"local_steps": 2},
        {"step_size": -1.0, "eta": 0.0, "local_steps": 0.5, "sparsity": 1},
    ),
    Case(
        tacita.TAMUNA(step_size=0.3, eta=0.3, sparsity=2, oracle=minibatch),
        {"eta": 0.2},
        {"sparsity": 0},
    ),
    Case(
        tacita.LED(step_size=0.3, beta=0.3, local_steps=3),
        {"beta": 0.2},
        {"step_size": 0.0, "beta": -0.1, "local_steps": -1},
    ),
    Case(
        tacita.FiveGCS(
            gamma=1.0,
            tau=0.1,
            strong_convexity=0.3,
            solver=solvers.GradientDescent(step_size=0.3, local_steps=3),
        ),
        {"gamma": 0.8},
        {"gamma": 0.0, "tau": -1.0, "strong_convexity": 0.0},
    ),
    Case(
        tacita.FedSplit(
            rho=0.8, solver=solvers.GradientDescent(step_size=0.3, local_steps=3)
        ),
        {"rho": 0.6},
        {"rho": 0.0},
    ),
    Case(
        tacita.ProxSkip(step_size=0.3, probability=0.4),
        {"probability": 0.3},
        {"step_size": 0.0, "probability": 1.5},
    ),
    Case(
        tacita.FedSPD(
            rho=0.7,
            gamma=Polynomial(start=np.linspace(2.0, 3.0, 6), power=-0.5),
            local_steps=3,
            noise_std=0.1,
            oracle=minibatch,
        ),
        {"gamma": Polynomial(start=np.linspace(2.0, 3.0, 6), power=-0.3)},
        {"rho": 0.0, "gamma": -1.0, "state": "secret"},
    ),
    Case(
        tacita.DPSGD(
            step_size=Polynomial(start=0.3, power=0.5),
            momentum=0.5,
            average=0.5,
            oracle=noisy(0.1, tacita.Stream()),
        ),
        {"momentum": 0.6},
        {"step_size": 0.0, "momentum": 1.0, "average": -0.1},
    ),
    Case(
        tacita.DPFedAvg(step_size=0.3, local_steps=3, noise_std=0.1, oracle=minibatch),
        {"step_size": 0.2},
        {"step_size": 0.0, "local_steps": 0, "noise_std": -1.0},
    ),
    Case(
        tacita.ClientDPFedAvg(step_size=0.3, local_steps=3, clip=0.2, noise_std=0.1),
        {"clip": 0.1},
        {"clip": 0.0, "cohort": -1.0, "noise_std": -1.0, "local_steps": 1.5},
    ),
    Case(
        tacita.DPADMM(rho=0.7, gradient_bound=1.0, oracle=noisy(0.1)),
        {"rho": 0.8},
        {"rho": 0.0, "step_size": 0.0, "radius": 0.0, "gradient_bound": 0.0},
    ),
    Case(
        tacita.FedGD(alpha=0.4, step_size=0.2, h=prox.L1(0.01)),
        {"alpha": 0.3},
        {"alpha": -0.1, "step_size": 0.0, "h": "l1"},
    ),
    Case(
        tacita.FedSGD(alpha=0.4, step_size=0.1, oracle=minibatch),
        {"step_size": 0.05},
        {"alpha": -0.1, "step_size": 0.0},
    ),
    Case(
        tacita.FedRelax(alpha=0.4, damping=0.2),
        {"alpha": 0.3},
        {"alpha": -0.1, "damping": 1.0, "penalty": "l2"},
    ),
    Case(
        # With exact local answers a node's second step from a common start, made
        # while its neighbours are silent, leaves its model where it was.
        tacita.PrimalDual(
            alpha=0.5,
            rho=0.4,
            solver=solvers.GradientDescent(step_size=0.3, local_steps=3),
        ),
        {"rho": 0.3},
        {"alpha": -0.1, "rho": 0.0, "penalty": "lq", "h": 0.1},
    ),
    Case(
        tacita.DPNorm(
            step_size=0.2, local_steps=3, alpha=0.1, noise_std=0.05, oracle=minibatch
        ),
        {"alpha": 0.0},
        {
            "step_size": 0.0,
            "local_steps": 0,
            "alpha": -0.1,
            "noise_std": -1.0,
            "form": "print",
            "exchange": "sync",
            "letter_noise": "one",
            "publish": "w",
        },
    ),
    Case(
        tacita.DPNorm(
            step_size=0.2,
            local_steps=3,
            noise_std=np.linspace(0.1, 0.2, 6),
            exchange="asynchronous",
            publish="own",
        ),
        {"alpha": 0.2},
        {"alpha": float("nan")},
    ),
    Case(
        tacita.GossipSGD(
            step_size=Polynomial(start=np.linspace(0.1, 0.2, 6), power=0.6),
            local_steps=3,
            oracle=noisy(0.05, minibatch),
        ),
        {"oracle": noisy(0.1, minibatch)},
        {"step_size": 0.0, "local_steps": 0},
    ),
    Case(
        tacita.GraphADMM(
            rho=0.1,
            step_size=Polynomial(start=0.2, power=0.5),
            local_power=0.5,
            local_steps=3,
            oracle=noisy(0.05),
        ),
        {"rho": 0.2},
        {"rho": 0.0, "step_size": -1.0, "local_steps": 0},
    ),
    Case(
        tacita.GradientTracking(step_size=0.1),
        {"step_size": 0.05},
        {"step_size": 0.0},
    ),
    Case(
        tacita.GraphLED(step_size=0.2, beta=0.3, local_steps=3),
        {"beta": 0.2},
        {"step_size": 0.0, "beta": -0.1, "local_steps": 0},
    ),
    Case(
        tacita.QFedAvg(
            q=0.7, step_size=0.3, local_steps=2, loss_bound=2.0, oracle=minibatch
        ),
        {"q": 0.4},
        {"q": -0.1, "smoothness": 0.0, "loss_bound": 0.0, "least_loss": -1.0},
    ),
    Case(
        tacita.AgnosticFedAvg(
            weight_step=0.2, step_size=0.3, local_steps=2, loss_bound=2.0
        ),
        {"weight_step": 0.1},
        {"weight_step": -0.1, "step_size": 0.0, "loss_bound": -1.0},
    ),
    Case(
        tacita.FedBuff(
            step_size=Piecewise(values=[0.3, 0.2], until=[2]),
            local_steps=2,
            oracle=minibatch,
        ),
        {"server_step": 0.7},
        {"server_step": 0.0, "power": -1.0, "step_size": 0.0, "local_steps": 0},
    ),
    Case(
        tacita.FedAsync(step_size=0.3, rho=0.2, local_steps=2, oracle=noisy(0.1)),
        {"mixing": 0.4},
        {"mixing": 1.5, "slope": 0.0, "grace": -1.0, "rho": -0.1, "staleness": "old"},
    ),
]


def case_of(algorithm: str, which: int = 0) -> Case:
    """The row of an algorithm; of several, the one with this number."""
    rows = [c for c in CASES if type(c.algorithm).__name__ == algorithm]
    return rows[which]
