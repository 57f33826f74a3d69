"""What a run leaves: models, metrics, configuration, and their folder on disk."""

from tacit.trace.run import Run, load_run, plain_values

__all__ = ["Run", "load_run", "plain_values"]
