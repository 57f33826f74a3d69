"""Audits: attacks that try to refute a privacy claim, and what they found."""

from tacita.audits.canary import Canary
from tacita.audits.exact import Compared, compare
from tacita.audits.lower_bound import Audit, audit
from tacita.audits.statistics import AuditResult, audit_outputs, epsilon_lower_bound
from tacita.audits.twin import ExactAudit, audit_exactly

__all__ = [
    "Audit",
    "AuditResult",
    "Canary",
    "Compared",
    "ExactAudit",
    "audit",
    "audit_exactly",
    "audit_outputs",
    "compare",
    "epsilon_lower_bound",
]
