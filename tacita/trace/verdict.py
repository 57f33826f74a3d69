"""What a privacy report comes to: one sentence, and whether it keeps its budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacita.trace.epsilon_words import about, reasons, short
from tacita.trace.privacy_report import (
    NOT_USEFUL,
    PrivacyReport,
    PrivacyRow,
    beyond_use,
)

#: What is spent beyond a budget by less than this share of it is rounding.
_ROUNDING = 1e-6


class Keeping(StrEnum):
    """How a run stands to its budget."""

    WITHIN = "within the budget"
    BEYOND = "beyond the budget"
    UNSET = "no budget set"
    UNPROVED = "not proved"
    REFUTED = "refuted by an audit"
    APART = "told for another delta"


@dataclass(frozen=True)
class Verdict:
    """What to read first, and what to sign.

    Attributes:
        row: The row that it is about: the promised one, else that of a record which
            tells most.
        keeping: How it stands to the budget.
        sentence: Both in words.
    """

    row: PrivacyRow
    keeping: Keeping
    sentence: str

    @property
    def grounds(self) -> str:
        """What stands below the sentence: why its epsilon holds, or why none does."""
        return self.row.theorem if self.row.epsilon is None else reasons(vars(self.row))


def verdict(report: PrivacyReport) -> Verdict:
    """The sentence that a privacy report comes to.

    >>> row = PrivacyRow(
    ...     observer="coordinator", unit="record", relation="replace_one", delta=1e-5,
    ...     epsilon=1.0, theorem="a theorem",
    ...     assumptions=({"statement": "clipped", "status": "enforced"},))
    >>> budget = {"epsilon": 2.0, "delta": 1e-5, "observer": "coordinator",
    ...           "unit": "record"}
    >>> told = PrivacyReport(algorithm="a", rounds=1, rows=(row,), promise=budget)
    >>> verdict(told).sentence.split(": ")[1]
    'within the budget of 2'
    """
    row = foremost(report)
    keeping, why = _keeping(report, row)
    verb = "planned: " if report.planned else ""
    return Verdict(row, keeping, f"{verb}{_spent(row)}: {why}")


def foremost(report: PrivacyReport) -> PrivacyRow:
    """The row that was promised, else that of a record which tells most."""
    if report.promise:
        return report.row(report.promise["observer"], report.promise["unit"])

    def telling(row: PrivacyRow) -> tuple[bool, bool, float]:
        return row.unit == "record", row.epsilon is None, row.epsilon or 0.0

    return max(report.rows, key=telling)


def exceeds(row: PrivacyRow, budget: float) -> bool:
    """Whether more was spent than is allowed; without a bound anything may be."""
    return row.epsilon is None or row.epsilon > budget * (1 + _ROUNDING)


def _keeping(report: PrivacyReport, row: PrivacyRow) -> tuple[Keeping, str]:
    violated = [a["statement"] for a in row.assumptions if a["status"] == "violated"]
    if violated:
        return Keeping.UNPROVED, f"not proved, for this is violated: {violated[0]}"
    if row.audited and row.audited.get("refuted"):
        return Keeping.REFUTED, "refuted by an audit"
    if report.promise is None:
        return Keeping.UNSET, "no budget was set"
    budget = float(report.promise["epsilon"])
    if row.delta != report.promise["delta"]:
        at = short(report.promise["delta"])
        return Keeping.APART, f"the budget of {budget:g} is for delta {at}"
    found = Keeping.BEYOND if exceeds(row, budget) else Keeping.WITHIN
    return found, f"{found} of {budget:g}"


def _spent(row: PrivacyRow) -> str:
    if row.epsilon is None:
        bound = "no bound"
    elif beyond_use(row.epsilon):
        bound = NOT_USEFUL
    else:
        bound = f"epsilon {row.epsilon:.4g}"
    return f"{bound} {about(vars(row))}"
