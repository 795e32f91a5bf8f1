"""Verify a release: its files are what was written, and its plan makes them again."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._options import json_option, quiet_option
from sfumato.cli._screen import emit_json, emit_table, running, say
from sfumato.errors import RequirementError

_MEANING = {
    "identical": "made again from the original, byte for byte",
    "equal": "made again from the original, numbers equal to 1e-9",
    "unchanged": "has the bytes that were written; not made again",
    "different": "is not what was released",
    "missing": "is not there",
    "added": "is none of the release",
    "unchecked": "is in no list that is whole",
    "signature": "a signature of SHA256SUMS; not checked here",
    "grows": "a ledger that others add to; not checked",
}


@click.command("verify", help=__doc__, epilog="RELEASE is a folder, a released file or a private trail.")
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--original", help="The original, if it is not where the plan looks for it.")
@json_option
@quiet_option
def command(release: Path, *, original: str | None, as_json: bool, quiet: bool) -> None:
    """Verify a release."""
    from sfumato.releasing.verify import verify_release

    with running(quiet=quiet, seed=None) as run:
        found = verify_release(release, run, original=original)
    if as_json:
        emit_json({str(place): each.to_dict() for place, each in found.items()})
    else:
        rows = [
            [name, state, _MEANING[state]] for each in found.values() for name, state in each.files.items()
        ]
        emit_table(["file", "state", ""], rows)
    for each in found.values():
        for note in each.notes:
            say(f"note: {note}", quiet=quiet)
    wrong = [name for each in found.values() for name in each.wrong]
    if wrong:
        named = f"`{wrong[0]}`" + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else "")
        raise RequirementError(f"`{release}` must be what was released, got: {named}, which is not")
