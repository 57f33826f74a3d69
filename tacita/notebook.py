"""How objects show themselves in a notebook: small tables without a style of their own.

Lines are drawn in the colour of the text, so that they suit light and dark paper; every
word is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

#: Nodes that a small picture can hold.
_DRAWN = 60
#: Length of the sides of the picture, and its edge.
_SIDE, _EDGE = 160, 10


def table(
    title: str, rows: Iterable[Sequence[Any]], columns: Sequence[Any] = ()
) -> str:
    """A small table: a title, headings if there are any, one line per row."""
    head = "".join(_cell("th", word) for word in columns)
    body = "".join(
        "<tr>" + "".join(_cell("td", word) for word in row) + "</tr>\n" for row in rows
    )
    told = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    return (
        '<table style="border-collapse: collapse">\n'
        f'<caption style="text-align: left"><b>{escape(title)}</b></caption>\n'
        f"{told}<tbody>\n{body}</tbody></table>\n"
    )


def _cell(kind: str, words: Any) -> str:
    style = "text-align: left; padding: 0.1em 0.8em 0.1em 0"
    return f'<{kind} style="{style}">{escape(str(words))}</{kind}>'


def notes(pairs: Iterable[tuple[str, str]]) -> str:
    """Marks and what they stand for, small, one below the other."""
    lines = "".join(f"<b>{escape(k)}</b>: {escape(v)}<br>\n" for k, v in pairs)
    return f"<small>\n{lines}</small>\n" if lines else ""


def round_graph(nodes: int, pairs: Iterable[tuple[int, int]]) -> str:
    """A picture of a small graph, its nodes on a circle; nothing of a large one."""
    if nodes > _DRAWN:
        return ""
    reach, middle = _SIDE / 2 - _EDGE, _SIDE / 2
    turn = 2 * math.pi / max(nodes, 1)
    at = [
        (middle + reach * math.sin(turn * i), middle - reach * math.cos(turn * i))
        for i in range(nodes)
    ]
    lines = "".join(
        f'<line x1="{at[i][0]:.1f}" y1="{at[i][1]:.1f}" '
        f'x2="{at[j][0]:.1f}" y2="{at[j][1]:.1f}"/>'
        for i, j in pairs
    )
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in at)
    return (
        f'<svg width="{_SIDE}" height="{_SIDE}" role="img" aria-label="the graph" '
        'stroke="currentColor" stroke-opacity="0.5" fill="currentColor">'
        f"{lines}{dots}</svg>\n"
    )
