"""Protect a file by one method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sfumato.cli._options import (
    SOURCE,
    columns_option,
    option_of,
    overwrite_option,
    parameters_from,
    plan_option,
    quiet_option,
    require_columns,
    schema_and_scenario,
    seed_option,
    split,
)
from sfumato.cli._resources import files_named, hierarchy_option, resource_option, with_resources
from sfumato.cli._screen import announce, running, say
from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.core.params import listed
from sfumato.core.release import Release
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, UnknownNameError


class _MethodVerbs(click.Group):
    """One subcommand per method in the registry, its options made from the declared parameters."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(registry.methods())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cls = registry.methods().get(cmd_name)
        return None if cls is None else _command_of(cls)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in registry.methods() and not args[0].startswith("-"):
            raise UnknownNameError.of("method", args[0], registry.methods())
        return super().resolve_command(ctx, args)


def _command_of(cls: type[Method]) -> click.Command:
    def run_it(**options: Any) -> None:
        _protect(cls.from_dict(parameters_from(cls, options)), options)

    made = click.Command(cls.name, callback=run_it, short_help=cls.summary(), help=cls.summary())
    made.params.append(click.Argument(["source"], metavar="SOURCE"))
    made.params += [option_of(declared) for declared in cls.parameters()]
    for decorate in _shared:
        decorate(made)
    return made


_shared = [
    columns_option,
    click.option("-o", "--out", required=True, help="Where the protected file goes."),
    click.option("--within", multiple=True, help="Protect apart within each combination of these columns."),
    click.option("--together", default="", help="Treat the records that share this column's value as one."),
    click.option("--drop", multiple=True, help="Columns to leave out of the output, such as identifiers."),
    click.option(
        "--keep-order", is_flag=True, help="Do not shuffle the records; file order can identify people."
    ),
    hierarchy_option,
    resource_option,
    plan_option,
    seed_option,
    overwrite_option,
    quiet_option,
]


@click.command("protect", cls=_MethodVerbs, help=__doc__, epilog=f"SOURCE is {SOURCE}.")
def command() -> None:
    """Protect a file by one method."""


def _protect(method: Method, options: dict[str, Any]) -> None:
    from sfumato.cli.convert import require_format
    from sfumato.front import read
    from sfumato.io import check_writable, write
    from sfumato.recipes.plan import bare_numbers
    from sfumato.recipes.recipe import Recipe, Step
    from sfumato.releasing.postprocess import rename_people
    from sfumato.study.cost import Work

    quiet, source, out = options["quiet"], options["source"], options["out"]
    schema, _ = schema_and_scenario(options["plan_path"])
    require_format(out)
    originals = ([] if source.startswith("builtin:") else [source]) + files_named(options)
    check_writable(out, originals=originals, overwrite=options["overwrite"])
    table, resources = with_resources(read(source, schema=schema), options)
    step = Step(method, split(options["columns"]), split(options["within"]), options["together"])
    drop = split(options["drop"])
    require_columns(table.schema, (*step.columns, *step.within, *drop))
    _require_anonymous(table, drop)
    for warning in (*step.warnings(table.schema), *bare_numbers(table.schema, drop)):
        say(f"warning: {warning}", quiet=quiet)
    with running(quiet=quiet, seed=options["seed"]) as run:
        run = replace(run, resources=resources)  # noqa: PLW2901  — the same run, which knows them
        announce(Work(Recipe((step,)), resources=resources), table, run, quiet=quiet)
        release = Recipe((step,)).apply(table, run)
        kept = [name for name in release.table.names if name not in drop]
        if not kept:
            raise ParameterError("at least one column must be left, got: all are dropped")
        protected = rename_people(release.table.select(kept), run)
        if not options["keep_order"]:
            protected = protected.take(run.at(table.digest).rng("shuffle").permutation(len(protected)))
        write(protected, out, originals=originals, overwrite=options["overwrite"])
    columns = ", ".join(step.resolve(table.schema))
    say(f"{method.title} on {columns}: {len(protected)} records written to {out}", quiet=quiet)
    _tell(release, protected, options)


def _require_anonymous(table: Table, drop: tuple[str, ...]) -> None:
    schema = table.schema
    named = [n for n in schema.with_role(Role.IDENTIFIER) if n not in drop and not schema[n].pseudonym]
    if named:
        raise PlanError(
            f"no identifier may be left in a protected file, got: {listed(named)}",
            hint=f"leave it out with --drop {','.join(named)}, or correct its role in a plan and use --plan",
        )


def _tell(release: Release, protected: Table, options: dict[str, Any]) -> None:
    """Say what should be known of the release that was written."""
    from sfumato.data.checks import violations
    from sfumato.io.addresses import is_address
    from sfumato.io.codebook import place_beside

    quiet, out = options["quiet"], options["out"]
    if not is_address(out) and (labels := place_beside(Path(out))).exists():
        say(f"what the labels of groups stand for is in {labels}", quiet=quiet)
    for note in (note for taken in release.provenance for note in taken.notes):
        say(f"note: {note}", quiet=quiet)
    for violation in violations(protected):
        say(f"note: {violation.records} records break the promise that {violation.promise}", quiet=quiet)
    if options["seed"] is not None:
        say("note: made with a given seed, so for experiments only", quiet=quiet)
