"""Options that verbs share, and options made from declared parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sfumato.cli._engine import engine_options
from sfumato.core.params import Columns, Param, Parameters, Requirements
from sfumato.errors import ParameterError, PlanError

F = TypeVar("F", bound=Callable[..., Any])

SOURCE = "a file, a plan (its data), or a built-in data set such as builtin:rand?per=person"


def _not_data(_: click.Context, __: click.Parameter, value: Path) -> Path:
    """A plan, and no data: say what leads from data to a plan or a release."""
    from sfumato.io.formats import FORMATS

    if value.suffix.lower() in FORMATS or str(value).startswith("builtin:"):
        raise PlanError(
            f"`{value}` is a data file, not a plan",
            hint=f"`sfumato release {value}` makes a release in one go; `sfumato inspect {value} "
            "--write-plan plan.toml` writes a plan",
        )
    return value


plan_argument = click.argument(
    "plan_path", metavar="PLAN", type=click.Path(path_type=Path), callback=_not_data
)

json_option = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON to stdout.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors on stderr.")
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    help="Fix the random numbers, for experiments only: whoever knows the seed can undo noise.",
)
plan_option = click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    help="Take the columns' kinds and roles from this plan.",
)
sample_option = click.option(
    "--sample-equivalent/--no-sample-equivalent",
    default=None,
    help="Say how large a random sample of the original is as useful (default: if that takes seconds).",
)
columns_option = click.option(
    "-c",
    "--columns",
    multiple=True,
    help="Columns, comma-separated; @key, @continuous … for all columns of a role or kind.",
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an existing output (never an original)."
)
require_option = click.option(
    "--require", multiple=True, help="A requirement on the release, such as 'k >= 5'; may be repeated."
)
for_option = click.option(
    "--for", "--profile", "profile", metavar="PROFILE",
    help="The profile of requirements: public, scientific, industry, secure, or a profile file.",
)  # fmt: skip
unjudged_option = click.option(
    "--unjudged",
    is_flag=True,
    help="Release without any requirement on risk; the private trail records that.",
)
override_option = click.option(
    "--override", metavar="REASON", help="Release despite the problems found; the reason is recorded."
)
only_option = click.option(
    "--only",
    type=click.Choice(["vetted"]),
    help="Refuse methods and requirements that were checked by experiments alone.",
)
drop_option = click.option(
    "--drop", multiple=True, metavar="COLUMNS", help="Columns to remove, comma-separated."
)
keep_order_option = click.option(
    "--keep-order", is_flag=True, help="Do not shuffle the records, although their order can identify people."
)
roles_option = click.option(
    "-r", "--role", "roles", multiple=True, metavar="COLUMN=ROLE",
    help="The role of a column: key (quasi-identifier), sensitive, identifier (removed), person, household, "
    "group, weight or other.",
)  # fmt: skip
pseudonym_key_option = click.option(
    "--pseudonym-key", metavar="FILE",
    help="Give people lasting pseudonyms by the key in this file; if there is none, a key is made.",
)  # fmt: skip

#: How a file is to be read, by what `sfumato.io` calls it.
READING = (
    click.option("--delimiter", help="The separator of fields in a text file; detected when not given."),
    click.option("--decimal", help="The decimal sign in a text file, `.` or `,`; detected when not given."),
    click.option("--encoding", help="The encoding of a text file, such as cp1252; detected when not given."),
    click.option("--sheet", help="The sheet of a workbook; the largest when not given."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a text file has the column names; detected when not given.",
    ),
)


def reading_options(function: F) -> F:
    """Give a verb the options that say how a file is to be read."""
    for option in reversed(READING):
        function = option(function)
    return function


def work_options(function: F) -> F:
    """Add what all verbs that work on data and write take last: the seed, engines, how to write and tell."""
    return seed_option(engine_options(overwrite_option(json_option(quiet_option(function)))))


def reading_of(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the reading options that were given; a built-in data set has no use for any."""
    from sfumato.io.formats import READING as NAMES

    given = {name: options[name] for name in NAMES if options.get(name) is not None}
    if given and source.startswith("builtin:"):
        raise ParameterError(f"`--{min(given)}` is for files; `{source}` is a built-in data set")
    return given


#: What the owner says of a release, by what `sfumato.recipes.parts.About` calls it.
_ABOUT = (
    click.option("--title", help="Title of the release, for its data card."),
    click.option("--purpose", help="Purpose of the release."),
    click.option("--contact", help="Contact for questions about the release."),
    click.option(
        "--recipient", "recipients", multiple=True, help="A recipient of the release; may be repeated."
    ),
)


def about_options(function: F) -> F:
    """Give a verb the options for what the owner says of a release."""
    for option in reversed(_ABOUT):
        function = option(function)
    return function


def about_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what was said of a release."""
    given = {name: options.get(name) for name in ("title", "purpose", "contact", "recipients")}
    return {name: value for name, value in given.items() if value}


def split(values: Sequence[str]) -> tuple[str, ...]:
    """Take comma-separated and repeated options alike."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def roles_of(values: Sequence[str]) -> dict[str, str]:
    """Read ``--role edu=key``; a column's name may hold an equals sign."""
    pairs = [value.rpartition("=") for value in values]
    for value, (column, _, role) in zip(values, pairs, strict=True):
        if not column or not role:
            raise ParameterError(f"`--role` must be written COLUMN=ROLE, got: `{value}`")
    return {column.strip(): role.strip() for column, _, role in pairs}


def option_of(declared: Param) -> click.Option:
    """Make the command-line option of a parameter: its type, bounds and default stand in the declaration."""
    symbol = f"{declared.symbol}: " if declared.symbol else ""
    domain = "" if declared.choices and not declared.per_column else f" [{symbol}{declared.domain}]"
    help_text = declared.explanation + domain
    words: dict[str, Any] = {"required": False, "help": help_text, "show_default": True}
    flag = f"--{declared.name.replace('_', '-')}"
    if declared.per_column:
        return click.Option(
            [flag, declared.name], multiple=True,
            default=() if declared.default is None else (str(declared.default),),
            metavar="VALUE|COLUMN=VALUE", **words,
        )  # fmt: skip
    if declared.type in {Columns, Requirements}:
        return click.Option(
            [flag, declared.name],
            multiple=True,
            default=tuple(declared.default or ()),
            metavar="COLUMNS" if declared.type is Columns else "REQUIREMENT",
            **words,
        )
    if declared.type is bool:
        pair = f"{flag}/--no-{declared.name.replace('_', '-')}"
        return click.Option([pair, declared.name], default=declared.default, **words)
    metavar = {int: "INTEGER", float: "NUMBER"}.get(declared.type, "TEXT")
    return click.Option(
        [flag, declared.name],
        type=_ParameterText(declared),
        default=declared.default,
        metavar=f"[{'|'.join(declared.choices)}]" if declared.choices else metavar,
        **words,
    )


class _ParameterText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The text of a parameter. What is wrong with it the parameter says itself, as behind every door."""

    name = "text"

    def __init__(self, declared: Param) -> None:
        self.declared = declared

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        return self.declared.read(value) if isinstance(value, str) else value

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(each) for each in self.declared.choices if each.startswith(incomplete)]


def parameters_from(cls: type[Parameters], options: dict[str, Any]) -> dict[str, Any]:
    """Pick the declared parameters out of a command's options."""
    values = {}
    for declared in cls.parameters():
        value = options[declared.name]
        if declared.per_column:
            value = _by_column(declared, value) if value else None
        elif declared.type is Columns:
            value = split(value)
        if value is not None:
            values[declared.name] = value
    return values


def _by_column(declared: Param, values: Sequence[str]) -> Any:
    table: dict[str, Any] = {}
    for value in values:
        column, sign, text = value.rpartition("=")
        table[column if sign else "default"] = declared.read(text)
    return table if set(table) != {"default"} else table["default"]


def reason_of(options: Mapping[str, Any]) -> str:
    """The reason of an override, if someone overrides what blocks; one must be given."""
    reason = options.get("override")
    if reason is not None and not reason.strip():
        raise ParameterError("`--override` needs a reason")
    return reason.strip() if reason else ""
