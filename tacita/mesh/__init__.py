"""Beyond one core and one machine: devices, and which agents lie on which."""

from tacita.mesh.devices import Mesh, use_cores

__all__ = ["Mesh", "use_cores"]
