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


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs() -> Iterator[None]:
    """Compiled programs of one test file are of no use to the next, but stay big."""
    yield
    import jax

    jax.clear_caches()
