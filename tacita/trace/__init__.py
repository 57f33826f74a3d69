"""What a run leaves: models, metrics, configuration, and their folder on disk."""

from tacita.trace.privacy_report import PrivacyReport, PrivacyRow
from tacita.trace.saved_run import (
    SEED_ASKED_FOR,
    SEED_SECRET,
    Run,
    load_run,
    plain_values,
)

__all__ = [
    "SEED_ASKED_FOR",
    "SEED_SECRET",
    "PrivacyReport",
    "PrivacyRow",
    "Run",
    "load_run",
    "plain_values",
]
