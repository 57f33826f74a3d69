"""What privacy costs: how good a model is at several budgets, with error bars.

The measurements look at rows without noise, so a budget that was chosen by them was
chosen by looking: do it on rows that are nobody's secret, or on made-up ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacita import check, notebook
from tacita.algorithm.base import Algorithm
from tacita.privacy.private import private
from tacita.problem.problem import Problem
from tacita.runtime.simulate import simulate
from tacita.trace import PrivacyReport, PrivacyRow, over_seeds
from tacita.trace.epsilon_words import about, reasons
from tacita.trace.references import references_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: What is measured unless told otherwise: the first that the problem can tell.
_USUAL = ("test_accuracy", "accuracy", "test_loss", "loss")


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What a model is worth at each of several budgets.

    Attributes:
        metric: What was measured after the last round.
        epsilons: The budgets.
        values: The metric, shape (budgets, repeats).
        without_noise: The metric of the algorithm as it was given, one per repeat.
        references: Values to compare with, by name, such as that of the majority class.
        observer: Against whom the budgets are.
        unit: What they protect.
        reports: Of every budget, what each observer may have learnt and why.
    """

    metric: str
    epsilons: tuple[float, ...]
    values: np.ndarray
    without_noise: np.ndarray
    references: dict[str, float]
    observer: str
    unit: str
    reports: tuple[PrivacyReport, ...]

    @property
    def rows(self) -> tuple[PrivacyRow, ...]:
        """Of every budget the guarantee it is about, with theorem and assumptions."""
        return tuple(report.row(self.observer, self.unit) for report in self.reports)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table, one line per budget and repeat, with what each rests on."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "epsilon": epsilon,
                    "delta": row.delta,
                    "observer": row.observer,
                    "unit": row.unit,
                    "relation": row.relation,
                    "theorem": row.theorem,
                    "assumptions": "; ".join(
                        f"{a['statement']} ({a['status']})" for a in row.assumptions
                    ),
                    "repeat": repeat,
                    self.metric: value,
                }
                for epsilon, row, values in zip(
                    self.epsilons, self.rows, self.values, strict=True
                )
                for repeat, value in enumerate(values)
            ]
        )

    def plot(self, *, dark: bool = False) -> Figure:
        """Draw the metric over epsilon: the median, bars from lowest to highest."""
        from tacita.tuning.price_picture import draw  # Matplotlib is slow to import

        return draw(self, dark)

    def _lines(self) -> list[tuple[str, ...]]:
        told = zip(map("{:g}".format, self.epsilons), self.values, strict=True)
        return [
            (words, *_over_repeats(values))
            for words, values in (*told, ("no noise", self.without_noise))
        ]

    @property
    def grounds(self) -> list[str]:
        """What the epsilons rest on; mostly the same for all of them."""
        return list(dict.fromkeys(reasons(vars(row)) for row in self.rows))

    @property
    def _title(self) -> str:
        row = self.rows[0]
        return f"{self.metric} against epsilon {about(vars(row), relation=True)}"

    def __repr__(self) -> str:
        lines = [("epsilon", "median", "lowest", "highest"), *self._lines()]
        shown = ["".join(word.ljust(12) for word in line).rstrip() for line in lines]
        return "\n".join([self._title, *shown, *self.grounds])

    def _repr_html_(self) -> str:
        heads = ("epsilon", "median", "lowest", "highest")
        basis = [("epsilon", words) for words in self.grounds]
        basis.append(("measured", "on rows without noise, which no epsilon covers"))
        return notebook.table(self._title, self._lines(), heads) + notebook.notes(basis)


def _over_repeats(values: np.ndarray) -> tuple[str, ...]:
    """The median, lowest and highest; how many diverged is told behind the last."""
    table = values[:, None]
    found = (np.nanmedian, np.nanmin, np.nanmax)
    words = [f"{over_seeds.of_seeds(table, one)[0]:.4g}" for one in found]
    lost = over_seeds.told(over_seeds.astray(table))
    return (*words[:2], f"{words[2]} ({lost})" if lost else words[2])


def tradeoff(
    problem: Problem,
    algorithm: Algorithm,
    epsilons: Sequence[float],
    *,
    delta: float,
    observer: str,
    rounds: int,
    seeds: int | Sequence[int] = 5,
    metric: str | None = None,
    participation: Any = 1.0,
    unit: str = "record",
    **choices: Any,
) -> Tradeoff:
    """Measure what a model is worth at several budgets.

    At every epsilon noise is set for the budget (`tacita.private`) and the run is
    repeated with fresh noise. One program is compiled for all of them.

    Args:
        problem: What is solved.
        algorithm: How, as in `tacita.private`.
        epsilons: The budgets.
        delta: Of every budget.
        observer: Against whom the budgets are.
        rounds: Rounds of every run.
        seeds: Repeats of every budget, as in `tacita.simulate`.
        metric: What is measured after the last round; default the accuracy on test
            rows, or the nearest to it that the problem knows.
        participation: As in `tacita.simulate`.
        unit: What is protected: a `record` or a `client`.
        **choices: Other arguments of `tacita.private`.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=60)
    >>> price = tradeoff(problem, tacita.ServerGD(step_size=1.0), [0.1, 10.0], rounds=5,
    ...                  delta=1e-5, observer="coordinator", seeds=3)
    >>> price.values.shape, price.metric
    ((2, 3), 'accuracy')
    """
    if not np.iterable(epsilons) or not len(epsilons):
        check.refuse(
            f"expected epsilons a list such as [0.5, 1, 2], got epsilons={epsilons!r}"
        )
    metric = _usual(problem) if metric is None else metric
    options = dict(participation=participation, seeds=seeds, progress=False)
    options |= dict(record=(metric,), record_every=rounds)
    plain = simulate(problem, algorithm, rounds, **options)
    reports, values = [], []
    for epsilon in epsilons:
        safe = private(
            problem,
            algorithm,
            epsilon=epsilon,
            delta=delta,
            observer=observer,
            rounds=rounds,
            participation=participation,
            unit=unit,
            **choices,
        )
        run = simulate(problem, safe, rounds, **options)
        assert run.privacy is not None
        reports.append(run.privacy)
        values.append(run.metrics[metric][:, -1])
    return Tradeoff(
        metric=metric,
        epsilons=tuple(float(epsilon) for epsilon in epsilons),
        values=np.array(values),
        without_noise=plain.metrics[metric][:, -1],
        references=references_of(problem, metric),
        observer=observer,
        unit=unit,
        reports=tuple(reports),
    )


def _usual(problem: Problem) -> str:
    classify = problem.model.classes is not None
    tested = problem.population.test is not None
    known = {
        "test_accuracy": classify and tested,
        "accuracy": classify,
        "test_loss": tested,
        "loss": True,
    }
    return next(metric for metric in _USUAL if known[metric])
