"""Find the original number behind a pseudonym; this needs the data and the key."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._options import json_option, plan_argument
from sfumato.cli._screen import emit_json, emit_table
from sfumato.errors import DataError, count_noun


@click.command("lookup", help=__doc__)
@plan_argument
@click.argument("pseudonyms", metavar="PSEUDONYM...", nargs=-1, required=True)
@click.option(
    "--trail", type=click.Path(path_type=Path),
    help="The private audit trail of the release, if its pseudonyms have no key of their own.",
)  # fmt: skip
@json_option
def command(plan_path: Path, pseudonyms: tuple[str, ...], *, trail: Path | None, as_json: bool) -> None:
    """Look back."""
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.pseudonym_lookup import look_up
    from sfumato.releasing.trail import TRAIL, randomness_of

    own = plan_path.with_name(TRAIL)  # of a release folder, where plan and trail lie together
    trail = own if trail is None and own.is_file() else trail
    secret = None if trail is None else randomness_of(trail).person_secret
    found = look_up(Plan.read(plan_path), pseudonyms, secret=secret)
    lost = sum(not places for places in found.values())
    if as_json:
        emit_json({name: [list(place) for place in places] for name, places in found.items()})
    elif lost < len(found):
        rows = [[name, where, number] for name, places in found.items() for where, number in places]
        emit_table(("pseudonym", "column", "number"), rows)
    if lost:
        raise DataError(
            f"not found in the plan's data: {lost} of {count_noun(len(found), 'pseudonym')}",
            hint="they may come from other data, or from another key or trail",
        )
