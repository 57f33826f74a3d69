"""What a run tells: tables, pictures, and one page that holds them all."""

from tacit.report.measures import rounds_to_reach
from tacit.report.tables import (
    Table,
    communication,
    final_metrics,
    metrics_of_one,
    reached,
)
from tacit.report.write import write_report

__all__ = [
    "Table",
    "communication",
    "final_metrics",
    "metrics_of_one",
    "reached",
    "rounds_to_reach",
    "write_report",
]
