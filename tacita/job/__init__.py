"""From a run file to a problem, an algorithm and the choices of a run, and back."""

from tacita.job import calls, folder, records
from tacita.job.job import Job, job_from, read, read_problem
from tacita.job.records import table_of

__all__ = [
    "Job",
    "calls",
    "folder",
    "job_from",
    "read",
    "read_problem",
    "records",
    "table_of",
]
