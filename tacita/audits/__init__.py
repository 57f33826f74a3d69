"""Audits: attacks that try to refute a privacy claim, and what they found."""

from tacita.audits.canary import Canary
from tacita.audits.exact import Compared, compare
from tacita.audits.lower_bound import Audit, audit
from tacita.audits.members import (
    LEAST_RUNS,
    Members,
    find_members,
    find_property,
    members_by_noise,
)
from tacita.audits.reading import (
    ReadBack,
    Reading,
    read_back,
    require_letters,
    with_few_rows,
)
from tacita.audits.statistics import AuditResult, audit_outputs, epsilon_lower_bound
from tacita.audits.twin import ExactAudit, audit_exactly

__all__ = [
    "LEAST_RUNS",
    "Audit",
    "AuditResult",
    "Canary",
    "Compared",
    "ExactAudit",
    "Members",
    "ReadBack",
    "Reading",
    "audit",
    "audit_exactly",
    "audit_outputs",
    "compare",
    "epsilon_lower_bound",
    "find_members",
    "find_property",
    "members_by_noise",
    "read_back",
    "require_letters",
    "with_few_rows",
]
