"""A run file made ready to run, everything checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from tacita.aggregation import SecureSum, Summed
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.check import refuse
from tacita.job import graphs, problems, records, run_file
from tacita.job.calls import call, plain_name, told_of
from tacita.job.changes import with_changes
from tacita.job.records import table_of
from tacita.job.run_file import RunFile, RunTable
from tacita.mesh import Mesh
from tacita.participation import schedule_for
from tacita.problem import Problem
from tacita.runtime import Asynchronous, Pace, arrivals, choices, measure, memory
from tacita.runtime.ready import prepare
from tacita.runtime.simulate import simulate
from tacita.trace import PrivacyReport, Run

#: The word in [run] that stands for an empty table [secure].
SECURE = "secure"
#: Keys of [run] that a private run does not show.
_SEEDS = ("seed", "seeds")


@dataclass(frozen=True)
class Job:
    """What a run file asks for.

    Attributes:
        config: The run file itself, its paths made absolute: runs again as it is.
        problem: What is solved.
        algorithm: How.
        options: The other arguments of `tacita.simulate`.
        notes: What was done to the data on the way, one sentence each.
    """

    config: dict[str, Any]
    problem: Problem
    algorithm: Algorithm
    options: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the run and its folder are called."""
        return self.config["name"]

    @property
    def toml(self) -> str:
        """The run file as text."""
        return tomli_w.dumps(self.config)

    def with_algorithm(self, algorithm: Algorithm, name: str | None = None) -> Job:
        """The same job by another algorithm; its run file says so too."""
        table: dict[str, Any] = {"name": name or self.name}
        if isinstance(algorithm, Summed):
            table["algorithm"] = table_of(algorithm.algorithm)
            table["secure"] = records.table_of_sum(algorithm.aggregation)
        else:
            table["algorithm"] = table_of(algorithm)
        budget = records.table_of_budget(algorithm)
        if budget is not None:
            table["privacy"] = budget
        config = {**self.config, **table}
        return replace(self, config=config, algorithm=algorithm)

    def plan(self) -> dict[str, Any]:
        """What plans of privacy ask of a run, besides problem and algorithm."""
        about = ("rounds", "participation", "aggregation")
        asked = {key: self.options[key] for key in about if key in self.options}
        attack = self.options.get("attack")
        if attack is not None:
            n = self.problem.n_agents
            asked["liars"] = n if attack.sees_letters else len(attack.agents)
        late = self.options.get("asynchronous")
        if isinstance(late, Pace):
            # Who is heard is no draw that anybody could count on.
            asked["participation"] = 1.0
        elif late is not None and late.most_delay is not None:
            asked["most_delay"] = int(late.most_delay)
        return asked | {"in_step": late is None}

    def forecast(self, algorithm: Algorithm, delta: float | None) -> PrivacyReport:
        """What the run would cost by this algorithm, with all that it rests on."""
        from tacita.job import privacy_table  # the privacy room loads slowly

        late = self.options.get("asynchronous")
        return privacy_table.forecast(self.problem, algorithm, delta, late, self.plan())

    def audited(self) -> dict[str, Any]:
        """What audits and readers of letters are told of a run: honest ones, in step.

        With liars or late letters fewer hide an agent's among theirs, so that what is
        found in an honest run would speak for less than the run leaks.
        """
        for name in ("attack", "asynchronous"):
            if self.options.get(name) is not None:
                refuse(
                    f"this run has {name}, which audits and readers do not play; "
                    "leave it out of the run file to look at the honest run"
                )
        asked = {name: self.options[name] for name in ("rounds", "participation")}
        return asked | {"aggregation": self.options.get("aggregation")}

    def _require_budget(self) -> None:
        """Refuse a run that would cost more than its table [privacy] allows."""
        if "privacy" in self.config:
            from tacita.job import privacy_table  # the privacy room loads slowly

            table = run_file.PrivacyTable.model_validate(self.config["privacy"])
            privacy_table.require_kept(
                table, self.forecast(self.algorithm, table.delta)
            )

    def simulate(self, checkpoint: Path | None = None, resume: bool = False) -> Run:
        """Run it; the run holds the run file, and what theory has set."""
        self._require_budget()
        run = simulate(
            self.problem,
            self.algorithm,
            **self.options,
            checkpoint=checkpoint,
            resume=resume,
        )
        # The run file stays what it was, so that it runs again as it is; but a private
        # run is kept without its seeds, with which all noise can be computed.
        file = self.config
        if run.privacy is not None:
            unseeded = {k: v for k, v in file["run"].items() if k not in _SEEDS}
            file = {**file, "run": unseeded}
        config = {**file, "resolved": run.config}
        info = {**run.info, "data_notes": list(self.notes)}
        # Notes count rows and name labels; a private model leaves without them.
        notes = self.notes if run.privacy is None else ()
        card = run.card and replace(run.card, notes=notes)
        return replace(run, config=config, info=info, card=card)


def read(path: str | Path, changes: Sequence[str] = ()) -> Job:
    """Read a run file, change keys ("run.rounds=5") and build what it describes."""
    path = Path(path)
    return job_from(with_changes(run_file.read(path), changes), path.parent)


def read_problem(path: str | Path, changes: Sequence[str] = ()) -> Problem:
    """The problem of a run file, whatever its algorithm needs; learnt graphs left out.

    For whoever is about to learn one.
    """
    path = Path(path)
    table = with_changes(run_file.read(path), changes)
    file = run_file.validate(table)
    _with_absolute_paths(table, file, path.parent)
    if graphs.is_learned(file.problem.graph):
        file.problem.graph = None
    return problems.build(file.problem)[0]


def job_from(table: dict[str, Any], folder: Path) -> Job:
    """Check a run file and build what it describes, without running anything.

    Args:
        table: The content of the run file.
        folder: Where the run file lies: its relative paths are meant from there.
    """
    file = run_file.validate(table)
    config = _with_absolute_paths(table, file, folder)
    config["name"] = file.name or _usual_name(file)
    made, notes = problems.build(file.problem)
    how = records.build(file.algorithm)
    _require_graph(made, how)
    if file.secure is not None or file.run.aggregation == SECURE:
        how = _summed(file, made, how)
    with told_of("run"):
        options = _options(file.run, made, how)
    if file.mesh is not None:
        options["mesh"] = call("mesh", Mesh, dict(file.mesh))
    job = Job(config, made, how, options, notes)
    _rehearse(job)
    if file.privacy is None:
        return job
    from tacita.job import privacy_table  # the privacy room loads slowly

    return replace(job, algorithm=privacy_table.held_to(file.privacy, made, how))


def _with_absolute_paths(
    table: dict[str, Any], file: RunFile, folder: Path
) -> dict[str, Any]:
    """The run file with its paths made absolute, in `file` too."""
    what, paths = file.problem, {}
    if problems.is_path(what.data):
        paths["data"] = what.data = _absolute(what.data, folder)
    if isinstance(what.graph, dict) and isinstance(what.graph.get("path"), str):
        path = _absolute(what.graph["path"], folder)
        paths["graph"] = what.graph = {**what.graph, "path": path}
    return {"name": "", **table, "problem": {**table["problem"], **paths}}


def _absolute(name: str, folder: Path) -> str:
    return str((folder / Path(name).expanduser()).resolve())


def _usual_name(file: RunFile) -> str:
    source = Path(file.problem.data).name.split(".")[0]
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in source)
    return f"{plain_name(file.algorithm.name)}-{safe}"


def _require_graph(made: Problem, how: Algorithm) -> None:
    if isinstance(how, GraphAlgorithm) and made.graph is None:
        refuse(
            f"missing key problem.graph; {type(how).__name__} needs a graph, "
            'add for example graph = { kind = "ring" }'
        )


def _summed(file: RunFile, made: Problem, how: Algorithm) -> Algorithm:
    """The algorithm in the secure sum that the table [secure] asks for."""
    if file.run.aggregation not in (None, SECURE):
        refuse("run.aggregation and [secure] both say how letters are joined; keep one")
    rule = call("secure", SecureSum, file.secure or {})
    with told_of("secure"):
        return choices.summed_by(made, how, file.run.participation, rule)


def _options(run: RunTable, made: Problem, how: Algorithm) -> dict[str, Any]:
    record = run.record if run.record is not None else _usual_record(made)
    options: dict[str, Any] = {**dict(run), "record": tuple(record)}
    if run.asynchronous is not None:
        kind = Asynchronous if isinstance(how, GraphAlgorithm) else Pace
        options["asynchronous"] = call("run.asynchronous", kind, run.asynchronous)
    if run.aggregation == SECURE:
        del options["aggregation"]  # the algorithm has it
    elif run.aggregation is not None:
        options["aggregation"] = records.build_rule(run.aggregation)
    if run.attack is not None:
        options["attack"] = records.build_attack(run.attack)
    if "error" in record:
        options["reference"] = how.goal(made)
    return options


def _usual_record(made: Problem) -> list[str]:
    """Everything that is cheap and tells something about this problem."""
    found = list(memory.recorded(made, measure.DEFAULT_RECORD))
    classify, tested = made.model.classes is not None, made.population.test is not None
    found += ["accuracy"] * classify + ["test_loss"] * tested
    return found + ["test_accuracy"] * (classify and tested)


def _rehearse_letters(job: Job) -> None:
    """Refuse who cannot lie that way, and a rule that cannot join the letters."""
    problem, how, chosen = job.problem, job.algorithm, job.options
    choices.attack_of(problem, how, chosen.get("attack"))
    # A secure sum has no grid before `tacita privacy plan` sets it.
    planned = not isinstance(how, Summed) or how.aggregation.step is not None
    if chosen.get("asynchronous") is None and planned:
        who = choices.schedule_of(problem, how, chosen["participation"])
        choices.aggregation_of(problem, how, chosen.get("aggregation"), who)


def _rehearse(job: Job) -> None:
    """Have the runtime check all that it would check, before a folder is made."""
    with told_of("algorithm"):
        prepare(job.problem, job.algorithm)
    for metric in job.options["record"]:
        known = metric in measure.METRICS and metric.startswith("test_")
        if known and job.problem.population.test is None:
            refuse(
                f"run.record names {metric!r}, which needs test rows; have some held "
                "out by the data set, for example problem.test_share = 0.2"
            )
    with told_of("run"):
        schedule_for(job.options["participation"], job.problem.n_agents)
        late = job.options.get("asynchronous")
        choices.require_asynchronous(job.algorithm, late)
        if isinstance(late, Pace):
            letters = job.options["participation"]
            arrivals.schedule_of(late, letters, job.problem.n_agents)
        measure.choose(job.options["record"], job.problem, job.options.get("reference"))
        _rehearse_letters(job)
    for metric in job.options["stop"] or {}:
        if metric not in job.options["record"]:
            refuse(
                f"run.stop names {metric!r}, which is not recorded; add it to "
                f"run.record = {list(job.options['record'])}"
            )
