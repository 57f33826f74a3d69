"""Settings of all tests."""

from __future__ import annotations

import os

# Tests compile hundreds of tiny programs: less optimisation halves their time. Set
# before JAX is imported; programs started by tests run with the user's defaults.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)
