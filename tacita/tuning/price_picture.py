"""The picture of what privacy costs: a metric over epsilon, with error bars."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from tacita.theme import DARK, LIGHT, legend, one_axes, percent, title
from tacita.trace import measures, over_seeds
from tacita.trace.epsilon_words import about

if TYPE_CHECKING:
    from tacita.tuning.price import Tradeoff

#: Letters of one line below the picture.
_LINE = 86
#: Of the line without noise, then of other lines to compare with.
_DASHES = ((0, (6, 2)), (0, (2, 2)), (0, (2, 4)))


def draw(price: Tradeoff, dark: bool) -> Figure:
    """What `Tradeoff.plot` draws."""
    theme = DARK if dark else LIGHT
    figure, axes = one_axes(theme, 6.2, 4.9)
    order = np.argsort(price.epsilons)
    at = np.array(price.epsilons)[order]
    values = measures.drawable(price.values[order])
    middle = over_seeds.of_seeds(values.T)
    low, high = (over_seeds.of_seeds(values.T, one) for one in (np.nanmin, np.nanmax))
    lost = int((~np.isfinite(values)).sum())
    diverged = f"; {lost} of {values.size} runs diverged" if lost else ""
    axes.errorbar(
        at,
        middle,
        yerr=np.stack([middle - low, high - middle]),
        color=theme.series[0],
        marker="o",
        capsize=3,
        linewidth=1.8,
        label=f"with noise: median of {values.shape[1]}, lowest to highest{diverged}",
    )
    plain = measures.drawable(price.without_noise)[:, None]
    told = ", ".join(
        filter(None, ("no noise", over_seeds.told(over_seeds.astray(plain))))
    )
    compared = {told: float(over_seeds.of_seeds(plain)[0]), **price.references}
    for number, (words, value) in enumerate(compared.items()):
        share = measures.is_share(price.metric)
        told = f"{value:.1%}" if share else f"{value:.4g}"
        axes.axhline(
            value,
            color=theme.series[1] if number == 0 else theme.soft,
            lw=1.2,
            ls=_DASHES[number % len(_DASHES)],
            label=f"{words}: {told}",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(at)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if measures.is_share(price.metric):
        axes.yaxis.set_major_formatter(percent)
    # A picture is passed on by itself: what its epsilons rest on goes with it.
    told = f"epsilon {about(vars(price.rows[0]), relation=True)}"
    grounds = [textwrap.fill(words, _LINE) for words in price.grounds]
    axes.set_xlabel("\n".join([told, *grounds]))
    title(axes, theme, measures.words(price.metric))
    legend(figure, theme, 2)
    return figure
