"""Protect a file with one method."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._release import REQUIRE_IT, announce_plan, plan_of_options, tell, write_if_open
from sfumato.cli._resources import control_option, hierarchy_option, resource_option
from sfumato.cli._screen import running, say
from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.errors import count_noun


class _MethodVerbs(click.Group):
    """One subcommand per method in the registry, its options made from the declared parameters.

    They are listed from their sources: no method is imported but the one that is named.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(entry.name for entry in registry.entries("methods"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return None if cmd_name.startswith("-") else _command_of(registry.method(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted((entry.name, entry.summary) for entry in registry.entries("methods")))


def _command_of(cls: type[Method]) -> click.Command:
    def run_it(**options: Any) -> None:
        _protect(cls.from_dict(_options.parameters_from(cls, options)), options)

    made = click.Command(cls.name, callback=run_it, short_help=cls.summary(), help=cls.summary())
    made.params.append(click.Argument(["source"]))
    made.params += [_options.option_of(declared) for declared in cls.parameters()]
    for decorate in _shared:
        decorate(made)
    return made


_shared = [
    _options.columns_option,
    click.option("-o", "--out", required=True, help="The protected file to write."),
    click.option(
        "--within", multiple=True, help="Protect each combination of these columns (stratum) separately."
    ),
    click.option("--together", default="", help="Treat records with the same value in this column as one."),
    click.option("--drop", multiple=True, help="Columns to remove, such as direct identifiers."),
    _options.keep_order_option,
    _options.require_option,
    _options.for_option,
    _options.unjudged_option,
    _options.override_option,
    _options.roles_option,
    _options.pseudonym_key_option,
    hierarchy_option,
    resource_option,
    control_option,
    _options.plan_option,
    *_options.READING,
    _options.seed_option,
    engine_options,
    _options.overwrite_option,
    _options.quiet_option,
]


@click.command("protect", cls=_MethodVerbs, help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
def command() -> None:
    """Protect a file by one method."""


def _protect(method: Method, options: dict[str, Any]) -> None:
    from sfumato.io.codebook import codebook_path
    from sfumato.recipes.step import Step
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.decide import decide, require_secret_seed

    quiet, out, subject = options["quiet"], options["out"], options["source"]
    step = Step(
        method, _options.split(options["columns"]), _options.split(options["within"]), options["together"]
    )
    reason = _options.reason_of(options)
    plan, destination = plan_of_options(step, options["source"], options)
    with running(quiet=quiet, seed=options["seed"]) as run:
        require_secret_seed(plan, run, subject=subject, override=reason)
        outcome = carry_out(plan, run, before=partial(announce_plan, quiet=quiet))
        tell(outcome, quiet=quiet)
        decision = decide(outcome, subject=subject, override=reason, unjudged=options["unjudged"])
        written = write_if_open(decision, destination, required_by=REQUIRE_IT, quiet=quiet)
    columns = ", ".join(outcome.release.provenance[0].columns)
    records = count_noun(len(outcome.release.first), "record")
    files = list(destination.files("", outcome.release.tables).values())
    places = f"{', '.join(map(str, files[:-1]))} and {files[-1]}" if len(files) > 1 else out
    say(f"{method.title} on {columns}: {records} written to {places}", quiet=quiet)
    for place in files:
        if isinstance(place, Path) and (labels := codebook_path(place)) in written:
            say(f"the codebook of the group labels is {labels}", quiet=quiet)
    if outcome.randomness.is_given:
        say("note: made with a given seed: for experiments only", quiet=quiet)
