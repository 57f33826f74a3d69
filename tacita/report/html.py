"""Pieces of HTML; every word that comes from a user is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from tacita.report.tables import Table


def text(value: object) -> str:
    """Escaped text, safe between tags and within quotes."""
    return escape(str(value), quote=True)


def table(content: Table, caption: str = "") -> str:
    """A table; all columns but the first are set right, as numbers are.

    On a telephone every row is a block, in which each value stands beside its heading.
    """
    head = "".join(f'<th scope="col">{text(c)}</th>' for c in content.columns)
    body = "".join(
        f'<tr><th scope="row">{text(first)}</th>'
        + "".join(
            f'<td data-head="{text(head)}">{_cell(cell)}</td>'
            for head, cell in zip(content.columns[1:], cells, strict=True)
        )
        + "</tr>\n"
        for first, *cells in content.rows
    )
    told = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{told}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _cell(words: str) -> str:
    """A value; what is in brackets behind it, such as a range, goes below it."""
    value, bracket, rest = words.partition(" (")
    if not bracket or not rest.endswith(")"):
        return text(words)
    return f"{text(value)}<small>{text(rest[:-1])}</small>"


def _name(words: str) -> str:
    """A name that may be parted behind its dots, not within a word."""
    return text(words).replace(".", ".<wbr>")


def lists(groups: dict[str, list[tuple[str, str]]]) -> str:
    """Names and values side by side, a block for every group."""
    blocks = "".join(
        f"<div><h3>{text(title)}</h3><dl>"
        + "".join(f"<dt>{_name(k)}</dt><dd>{text(v)}</dd>" for k, v in pairs)
        + "</dl></div>"
        for title, pairs in groups.items()
    )
    return f'<div class="lists">{blocks}</div>\n'


def notes(pairs: Iterable[tuple[str, str]]) -> str:
    """Marks and what they stand for, one below the other."""
    body = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in pairs)
    return f'<dl class="notes">{body}</dl>\n'


def folded(summary: str, content: str) -> str:
    """Something that opens on a click, without a script."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>\n"


def section(identity: str, title: str, *parts: str) -> str:
    """A part of the page with its heading."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{text(identity)}"><h2>{text(title)}</h2>\n{body}</section>\n'


def picture(light: bytes, dark: bytes, words: str) -> str:
    """A picture within the page, chosen by the reader's light or dark setting."""
    return (
        "<picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{_uri(dark)}">'
        f'<img src="{_uri(light)}" alt="{text(words)}"></picture>'
    )


def figure(content: str, caption: str = "") -> str:
    """A picture with its caption."""
    told = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f"<figure>{content}{told}</figure>\n"


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """The few numbers that a reader looks for first."""
    body = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>"
        for name, value in pairs
    )
    return f'<dl class="cards">{body}</dl>\n'


def statement(
    sentence: str,
    verdict: str,
    good: bool,
    facts: Iterable[tuple[str, str]],
    lines: Iterable[str],
) -> str:
    """A sentence that somebody may sign: verdict, fine print, lines to write on."""
    kind = "verdict" if good else "verdict bad"
    fine = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in facts)
    written = "".join(f"<div>{text(line)}</div>" for line in lines)
    below = f'<div class="signature">{written}</div>' if written else ""
    return (
        f'<div class="statement"><p class="{kind}">{text(verdict)}</p>'
        f'<p class="sentence">{text(sentence)}</p>'
        f'<dl class="notes fine">{fine}</dl>{below}</div>\n'
    )


def banner(title: str, words: str, items: Iterable[str]) -> str:
    """What must not be overlooked."""
    listed = "".join(f"<li>{text(item)}</li>" for item in items)
    return (
        f'<div class="banner"><h3>{text(title)}</h3>{paragraph(words)}'
        f"<ul>{listed}</ul></div>\n"
    )


def heading(words: str) -> str:
    """Of a part within a section."""
    return f"<h3>{text(words)}</h3>\n"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain words."""
    named = f' class="{text(kind)}"' if kind else ""
    return f"<p{named}>{text(words)}</p>\n"


def code(words: str) -> str:
    """Text as it was written."""
    return f"<pre><code>{text(words)}</code></pre>\n"


def document(title: str, style: str, body: str) -> str:
    """A whole page that needs nothing from outside."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _uri(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")
