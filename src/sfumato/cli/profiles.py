"""List the release profiles, show one with its reasons, or write a copy to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._options import json_option, overwrite_option, quiet_option
from sfumato.cli._screen import emit_json, emit_text, say
from sfumato.core.references import cite
from sfumato.recipes.profile import Profile


@click.command("profiles", help=__doc__, epilog="NAME is a profile or a profile file.")
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
        say(f"written: {write}; use it with --for {write}", quiet=quiet)
        return
    chosen = [Profile.load(each) for each in Profile.names()] if name is None else [Profile.of(name)]
    if as_json:
        emit_json(
            [_profile_dict(profile) for profile in chosen] if name is None else _profile_dict(chosen[0])
        )
    elif name is None:
        for profile in chosen:
            click.echo(f"{click.style(profile.name, bold=True)}: {profile.title.lower()}")
            emit_text(profile.summary, indent=2)
            alone, in_series = (", ".join(_short(profile, series=each)) for each in (False, True))
            more = f"; in a series also {in_series}" if in_series else ""
            emit_text(f"Requires {alone or 'nothing of the records'}{more}.", indent=2)
        click.echo("\n`sfumato profiles NAME` gives the reasons; with --write FILE it writes a copy to edit.")
    else:
        _show(chosen[0])


def _short(profile: Profile, *, series: bool) -> list[str]:
    return [each.requirement.short for each in profile.thresholds if each.series is series]


def _profile_dict(profile: Profile) -> dict[str, Any]:
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
                "series": each.series,
            }
            for each in profile.thresholds
        ],
        "report": [str(measure) for measure in profile.report],
        "rank_by": str(profile.rank_by) if profile.rank_by else None,
        "repeats": profile.repeats,
        "shuffle": profile.shuffle,
    }


def _show(profile: Profile) -> None:
    """Write a profile as a page of text."""
    click.echo(f"{profile.title} ({profile.name})")
    emit_text(profile.summary)
    click.echo("\nIntruders considered")
    for intruder in profile.intruders:
        emit_text(intruder.name, indent=2)
        emit_text(intruder.reason, indent=6)
    click.echo("\nRequirements")
    for threshold in profile.thresholds:
        whom = ", ".join(threshold.scenarios) or "every intruder"
        short, when = threshold.requirement.short, ", in a series of releases" if threshold.series else ""
        emit_text(f"{short}   (against {whom}{when})", indent=2)
        for text in (threshold.reason, *map(cite, threshold.references)):
            emit_text(text, indent=6)
    if not profile.thresholds:
        emit_text("None on the records: direct identifiers are removed, and results are checked.", indent=2)
    if profile.report:
        click.echo("")
        emit_text("Measures to report: " + ", ".join(str(measure) for measure in profile.report))
