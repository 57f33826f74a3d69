"""From a run file to a problem, an algorithm and the choices of a run, and back."""

from tacita.job.job import Job, job_from, read
from tacita.job.records import table_of

__all__ = ["Job", "job_from", "read", "table_of"]
