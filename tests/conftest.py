"""Settings of all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests compile hundreds of tiny programs: less optimisation halves their time. Set
# before JAX is imported.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false",
)
# What one run compiled the next one need not, in a folder for each worker: two that
# write the same file would read each other's halves.
_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(_KEPT / os.environ.get("PYTEST_XDIST_WORKER", "alone")),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


# Where tests are started in the background, interrupts are ignored, by the programs
# that they start as well: those that a test interrupts would never hear of it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Of a long test with at least so many variants, this share is in make test-long.
_MANY, _SHARE = 4, 5


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Papers are long tests; beyond a few, variants of one test have their own mark."""
    variants: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if Path(__file__).parent / "papers" in item.path.parents:
            item.add_marker(pytest.mark.long)
        few = item.get_closest_marker("few")
        name = item.nodeid.split("[")[0]
        if item.get_closest_marker("long"):
            variants.setdefault((name, 0), []).append(item)
        elif few is not None:
            variants.setdefault((name, few.args[0]), []).append(item)
    for (_, few), group in variants.items():
        wanted = few or (
            -(-len(group) // _SHARE) if len(group) >= _MANY else len(group)
        )
        step = max(len(group) / wanted, 1)
        chosen = {int(step * place) for place in range(wanted)}
        for place, item in enumerate(group):
            if place not in chosen:
                item.add_marker(pytest.mark.variant)


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs() -> Iterator[None]:
    """Compiled programs of one test file are of no use to the next, but stay big."""
    yield
    import jax

    jax.clear_caches()
