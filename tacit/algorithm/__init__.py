"""How problems are solved: one paper, one file, pure functions of one agent."""

from tacit.algorithm import solvers
from tacit.algorithm.fed_avg import FedAvg
from tacit.algorithm.fed_gd import FedGD, FedSGD
from tacit.algorithm.fed_lin import FedLin
from tacit.algorithm.fed_pd import FedPD
from tacit.algorithm.fed_plt import FedPLT
from tacit.algorithm.fed_prox import FedProx
from tacit.algorithm.fed_relax import FedRelax
from tacit.algorithm.fed_split import FedSplit
from tacit.algorithm.five_gcs import FiveGCS
from tacit.algorithm.led import LED
from tacit.algorithm.model_agnostic import ModelAgnosticFedRelax
from tacit.algorithm.primal_dual import PrimalDual
from tacit.algorithm.prox_skip import ProxSkip
from tacit.algorithm.server_gd import ServerGD
from tacit.algorithm.tamuna import TAMUNA
from tacit.algorithm.vertical import VerticalNewton

#: Every algorithm, in the order in which `tacit algorithms` lists them.
ALGORITHMS = (
    ServerGD,
    FedAvg,
    FedProx,
    FedPLT,
    FedPD,
    FedLin,
    TAMUNA,
    LED,
    FiveGCS,
    FedSplit,
    ProxSkip,
    FedGD,
    FedSGD,
    FedRelax,
    PrimalDual,
)

__all__ = [
    "ALGORITHMS",
    "FedAvg",
    "FedGD",
    "FedLin",
    "FedPD",
    "FedPLT",
    "FedProx",
    "FedRelax",
    "FedSGD",
    "FedSplit",
    "FiveGCS",
    "LED",
    "ModelAgnosticFedRelax",
    "PrimalDual",
    "ProxSkip",
    "ServerGD",
    "TAMUNA",
    "VerticalNewton",
    "solvers",
]
