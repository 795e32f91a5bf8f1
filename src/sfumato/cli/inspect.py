"""Show what is in a file, propose a role for each column, and write a starter plan."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._screen import emit_json, emit_table, say
from sfumato.errors import count_noun, note_renamed

if TYPE_CHECKING:
    from sfumato.data.combinations import ColumnCombinations
    from sfumato.data.guess.overview import Overview, Summary

_LONGEST_NAME = 30  # that a screen shows in full
_COMBINATIONS = 5  # of each size that it shows
_UNITS = ("B", "kB", "MB", "GB", "TB")


@click.command("inspect", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
@click.argument("source")
@click.option("--write-plan", type=click.Path(path_type=Path), help="Write a starter plan here.")
@click.option("--plan", "former", type=click.Path(path_type=Path), hidden=True, help="Now --write-plan.")
@click.option(
    "--combinations", type=click.IntRange(min=0), default=0, metavar="N",
    help="Also find which combinations of up to N columns tell records apart (quasi-identifiers).",
)  # fmt: skip
@_options.for_option
@_options.roles_option
@_options.reading_options
@_options.overwrite_option
@_options.json_option
@_options.quiet_option
def command(
    source: str, *, write_plan: Path | None, former: Path | None, combinations: int, profile: str | None,
    roles: tuple[str, ...], overwrite: bool, as_json: bool, quiet: bool, **options: str | None,
) -> None:  # fmt: skip
    """Look into a file."""
    from sfumato.io import check_writable, write_text
    from sfumato.releasing.prepare import DEFAULT_PROFILE

    if former is not None:  # everywhere else `--plan` is a plan that is read
        note_renamed("the option", "--plan", "--write-plan")
    plan_path = write_plan or former
    how = _options.reading_of(source, options)
    originals = [source] if Path(source).is_file() else []
    if plan_path is not None:
        check_writable(plan_path, originals=originals, overwrite=overwrite)
    found = look_into(source, how, _options.roles_of(roles), combinations)
    size = Path(source).stat().st_size if Path(source).is_file() else None
    if as_json:
        emit_json({"source": source, "format": _format(source), "bytes": size, **found.to_dict()})
    else:
        facts = ", ".join([_format(source), *([] if size is None else [in_bytes(size)])])
        sizes = f"{count_noun(found.records, 'record')}, {count_noun(len(found.columns), 'column')}"
        say(f"{source}: {sizes} ({facts})", quiet=quiet)
        _show(found)
        if found.combinations is not None:
            click.echo()
            _show_combinations(found.combinations)
        for warning in found.warnings():
            say(f"note: {warning}", quiet=quiet)
    if plan_path is not None:
        text = starter(source, found, plan_path, how, profile or DEFAULT_PROFILE)
        write_text(plan_path, text, originals=originals, overwrite=overwrite)
        if profile is None:
            how_else = "for another profile add --for public, for example"
            say(f"the plan has the requirements of `{DEFAULT_PROFILE}`; {how_else}", quiet=quiet)
        say(f"plan: {plan_path}; check every role in it, then `sfumato check {plan_path}`", quiet=quiet)


def look_into(
    source: str, how: Mapping[str, Any], roles: Mapping[str, str] | None = None, combinations: int = 0
) -> Overview:
    """Read a file or make a built-in data set, and say what is in it."""
    from sfumato.front import inspect

    return inspect(source, roles=roles, combinations=combinations, **how)


# On the screen --------------------------------------------------------------------------------------------


def _show(found: Overview) -> None:
    """Show a table; on a narrow screen the reasons have one of their own."""
    heads = ["column", "type", "distinct", "missing", "kind", "role", "why"]
    emit_table(heads, [[*_row(each), _why(each)] for each in found.columns], right=[2, 3], about=0)


def _show_combinations(found: ColumnCombinations) -> None:
    """Show the combinations of each size that tell most records apart."""
    heads = ["columns", "distinction", "separation", "alone"]
    rows = [
        [", ".join(map(_short, names)), *(f"{share:.4f}" for share in shares)]
        for names, _, *shares in found.strongest(_COMBINATIONS).iter_rows()
    ]
    emit_table(heads, rows, right=[1, 2, 3])


def _short(name: str) -> str:
    long = sys.stdout.isatty() and len(name) > _LONGEST_NAME
    return f"{name[: _LONGEST_NAME - 1]}…" if long else name


def _row(summary: Summary) -> list[str]:
    column = summary.column
    role = column.role.value if column.role else "?"
    counts = [str(summary.distinct), str(summary.missing)]
    return [_short(column.name), summary.dtype, *counts, column.kind.value, role]


def _why(summary: Summary) -> str:
    reason, kind = summary.guess.role_reason, summary.guess.kind_reason
    if summary.column.role and summary.guess.confidence < 1:
        reason = f"{reason} ({summary.guess.confidence:.0%} sure)"
    reasons = [reason, *([kind] if kind != summary.guess.role_reason else []), *summary.notes()]
    return (f"{summary.column.label}: " if summary.column.label else "") + "; ".join(reasons)


def _format(source: str) -> str:
    return (
        Path(source).suffix.lower().removeprefix(".") if Path(source).is_file() else source.partition(":")[0]
    )


def in_bytes(size: float) -> str:
    """A size in the unit that people would use."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:  # noqa: PLR2004
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


# The starter plan -----------------------------------------------------------------------------------------


def starter(source: str, found: Overview, plan_path: Path, how: Mapping[str, Any], profile: str) -> str:
    """Write a plan to start from: what was found and why, what is required, a step that can reach it."""
    from sfumato.recipes import starter as starters
    from sfumato.recipes.profile import Profile

    data = _source(source, plan_path, {**found.reading, **how})
    used = Profile.of(profile)
    plan = starters.starter(found.schema, used, data)
    head = [
        "# A starter plan. Check the role of every column and the steps, then: sfumato check, sfumato run."
    ]
    undecided = found.schema.columns_without_role()
    if undecided:
        head.append(f"# Without a role, so treated as keys: {', '.join(map(_one_line, undecided))}")
    head.append(f"# The requirements are those of the profile {used.name}: `sfumato profiles {used.name}`.")
    head += [
        f"# `{_one_line(name)}` links records: remove it from `drop` to release it as a pseudonym."
        for name in plan.output.drop
    ]
    head += [f"# {_one_line(each)}" for each in used.left_out(found.schema)]
    if not plan.recipe.steps:
        head.append("# No step: this profile requires nothing of the records, or no column is a key.")
    return "\n".join([*head, "", _add_comments(plan.to_toml(), found)])


def _source(source: str, plan_path: Path, how: Mapping[str, Any]) -> Any:
    """The plan's data, and how they are read."""
    from sfumato.recipes.parts import Source

    path = source
    if Path(source).is_file():
        path = os.path.relpath(Path(source).resolve(), plan_path.resolve().parent)
    options = {name: {True: "yes", False: "no"}.get(value, value) for name, value in how.items()}
    return Source(path, **options)


def _add_comments(toml: str, found: Overview) -> str:
    """Put the reasons above what they are the reasons of."""
    comments = {_heading(summary.column.name): _comment(summary) for summary in found.columns}
    reasons = "; ".join(relation.reason for relation in found.relations)
    lines: list[str] = []
    for line in toml.splitlines():
        if line in comments:
            lines.append(f"# {_one_line(comments[line])}")
        elif line.startswith("related = ["):
            lines.append(f"# {_one_line(reasons)}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _comment(summary: Summary) -> str:
    if summary.column.role is None:
        from sfumato.data.schema import Role

        return f"role = {' | '.join(Role)}  — {_why(summary)}"
    return f"{summary.column.role}: {_why(summary)}"


def _heading(name: str) -> str:
    """The line with which a column's table begins in TOML."""
    import tomli_w

    lines: Sequence[str] = tomli_w.dumps({"columns": {name: {"kind": ""}}}).splitlines()
    return next(line for line in lines if line.startswith("[columns."))


def _one_line(text: str) -> str:
    """A text without line ends and other signs that a comment must not hold."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
