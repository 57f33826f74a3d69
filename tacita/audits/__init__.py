"""Audits: attacks that try to refute a privacy claim, and what they found."""

from tacita.audits.canary import Canary
from tacita.audits.lower_bound import Audit, audit
from tacita.audits.statistics import AuditResult, audit_outputs, epsilon_lower_bound

__all__ = [
    "Audit",
    "AuditResult",
    "Canary",
    "audit",
    "audit_outputs",
    "epsilon_lower_bound",
]
