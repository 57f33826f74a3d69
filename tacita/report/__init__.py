"""What a run tells: tables, pictures, and one page that holds them all."""

from tacita.report.graph_picture import draw_graph, graph_picture
from tacita.report.read_back import (
    members_table,
    picture_shape,
    reading_basis,
    reading_lede,
    reading_table,
    write_reading,
)
from tacita.report.rules_under_attack import draw_resilience, resilience_table
from tacita.report.tables import (
    Table,
    communication,
    final_metrics,
    metrics_of_one,
    reached,
)
from tacita.report.write import write_report
from tacita.trace.measures import rounds_to_reach

__all__ = [
    "Table",
    "communication",
    "draw_graph",
    "draw_resilience",
    "final_metrics",
    "graph_picture",
    "members_table",
    "metrics_of_one",
    "picture_shape",
    "reached",
    "reading_basis",
    "reading_lede",
    "reading_table",
    "resilience_table",
    "rounds_to_reach",
    "write_reading",
    "write_report",
]
