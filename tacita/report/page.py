"""The page: what was run, how it went, what it sent, who holds what."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from importlib import resources

import numpy as np
import tomli_w
from matplotlib.figure import Figure

from tacita.data.holdings_picture import held_picture
from tacita.report import (
    facts,
    guarantees,
    html,
    letters_by_agent,
    nodes,
    numbers,
    tables,
    trustworthy,
)
from tacita.theme import THEMES, Theme, png
from tacita.trace import Run, measures, plain_values
from tacita.trace.curves import curve
from tacita.trace.sweeps import apart

#: What the page shows in sections of its own; everything else is listed as it is.
_SHOWN_INFO = (
    "communication",
    "data_notes",
    "evaluation",
    "finished",
    "holdings",
    "ledger_head",
    "letters",
    "nodes",
    "signed",
    "turns",
    "versions",
    "seconds",
    "trust",
)


class Page:
    """A page on one run or several, and the pictures to be put beside it.

    Attributes:
        pictures: Content by file name.
        document: The page itself.
    """

    def __init__(
        self,
        runs: dict[str, Run],
        title: str,
        tolerance: dict[str, float],
        publishable: bool = False,
    ) -> None:
        # A run that was not saved yet still holds arrays and None in its tables.
        plain = {
            label: dataclasses.replace(
                run, config=plain_values(run.config), info=plain_values(run.info)
            )
            for label, run in runs.items()
        }
        self._runs = apart(plain)
        self._one = next(iter(self._runs.values())) if len(self._runs) == 1 else None
        self._tolerance, self._publishable = tolerance, publishable
        self.pictures: dict[str, bytes] = {}
        parts = (
            self._header(title),
            self._settings(),
            self._curves(),
            self._metrics(),
            self._evaluation(),
            self._privacy(),
            self._trust(),
            self._nodes(),
            self._letters(),
            self._communication(),
            self._holdings(),
            self._origin(),
        )
        style = resources.files("tacita.report").joinpath("style.css").read_text()
        self.document = html.document(title, style, "\n".join(parts))

    def _header(self, title: str) -> str:
        cards = "" if self._one is None else html.cards(facts.key_figures(self._one))
        warnings = "".join(
            html.paragraph(f"{label}: {line}", "warning")
            for label, run in self._runs.items()
            for line in facts.warnings(run)
        )
        return (
            '<header><p class="kicker">Tacita report</p>'
            f"<h1>{html.text(title)}</h1>\n"
            + html.paragraph(facts.sentence(self._runs), "lede")
            + "</header>\n"
            + warnings
            + cards
        )

    def _picture(self, file: str, words: str, draw: Callable[[Theme], Figure]) -> str:
        drawn = {name: png(draw(theme)) for name, theme in THEMES.items()}
        self.pictures[file] = drawn["light"]
        return html.picture(drawn["light"], drawn["dark"], words)

    def _curves(self) -> str:
        if self._publishable:
            return ""
        figures = []
        for metric in measures.names(self._runs):
            words = f"{measures.words(metric)} by round"
            file = f"curve-{_safe(metric)}.png"
            shown = self._picture(
                file, words, lambda t, m=metric: curve(self._runs, m, t)
            )
            figures.append(html.figure(shown))
        if not figures:
            return html.section(
                "curves", "Learning curves", html.paragraph("No metric was recorded.")
            )
        grid = f'<div class="grid">{"".join(figures)}</div>'
        told = " ".join(
            filter(None, (facts.band(self._runs), facts.recorded(self._runs)))
        )
        note = html.paragraph(told, "note") if told else ""
        return html.section("curves", "Learning curves", note, grid)

    def _metrics(self) -> str:
        if self._publishable:
            return ""
        if self._one is not None:
            content = tables.metrics_of_one(self._one)
        else:
            content = tables.final_metrics(self._runs)
        parts = [html.table(content)]
        if self._tolerance:
            parts.append(html.table(tables.reached(self._runs, self._tolerance)))
        return html.section("metrics", "Final metrics", *parts)

    def _evaluation(self) -> str:
        """What a party's own test rows say of a federation's model."""
        if not any("evaluation" in run.info for run in self._runs.values()):
            return ""
        return html.section(
            "evaluation",
            "On own test rows",
            html.table(tables.evaluation(self._runs)),
            html.paragraph(tables.EVALUATION_NOTE, "note"),
        )

    def _privacy(self) -> str:
        return guarantees.section(self._runs, self._picture, self._publishable)

    def _trust(self) -> str:
        """What runs are worth trusting for, where they were examined."""
        parts = []
        for label, run in self._runs.items():
            told = run.info.get("trust")
            if told is None:
                continue
            if len(self._runs) > 1:
                parts.append(html.paragraph(label, "kicker"))
            parts.append(trustworthy.section(told, run.privacy))
        return html.section("trust", "Trust", *parts) if parts else ""

    def _nodes(self) -> str:
        """Every node's errors, where the run was validated; nothing else."""
        parts = []
        for label, run in self._runs.items():
            told = run.info.get("nodes")
            if told is None:
                continue
            if len(self._runs) > 1:
                parts.append(html.paragraph(label, "kicker"))
            first, *verdicts = nodes.summary(told)
            parts.append(html.paragraph(first))
            parts += [html.paragraph(words, "note") for words in verdicts]
            if "layout" in told:
                file = f"nodes-{_safe(label)}.png"
                shown = self._picture(
                    file,
                    "nodes coloured by validation error",
                    lambda t, n=told: nodes.nodes_map(n, t),
                )
                parts.append(html.figure(shown, "Nodes by their validation error"))
            content = html.table(nodes.nodes_table(told))
            parts.append(html.folded("The numbers", content))
            if "confusion" in told:
                matrix = html.table(nodes.confusion_table(told))
                parts.append(html.folded("Right and wrong classes", matrix))
        return html.section("nodes", "Every node's errors", *parts) if parts else ""

    def _letters(self) -> str:
        """How letters lay among each other, where a run watched them."""
        parts = []
        for label, run in self._runs.items():
            told = run.info.get("letters")
            if told is None:
                continue
            if len(self._runs) > 1:
                parts.append(html.paragraph(label, "kicker"))
            parts.append(html.paragraph(letters_by_agent.WARNING, "note"))
            shown = self._picture(
                f"letters-{_safe(label)}.png",
                "distance of every agent's letter by round",
                lambda t, n=told: letters_by_agent.distances(n, t),
            )
            parts.append(html.figure(shown, "Distance to the joint letter"))
            parts.append(html.table(letters_by_agent.letters_table(told)))
        return html.section("letters", "Every agent's letters", *parts) if parts else ""

    def _communication(self) -> str:
        counted = any("communication" in run.info for run in self._runs.values())
        if self._publishable and not counted:
            return ""
        several = any(facts.several(r) for r in self._runs.values())
        note = (
            "Letters are counted from who was active in which round, bytes are the "
            "numbers they carry, without envelopes."
        )
        if any("federation" in run.config for run in self._runs.values()):
            note = (
                "What this party sent and received: letters and the bytes of their "
                "envelopes, those sent again included."
            )
        if several:
            note += " Of several seeds, the mean of one is shown."
        return html.section(
            "communication",
            "Communication",
            html.table(tables.communication(self._runs)),
            html.paragraph(note, "note"),
            *(html.paragraph(w, "note") for w in facts.activity(self._runs)),
        )

    def _holdings(self) -> str:
        if self._publishable:
            return ""
        parts = []
        for labels, held in facts.distinct_holdings(self._runs):
            file = "who-holds-what.png"
            if parts:
                file = f"who-holds-what-{len(parts) + 1}.png"
            shown = self._picture(
                file, "rows of every agent", lambda t, h=held: held_picture(h, t)
            )
            total = int(np.sum(held["rows"]))
            told = f"{numbers.whole(total)} rows at {len(held['agent'])} agents"
            if len(self._runs) > len(labels):
                told += f" ({', '.join(labels)})"
            content = html.table(tables.holdings(held))
            parts.append(html.figure(shown, told) + html.folded("The numbers", content))
        if not parts:
            parts = [
                html.paragraph(
                    "The run folder does not tell: there are too many agents, or this "
                    "party holds no rows."
                )
            ]
        parts += [html.paragraph(w, "note") for w in facts.data_notes(self._runs)]
        return html.section("holdings", "Who holds what", *parts)

    def _settings(self) -> str:
        parts = []
        if self._one is not None:
            parts.append(html.lists(facts.groups(measures.described(self._one))))
        else:
            differ, same = tables.settings(self._runs)
            parts.append(html.table(differ, "In these settings the runs differ."))
            parts.append(html.folded("Settings that all runs share", html.table(same)))
        for label, run in self._runs.items():
            file = {k: v for k, v in run.config.items() if k != "resolved"}
            parts.append(
                html.folded(f"config.toml of {label}", html.code(tomli_w.dumps(file)))
            )
        return html.section("settings", "What was run", *parts)

    def _origin(self) -> str:
        rows, heads = [], ("run",)
        for label, run in self._runs.items():
            versions = run.info.get("versions", {})
            took = run.info.get("seconds", {}).get("total")
            heads = ("run", "seed", "time", *versions)
            rows.append(
                (
                    label,
                    numbers.plain(run.info.get("seed", tables.MISSING)),
                    tables.MISSING if took is None else numbers.seconds(took),
                    *map(str, versions.values()),
                )
            )
        heads = (*heads, *([""] * (max(map(len, rows)) - len(heads))))
        more = ""
        if not self._publishable:
            told = self._runs.items()
            more = "".join(_other_info(label, run) for label, run in told)
        return html.section(
            "origin", "Made with", html.table(tables.Table(heads, tuple(rows))), more
        )


def _safe(name: str) -> str:
    """A metric's name as part of a file name; a function may be called anything."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def _other_info(label: str, run: Run) -> str:
    """Whatever else the run folder tells, so that nothing is kept back."""
    rest = {k: v for k, v in run.info.items() if k not in _SHOWN_INFO}
    rows = tuple(tables.flat(rest).items())
    return html.folded(
        f"run.json of {label}", html.table(tables.Table(("key", "value"), rows))
    )
