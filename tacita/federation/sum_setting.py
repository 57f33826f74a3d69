"""What the table [secure] of a run description means for its parties.

Noise and grid are the same for everybody and stand in the description: whoever proposes
the run sets them for agents with so many rows as it says (`rows`), and every agent
checks that they keep the budget for the rows it has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tacita.aggregation import SecureSum, Summed
from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.own_rows import blank_problem
from tacita.federation.work import Outline
from tacita.job import records
from tacita.job.calls import call
from tacita.privacy import Observer, private
from tacita.privacy.letters.secure_sum import most_curious
from tacita.problem import Problem
from tacita.trees import in_double_precision

#: What everybody must do in a secure sum, and what a run may therefore not ask for.
_NOT_IN_SUMS = {
    "participation": "asks everybody in every round: leave it out, and set a deadline "
    "for those who are late",
    "own_draws": "takes silence for a letter that is missing; leave it out",
    "late": "cannot open a round twice; leave it out",
    "asynchronous": "adds up letters of one round, and no late ones; leave it out",
    "most_norm": "shows the coordinator no letter to measure; leave it out",
    "keep_letters": "shows the coordinator no letter to keep; leave it out",
    "aggregation": "is itself the rule that joins letters; leave it out",
}


def algorithm_of(run: Description) -> Any:
    """The algorithm of a run, in the secure sum that it asks for."""
    made = records.build(dict(run.tables["algorithm"]))
    table = run.tables.get("secure")
    if table is None:
        return made
    _refuse_terms(run)
    told = {key: value for key, value in table.items() if key != "rows"}
    rule = call("secure", SecureSum, told)
    if rule.least is None:
        rule = replace(rule, least=len(run.agents))
    rule.check(len(run.agents))
    if made.weights == "samples":
        refuse(
            'weights = "samples" does not go with [secure]: agents would have to tell '
            'how many rows they have; use weights = "uniform"'
        )
    return Summed(algorithm=made, aggregation=rule)


def _refuse_terms(run: Description) -> None:
    for key, reason in _NOT_IN_SUMS.items():
        usual = {"late": "drop", "participation": 1.0}.get(key)
        if run.run.get(key, usual) not in (usual, False):
            refuse(f"run.{key} does not go with [secure]: a secure sum {reason}")
    if "noise_kind" in (run.privacy or {}):
        refuse(
            "privacy.noise_kind does not go with [secure]: a secure sum has exact "
            "integers; leave it out"
        )


def observer_of(algorithm: Summed) -> Observer:
    """Against whom a budget holds: the coordinator, and all who collude with it."""
    colluding = algorithm.aggregation.colluding
    return Observer.COLLUDERS if colluding else Observer.COORDINATOR


@in_double_precision
def with_sum(run: Description) -> Description:
    """The same description, with noise and grid set for its budget."""
    table, told = run.tables.get("secure"), run.privacy
    if table is None or told is None or "multiples" in table:
        return run
    if "rows" not in table:
        refuse(
            "the noise of a secure sum is set for agents with a number of rows that "
            "everybody may know; give secure.rows, the fewest that an agent has"
        )
    asked, blank = algorithm_of(run), blank_problem(run)
    outline = Outline(blank, len(run.agents), rows=int(table["rows"]))
    made = private(
        cast(Problem, outline),
        asked,
        epsilon=float(told["epsilon"]),
        delta=float(told["delta"]),
        observer=most_curious(asked.aggregation),
        rounds=run.rounds,
        unit=str(told.get("unit", "record")),
        norm=told.get("norm"),
    )
    grid = records.table_of_sum(made.aggregation)
    return replace(run, tables={**run.tables, "secure": {**table, **grid}})
