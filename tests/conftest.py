"""Settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Tests compile hundreds of tiny programs: less optimisation halves their time. Set
# before JAX is imported; programs started by tests run with the user's defaults.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)


@pytest.fixture(scope="session", autouse=True)
def keep_programs_on_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Many test files compile the same tiny programs; a worker does it once."""
    import jax

    folder = tmp_path_factory.mktemp("compiled")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs() -> Iterator[None]:
    """Compiled programs of one test file are of no use to the next, but stay big."""
    yield
    import jax

    jax.clear_caches()
