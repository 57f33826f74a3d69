"""How problems are solved: one paper, one file, pure functions of one agent."""

from tacita.algorithm import solvers
from tacita.algorithm.agnostic_fed_avg import AgnosticFedAvg
from tacita.algorithm.any_optimiser import FedOpt
from tacita.algorithm.dp_admm import DPADMM
from tacita.algorithm.dp_fed_avg import ClientDPFedAvg, DPFedAvg
from tacita.algorithm.dp_norm import DPNorm
from tacita.algorithm.dp_sgd import DPSGD
from tacita.algorithm.fed_async import FedAsync
from tacita.algorithm.fed_avg import FedAvg
from tacita.algorithm.fed_buff import FedBuff
from tacita.algorithm.fed_gd import FedGD, FedSGD
from tacita.algorithm.fed_lin import FedLin
from tacita.algorithm.fed_opt import FedAdagrad, FedAdam, FedAvgM, FedYogi
from tacita.algorithm.fed_pd import FedPD
from tacita.algorithm.fed_plt import FedPLT
from tacita.algorithm.fed_prox import FedProx
from tacita.algorithm.fed_relax import FedRelax
from tacita.algorithm.fed_spd import FedSPD
from tacita.algorithm.fed_split import FedSplit
from tacita.algorithm.five_gcs import FiveGCS
from tacita.algorithm.gossip import GossipSGD, GradientTracking
from tacita.algorithm.graph_admm import GraphADMM
from tacita.algorithm.led import LED, GraphLED
from tacita.algorithm.primal_dual import PrimalDual
from tacita.algorithm.prox_skip import ProxSkip
from tacita.algorithm.q_fed_avg import QFedAvg
from tacita.algorithm.scaffold import SCAFFOLD
from tacita.algorithm.server_gd import ServerGD
from tacita.algorithm.tamuna import TAMUNA

#: Every algorithm, in the order in which `tacita algorithms` lists them.
ALGORITHMS = (
    ServerGD,
    FedAvg,
    FedAvgM,
    FedAdagrad,
    FedYogi,
    FedAdam,
    FedBuff,
    FedAsync,
    QFedAvg,
    AgnosticFedAvg,
    FedProx,
    FedPLT,
    FedPD,
    FedLin,
    SCAFFOLD,
    TAMUNA,
    LED,
    FiveGCS,
    FedSplit,
    ProxSkip,
    FedSPD,
    DPSGD,
    DPFedAvg,
    ClientDPFedAvg,
    DPADMM,
    FedGD,
    FedSGD,
    FedRelax,
    PrimalDual,
    DPNorm,
    GossipSGD,
    GraphADMM,
    GradientTracking,
    GraphLED,
)

__all__ = [
    "DPADMM",
    "DPSGD",
    "LED",
    "SCAFFOLD",
    "TAMUNA",
    "AgnosticFedAvg",
    "ClientDPFedAvg",
    "DPFedAvg",
    "DPNorm",
    "FedAdagrad",
    "FedAdam",
    "FedAsync",
    "FedAvg",
    "FedAvgM",
    "FedBuff",
    "FedGD",
    "FedLin",
    "FedOpt",
    "FedPD",
    "FedPLT",
    "FedProx",
    "FedRelax",
    "FedSGD",
    "FedSPD",
    "FedSplit",
    "FedYogi",
    "FiveGCS",
    "GossipSGD",
    "GradientTracking",
    "GraphADMM",
    "GraphLED",
    "PrimalDual",
    "ProxSkip",
    "QFedAvg",
    "ServerGD",
    "solvers",
]
