"""`tacita attack`: which rule would hold on the user's own problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Changes
from tacita.cli.show import progress, show

EXAMPLE = "Example:  tacita attack run.toml --liars 8,9 --aggregation TrimmedMean"


def attack(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run file, or a run folder.")
    ],
    liars: Annotated[
        str | None,
        typer.Option(help="Numbers of the agents that lie; the last fifth of them."),
    ] = None,
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            help="An attack of the table, or backdoor; all of the table. Repeatable.",
        ),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--aggregation",
            help="A rule of the table, or RFA, Bulyan, Buckets, AdaptivelyClipped; all "
            "of the table. Repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; runs/attack-1, -2, ... if left out."),
    ] = None,
    change: Changes = None,
) -> None:
    """Try every attack against every rule, and say which rule to take.

    Prints what each rule reaches, draws it, and recommends in words. On a graph every
    node has the rule, and what the honest ones reach counts. A rule and an attack of
    the run file are tried too. Nothing here touches the data of others: the liars are
    simulated.
    """
    from tacita.algorithm.base import GraphAlgorithm

    if out is not None:
        tacita.job.folder.refuse_used(out)
    job = tacita.job.read(path / "config.toml" if path.is_dir() else path, change or ())
    who = _numbers(liars) if liars else _usual_liars(job)
    on_graph = isinstance(job.algorithm, GraphAlgorithm)
    table = tacita.tuning.rule_table(
        job.problem, job.algorithm, who, job.options["participation"]
    )
    known = table.able()
    lies = tacita.tuning.usual_attacks(job.problem, who, on_graph)
    if "backdoor" in (attacks or ()):
        lies["backdoor"] = tacita.tuning.usual_backdoor(job.problem, who)
    own_rule, own_lie = (job.options.get(name) for name in ("aggregation", "attack"))
    if own_rule is not None and not isinstance(own_rule, tacita.aggregation.Mean):
        known[f"{type(own_rule).__name__} of the run"] = own_rule
    if own_lie is not None and set(own_lie.agents) == set(who):
        lies[f"{type(own_lie).__name__} of the run"] = own_lie
    for word in rules or ():
        table.require(word)
    tried = _chosen("--aggregation", known, rules, table.others)
    against = _chosen("--attack", lies, attacks)
    with progress("runs") as tell:
        made = tacita.tuning.resilience(
            job.problem,
            job.algorithm,
            job.options["rounds"],
            liars=who,
            rules=tried,
            attacks=against,
            seed=job.options["seed"],
            participation=job.options["participation"],
            tell=tell,
        )
    shown = tacita.report.resilience_table(made)
    show(shown.columns, shown.rows, "right")
    alone = tacita.tuning.in_words(made.alone)
    if "backdoor" in against:
        typer.echo(
            "\nof the backdoor: the share of marked rows not taken for its target"
        )
    typer.echo(f"\n{made.metric}; the honest agents alone reach {alone}")
    typer.echo(made.recommendation())
    if rules is None and table.left_out():
        typer.echo(table.left_out())
    folder = out or tacita.job.folder.next_free("attack")
    typer.echo(f"picture: {tacita.report.draw_resilience(made, folder)}")


def _usual_liars(job: tacita.job.Job) -> tuple[int, ...]:
    """Those of the run file's attack, or the last fifth; never who is trusted."""
    rule, attack = (job.options.get(name) for name in ("aggregation", "attack"))
    if attack is not None:
        return attack.agents
    n = job.problem.n_agents
    trusted = rule.root if isinstance(rule, tacita.aggregation.FLTrust) else None
    others = [agent for agent in range(n) if agent != trusted]
    return tuple(others[-max(1, n // 5) :])


def _numbers(words: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in words.split(","))
    except ValueError:
        tacita.check.refuse(
            f"--liars {words!r}: expected numbers of agents such as --liars 8,9"
        )


def _chosen(
    option: str, known: dict, wanted: list[str] | None, more: dict | None = None
) -> dict:
    """Those of a table that are wanted; all, or by name some beside it."""
    able = known | (more or {})
    for word in wanted or ():
        if word not in able:
            near = tacita.check.nearest(word, able)
            tacita.check.refuse(f"{option} {word!r} is not in the table; {near}")
    return known if wanted is None else {word: able[word] for word in wanted}
