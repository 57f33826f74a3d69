"""How problems are solved: one paper, one file, pure functions of one agent."""

from tacit.algorithm.fed_avg import FedAvg
from tacit.algorithm.fed_gd import FedGD, FedSGD
from tacit.algorithm.fed_prox import FedProx
from tacit.algorithm.server_gd import ServerGD

#: Every algorithm, in the order in which `tacit algorithms` lists them.
ALGORITHMS = (ServerGD, FedAvg, FedProx, FedGD, FedSGD)

__all__ = ["ALGORITHMS", "FedAvg", "FedGD", "FedProx", "FedSGD", "ServerGD"]
