"""List the release profiles, show one with its reasons, or write one to edit."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from sfumato.cli._options import json_option, overwrite_option, quiet_option
from sfumato.cli._screen import emit_json, emit_table, say
from sfumato.core.references import cite
from sfumato.recipes.profile import Profile


@click.command("profiles", help=__doc__, epilog="NAME is a profile, or the file of one.")
@click.argument("name", required=False)
@click.option("--write", type=click.Path(path_type=Path), help="Write the profile here, to edit.")
@overwrite_option
@json_option
@quiet_option
def command(name: str | None, *, write: Path | None, overwrite: bool, as_json: bool, quiet: bool) -> None:
    """List the profiles, or one of them."""
    if write is not None:
        from sfumato.io import write_text

        if name is None:
            raise click.UsageError("--write needs the NAME of the profile to start from.")
        profile = Profile.of(name)
        write_text(write, profile.text, overwrite=overwrite)
        say(f"written: {write}; use it with --profile {write}", quiet=quiet)
        return
    chosen = [Profile.named(each) for each in Profile.names()] if name is None else [Profile.of(name)]
    if as_json:
        emit_json([_said(profile) for profile in chosen] if name is None else _said(chosen[0]))
    elif name is None:
        rows = [[p.name, p.title, ", ".join(_short(p)) or "—", p.summary] for p in chosen]
        emit_table(["profile", "for a", "requires", "meaning"], rows)
    else:
        click.echo(_page(chosen[0]))


def _short(profile: Profile) -> list[str]:
    return [
        f"{each.requirement.measure} {each.requirement.sign} {each.requirement.level:g}"
        for each in profile.thresholds
    ]


def _said(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "title": profile.title,
        "summary": profile.summary,
        "scenarios": [
            {
                "name": each.name,
                "reason": each.reason,
                "roles": list(each.roles),
                "kinds": list(each.kinds),
                "columns": list(each.columns),
                "records": each.records,
                "membership": each.membership,
            }
            for each in profile.intruders
        ],
        "requirements": [
            {
                "require": str(each.requirement),
                "scenarios": list(each.scenarios) or [intruder.name for intruder in profile.intruders],
                "reason": each.reason,
                "references": list(each.references),
            }
            for each in profile.thresholds
        ],
        "report": [str(measure) for measure in profile.report],
        "rank_by": str(profile.rank_by) if profile.rank_by else None,
        "repeats": profile.repeats,
        "shuffle": profile.shuffle,
    }


def _page(profile: Profile) -> str:
    """A profile as a page of text."""
    parts = [f"{profile.title} ({profile.name})", _wrapped(profile.summary, indent=""), "", "Who might look"]
    for intruder in profile.intruders:
        parts += [f"  {intruder.name}", _wrapped(intruder.reason)]
    parts += ["", "What is required"]
    for threshold, short in zip(profile.thresholds, _short(profile), strict=True):
        against = ", ".join(threshold.scenarios) or "everyone"
        parts += [f"  {short}   (against {against})", _wrapped(threshold.reason)]
        parts += [_wrapped(cite(key)) for key in threshold.references]
    if not profile.thresholds:
        parts.append("  nothing of the records: identifiers are left out, and results are checked")
    if profile.report:
        parts += ["", "Worth reporting: " + ", ".join(str(measure) for measure in profile.report)]
    return "\n".join(parts)


def _wrapped(text: str, *, indent: str = "      ") -> str:
    return textwrap.fill(text, width=100, initial_indent=indent, subsequent_indent=indent)
