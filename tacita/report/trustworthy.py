"""What a run is worth trusting for, on its page: a sentence and a table for each part.

Sentences are for people who know nothing of federated learning.
"""

from __future__ import annotations

import math
from typing import Any

from tacita.report import guarantees, html, numbers
from tacita.report.tables import Table
from tacita.trace import PrivacyReport, PrivacyRow

OWNER = (
    "This run is private. What is said here of robustness, fairness and explainability "
    "is computed from private rows without noise: it is for the owner of the "
    "simulation, and no part of what others may see."
)
#: What observers see, in words.
SEES = {
    "final_model": "the final model",
    "neighbour": "what another agent sees",
    "coordinator": "what the coordinator sees",
    "colluders": "what the coordinator and dishonest agents see together",
    "eavesdropper": "all that is sent",
}


def section(told: dict[str, Any], report: PrivacyReport | None) -> str:
    """The section, or the part of it that is about one run."""
    parts = [html.paragraph(OWNER, "warning")] if told["private"] else []
    for title, (sentence, table), more in (
        ("Robustness", robustness(told["robustness"]), ""),
        ("Fairness", fairness(told["fairness"]), _losses(told["fairness"])),
        ("Explainability", explanation(told["explanation"]), ""),
        ("Energy", energy(told["energy"]), ""),
        (
            "Privacy",
            privacy(report),
            "" if report is None else html.notes(report.notes()),
        ),
    ):
        parts.append(html.heading(title))
        parts += [html.paragraph(sentence), html.table(table), more]
    return "".join(parts)


def robustness(told: dict[str, Any]) -> tuple[str, Table]:
    """Who can spoil the model, and what small errors of measurement do."""
    letters, bears = told["letters"], told["bears"]
    if bears:
        sentence = (
            f"Of {letters} agents that are heard, {bears} may lie without taking the "
            "model over"
        )
    else:
        sentence = "A single agent that lies can spoil the model"
    off = f"{told['moved']:.0%}".replace("%", "\N{NO-BREAK SPACE}%")
    turned = numbers.share(told["turned"])
    if told["classes"]:
        change = f"{turned} of its answers would change"
        name = f"answers that change when features are off by {off}"
    else:
        change = f"its answers would move by {turned} of their spread"
        name = f"answers move when features are off by {off}, of their spread"
    sentence += f"; if every measurement were off by about {off}, {change}."
    rows = [
        ("rule that joins letters", told["rule"]),
        ("liars that it bears", f"{bears} of {letters} that are heard"),
        (name, turned),
    ]
    if "label_gain" in told:
        rows += [
            (
                "models move per label moved, squared, at most",
                _real(told, "label_gain"),
            ),
            ("the book's bound on that, mended", _real(told, "label_bound")),
            ("the book's bound as printed", _real(told, "label_bound_printed")),
            ("models move per feature moved, squared", _real(told, "feature_gain")),
            ("a lie of neighbours passed on, at most", _real(told, "neighbour_gain")),
            ("node that listens most", told["listens_most"]),
            ("node whose labels reach furthest", told["reaches_most"]),
            (
                "edge whose loss moves models most",
                f"{told['edge_most']} ({_real(told, 'edge_moves')})",
            ),
        ]
    return sentence, Table(("measure", "value"), tuple(rows))


def fairness(told: dict[str, Any]) -> tuple[str, Table]:
    """Who is served worst, and by how much."""
    spread = told["spread"]
    ratio = spread["worst"] / spread["mean"] if spread["mean"] > 0 else 1.0
    sentence = (
        f"The model serves agent {told['worst']} worst, with a loss {ratio:.1f} times "
        "the average."
    )
    words = {
        "mean": "mean loss over agents",
        "worst": "largest loss",
        "worst_tenth": "mean of the worst tenth",
        "best_tenth": "mean of the best tenth",
        "std": "standard deviation",
        "gini": "Gini index (0: all alike)",
        "jain": "Jain index (1: all alike)",
    }
    rows = [(name, _real(spread, key)) for key, name in words.items()]
    if gaps := told.get("gaps"):
        known = [v for v in gaps.values() if not math.isnan(v)]
        widest = numbers.share(max(known, default=math.nan))
        sentence += (
            f" Between groups told apart by {_feature(told['group'])}, decisions "
            f"differ by up to {widest} of the cases."
        )
        rows += [
            ("gap of decisions between groups", numbers.share(gaps["parity"])),
            ("where yes is right", numbers.share(gaps["opportunity"])),
            ("the larger of that and where no is right", numbers.share(gaps["odds"])),
        ]
    return sentence, Table(("measure", "value"), tuple(rows))


def _feature(group: int | str) -> str:
    return f"feature {group}" if isinstance(group, int) else group


def _losses(told: dict[str, Any]) -> str:
    pairs = sorted(
        zip(told["losses"], told["agents"], strict=True), key=lambda p: -p[0]
    )
    rows = tuple((agent, numbers.real(loss)) for loss, agent in pairs)
    return html.folded("Every agent's loss", html.table(Table(("agent", "loss"), rows)))


def explanation(told: dict[str, Any]) -> tuple[str, Table]:
    """Whether something that can be read on half a page says the same."""
    tree = numbers.share(told["tree"])
    if told["classes"]:
        sentence = (
            f"A list of at most three yes/no questions gives the model's answer in "
            f"{tree} of the cases."
        )
        rows = [("agreement with a tree of depth 3", tree)]
    else:
        sentence = (
            f"A list of at most three yes/no questions foretells {tree} of what makes "
            f"the model's answers differ, three features alone "
            f"{numbers.share(told['sparse'])}."
        )
        rows = [
            ("explained by a tree of depth 3", tree),
            ("explained by 3 features, linearly", numbers.share(told["sparse"])),
        ]
    rows.append(("rows looked at", numbers.whole(told["rows"])))
    return sentence, Table(("measure", "value"), tuple(rows))


def energy(told: dict[str, Any]) -> tuple[str, Table]:
    """What the run took of the world."""
    # What is None is left out where tables are kept.
    operations, sent = told.get("operations"), numbers.size(told["bytes"])
    known = operations is not None
    work = numbers.spoken(operations) if known else "not known"
    joules, kilograms = told.get("joules"), told.get("kilograms")
    rows = [
        ("operations of all agents", work),
        ("sent between agents", sent),
        ("energy", "not known" if joules is None else f"{numbers.real(joules)} J"),
        ("CO2e", "not known" if kilograms is None else f"{numbers.real(kilograms)} kg"),
    ]
    taken = f"{work} arithmetic operations" if known else "work that is not counted"
    sentence = f"Training took {taken} and {sent} of messages"
    if joules is not None:
        sentence += f", which is as much energy as a 10 W lamp burns in {_lamp(joules)}"
    sentence += "."
    if kilograms is None:
        missing = "CO2e is" if joules is not None else "Energy and CO2e are"
        sentence += (
            f" {missing} not known: nobody has said what machines, network and power "
            "take."
        )
    return sentence, Table(("measure", "value"), tuple(rows))


def _lamp(joules: float) -> str:
    lit = joules / 10
    return numbers.seconds(lit) if lit < 7200 else f"{numbers.real(lit / 3600)} hours"


def privacy(report: PrivacyReport | None) -> tuple[str, Table]:
    """What somebody who looks can tell of one person."""
    if report is None:
        nothing = (("whoever sees letters or models", "any", "no bound"),)
        return (
            "Nothing bounds what somebody who sees letters or models can tell of a "
            "single person's data.",
            Table(("observer", "unit", "epsilon"), nothing),
        )
    table = guarantees.rows(report)
    if report.violated():
        return (
            "No promise is kept, for what it rests on is violated (see below).",
            table,
        )
    proved = [row for row in report.rows if row.epsilon is not None]
    if not proved:
        return "Nothing is proved of what observers can tell of a single person.", table
    row = _foremost(report, proved)
    assert row.epsilon is not None
    # TPR <= e^epsilon FPR + delta: of two equally likely worlds, the right one.
    right = (1 + row.delta * math.exp(-row.epsilon)) / (1 + math.exp(-row.epsilon))
    sentence = (
        f"Somebody who sees {SEES[row.observer]}, and guesses which of two {row.unit}s "
        f"was learnt from, is right in at most {numbers.share(right)} of the cases, "
        "where tossing a coin is right in half; the table says what that rests on."
    )
    return sentence, table


def _foremost(report: PrivacyReport, proved: list[PrivacyRow]) -> PrivacyRow:
    """The row that was promised, else that of a record which tells most."""
    if report.promise:
        named = report.promise["observer"], report.promise["unit"]
        for row in proved:
            if (row.observer, row.unit) == named:
                return row
    return max(proved, key=lambda row: (row.unit == "record", row.epsilon or 0.0))


def _real(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    return "–" if value is None else numbers.real(value)
