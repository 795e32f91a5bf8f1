"""Verify that the files of a release are unchanged, and that its plan reproduces them."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._options import json_option, quiet_option
from sfumato.cli._screen import emit_json, emit_table, running, say
from sfumato.errors import RequirementError, count_noun

_MEANING = {
    "identical": "reproduced from the original, byte for byte",
    "equal": "reproduced from the original, numbers equal within 1e-9",
    "unchanged": "same bytes as written; not reproduced",
    "different": "differs from what was released",
    "missing": "not found",
    "added": "not part of the release",
    "unchecked": "not in any complete list of checksums",
    "signature": "a signature of SHA256SUMS; not checked here",
    "grows": "a ledger that later releases add to; not checked",
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
        more = f" and {count_noun(len(wrong) - 1, 'more file')}" if len(wrong) > 1 else ""
        raise RequirementError(f"`{release}` is not as it was released: see `{wrong[0]}`{more} above")
