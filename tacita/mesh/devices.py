"""The devices of a run: every core of this machine, or several processes.

JAX takes one core of a CPU for one device unless it is told otherwise before it starts.
Nothing here happens by itself: the command line owns its process and calls these
functions, in Python the user does.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.processor import cores_here
from tacita.trees import checked, count

#: Sums are cut into this many blocks of agents, at most, unless a mesh says otherwise.
BLOCKS = 32


@checked
class Mesh:
    """Over how many devices a run is spread.

    Attributes:
        devices: How many, of all processes; None takes all of them where that pays.
        blocks: Blocks of agents that sums are cut into, at most: no run spreads its
            agents over more devices. Numbers depend on it, but not on `devices`.

    >>> Mesh(devices=3)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected devices 1, 2, 4, 8 or another power of two, got devices=3
    """  # noqa: E501

    devices: int | None = count(None)
    blocks: int = count(BLOCKS)

    def __post_init__(self) -> None:
        for name in ("devices", "blocks"):
            value = getattr(self, name)
            if value is not None and value & (value - 1):
                check.refuse(
                    f"expected {name} 1, 2, 4, 8 or another power of two, got "
                    f"{name}={value}"
                )


def mesh_of(given: Any) -> Mesh:
    """What a user said of devices: nothing, how many, or a `Mesh`."""
    if given is None:
        return Mesh()
    if isinstance(given, Mesh):
        return given
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        check.refuse(
            f"expected mesh a number of devices or a tacita.Mesh, got mesh={given!r}"
        )
    return Mesh(devices=int(given))


def found(mesh: Mesh) -> list[Any]:
    """The devices that a mesh asks for, a power of two of them; or a refusal."""
    there, processes = jax.devices(), jax.process_count()
    if processes > 1 and len(there) & (len(there) - 1):
        check.refuse(
            f"{processes} processes have {len(there)} devices in all, which is no "
            "power of two; start another number of processes, or of cores in each"
        )
    if mesh.devices is None:
        return there[: 1 << (len(there).bit_length() - 1)]
    if processes > 1 and mesh.devices != len(there):
        check.refuse(
            f"mesh asks for {mesh.devices} devices and {processes} processes have "
            f"{len(there)}; leave devices out, every process works"
        )
    if mesh.devices > len(there):
        check.refuse(
            f"mesh asks for {mesh.devices} devices and JAX has {len(there)}; call "
            f"tacita.use_cores({mesh.devices}) before anything else uses JAX"
        )
    return there[: mesh.devices]


def use_cores(cores: int | None = None) -> int:
    """Have JAX take so many cores for devices of their own, and return how many.

    To be called before anything uses JAX. Runs are then spread over them where that
    pays; see docs/how-to-run-on-many-machines.md.

    Args:
        cores: How many; None takes all that this process may use.
    """
    wanted = cores_here() if cores is None else check.count(cores=cores)
    try:
        jax.config.update("jax_num_cpu_devices", wanted)
    except RuntimeError:
        # Once JAX has started its devices stay what they are.
        if len(jax.devices("cpu")) != wanted:
            check.refuse(
                f"JAX has started already, with {len(jax.devices('cpu'))} devices; "
                f"call tacita.use_cores({wanted}) before anything else uses JAX"
            )
    return wanted
