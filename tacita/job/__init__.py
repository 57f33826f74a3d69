"""From the tables of a run file to a problem, an algorithm and the choices of a run."""

from tacita.job.job import Job, job_from

__all__ = ["Job", "job_from"]
