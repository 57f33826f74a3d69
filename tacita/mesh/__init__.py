"""Beyond one core and one machine: devices, and which agents lie on which."""

from tacita.mesh.devices import Mesh, use_cores
from tacita.mesh.processes import use_processes

__all__ = ["Mesh", "use_cores", "use_processes"]
