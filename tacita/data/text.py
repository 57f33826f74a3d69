"""Shakespeare: every speaking role is an agent, the next character is the target."""

from __future__ import annotations

import re

import numpy as np

from tacita.check import count, refuse
from tacita.data.catalog import ENTRIES
from tacita.data.dataset import Dataset
from tacita.data.sources import read
from tacita.data.test_rows import check_share, hold_out_last


def load_shakespeare(
    *,
    window: int = 80,
    stride: int = 10,
    min_characters: int = 1000,
    test_share: float = 0.0,
) -> Dataset:
    """Shakespeare: windows of characters and the one that follows, by role.

    A role's speeches are put one after the other, a line feed between them; windows
    run over their ends. `x` holds whole numbers, the codes of characters:
    `classes[code]` is the character. A role name that occurs in several plays is one
    agent.

    Args:
        window: Characters in a row of `x`.
        stride: Characters from the start of one window to that of the next.
        min_characters: Roles that speak fewer are left out.
        test_share: Share of each role's text kept for testing, the last part. No
            window reaches over the border.
    """
    count(window=window)
    count(stride=stride)
    fewest = count(min_characters=min_characters) * (1 - check_share(test_share))
    if fewest <= window + 1:
        refuse(
            f"expected more than {window + 1} characters of each role to train on, got "
            f"{fewest:g}; raise min_characters or lower window or test_share"
        )
    text = read(ENTRIES["shakespeare"].files[0]).decode("ascii")
    alphabet = sorted(set(text))
    speeches = {
        role: parts
        for role, parts in sorted(roles(text).items())
        if sum(map(len, parts)) >= min_characters
    }
    if not speeches:
        refuse(f"no role speaks min_characters={min_characters} characters; lower it")
    code = np.zeros(128, np.int32)
    code[[ord(c) for c in alphabet]] = np.arange(len(alphabet))
    blocks: list[tuple[np.ndarray, ...]] = []
    for number, parts in enumerate(speeches.values()):
        letters = code[np.frombuffer("\n".join(parts).encode("ascii"), np.uint8)]
        test = hold_out_last(np.arange(len(letters)), test_share)
        blocks.append(_windows(letters[~test], window, stride, number))
        blocks.append(_windows(letters[test], window, stride, number))
    x, y, agent = (np.concatenate(column) for column in zip(*blocks[::2], strict=True))
    later = [np.concatenate(column) for column in zip(*blocks[1::2], strict=True)]
    tested = bool(len(later[1]))
    return Dataset(
        name="shakespeare",
        x=x,
        y=y,
        agent=agent,
        agent_names=tuple(speeches),
        test_x=later[0] if tested else None,
        test_y=later[1] if tested else None,
        test_agent=later[2] if tested else None,
        task="classification",
        feature_names=tuple(f"character -{back}" for back in range(window, 0, -1)),
        target_name="next character",
        classes=tuple(alphabet),
    )


def roles(text: str) -> dict[str, list[str]]:
    r"""The speeches of every role, in their order.

    Speeches are separated by empty lines; a speech starts with a line that holds the
    role and a colon. Blocks without words, or without that line, belong to nobody.

    >>> roles("All:\nSpeak, speak.\n\nAll:\nResolved. resolved.")
    {'All': ['Speak, speak.', 'Resolved. resolved.']}
    """
    spoken: dict[str, list[str]] = {}
    for block in re.split(r"\n\n+", text):
        head, _, words = block.strip("\n").partition("\n")
        if head.endswith(":") and words:
            spoken.setdefault(head[:-1], []).append(words)
    return spoken


def _windows(
    letters: np.ndarray, window: int, stride: int, agent: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The windows of one text, the letters after them, and whose they are."""
    if len(letters) <= window:
        return np.empty((0, window), np.int32), np.empty(0, np.int32), np.empty(0, int)
    both = np.lib.stride_tricks.sliding_window_view(letters, window + 1)[::stride]
    return both[:, :-1].copy(), both[:, -1].copy(), np.full(len(both), agent)
