"""What a run leaves: models, metrics, configuration, and their folder on disk."""

from tacita.trace.privacy_report import PrivacyReport, PrivacyRow
from tacita.trace.saved_run import Run, load_run, plain_values

__all__ = ["PrivacyReport", "PrivacyRow", "Run", "load_run", "plain_values"]
