"""What the private trail of a release keeps, and the ledger of the releases that were made in a folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.core.release import Release
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.schema import Role
from sfumato.errors import ReadError
from sfumato.recipes.parts import fingerprint
from sfumato.releasing.outcome import PlanOutcome, TableOutcome
from sfumato.releasing.trail import FORMAT, environment, pack_rows
from sfumato.version import __version__


def trail_of(
    outcome: PlanOutcome,
    places: Mapping[str, Mapping[str, Path | str]],
    written: Mapping[Path, Path],
    *,
    further: Mapping[str, Sequence[Path | str]] | None = None,
) -> dict[str, Any]:
    """As a dictionary for JSON; ``written`` says where the file for each place lies now.

    ``further`` are the places of other copies of a release.
    """
    payload = {name: _trail_of_part(part, places[name], written) for name, part in outcome.parts.items()}
    for name, others in (further or {}).items():
        copies = zip(outcome.parts[name].further, others, strict=True)
        if others:
            payload[name]["further"] = [
                {**_rows_of(copy), "output": _file(place, written)} for copy, place in copies
            ]
    chance = outcome.randomness
    return {
        **(payload[""] if "" in payload else {"tables": payload, "dangling": dict(outcome.dangling)}),
        "trail": FORMAT,
        "sfumato": __version__,
        "seed": f"{chance.seed:032x}",
        "seed_given": chance.is_given,
        "person_seed": f"{chance.seed_of_persons:032x}",
        "environment": environment(),
    }


def _trail_of_part(
    part: TableOutcome, places: Mapping[str, Path | str], written: Mapping[Path, Path]
) -> dict[str, Any]:
    outputs = {table: _file(place, written) for table, place in places.items()}
    files = {path: there for path, there in part.plan.files.items() if isinstance(there, Path)}
    return {
        **part.to_dict(),
        "plan": part.plan.to_dict(),
        "inputs": {path: fingerprint(there) for path, there in files.items()},
        "contents": part.original.digest.hex(),  # of the records, wherever they came from
        **_private_tables(part.release),
        **_rows_of(part.release),
        **({} if part.member is None else {"series": part.member.private_facts(part.original, part.release)}),
        "synthetic": part.release.synthetic,
        "output": next(iter(outputs.values())),  # whose rows these are
        **({} if part.release.plain else {"joined": _table_links(part.release, outputs)}),
    }


def _file(place: Path | str, written: Mapping[Path, Path]) -> dict[str, str]:
    if not isinstance(place, Path):
        return {"name": place}
    return {"name": place.name, "sha256": fingerprint(written[place])}


def _rows_of(release: Release) -> dict[str, str]:
    """Whose each record is, from 0."""
    return {} if release.source_rows is None else {"rows": pack_rows(release.source_rows)}


def _table_links(release: Release, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """By what the tables of a release are joined, and which columns stand apart from their records."""
    layout = release.layout or ReleaseLayout()
    return {
        "apart": [list(group) for group in layout.bucketed_columns],
        "moved": {
            name: pack_rows(rows) for name, rows in layout.moved.items() if name in release.first.schema
        },
        "files": {
            name: {
                **outputs[name],
                "keys": list(layout.keys.get(name, ())),
                "counts": list(table.schema.with_role(Role.WEIGHT)) if table is not release.first else [],
                **({"rows": pack_rows(layout.sources[name])} if name in layout.sources else {}),
            }
            for name, table in release.tables.items()
        },
    }


def files_of(folder: Path, trail: Path, written: Mapping[Path, Path]) -> dict[str, Any]:
    """What a trail keeps of the files that leave: the folder of their plan, and a fingerprint of each.

    Paths are as they are seen from the trail, so that a folder may move.
    """

    def seen(path: Path) -> str:
        return Path(os.path.relpath(path, trail.parent)).as_posix()

    files = {seen(place): fingerprint(there) for place, there in written.items()}
    return {"folder": seen(folder), "written": files}


def _private_tables(release: Release) -> dict[str, Any]:
    """The tables that steps, numbered from 1, confide of all records or of a stratum."""
    artifacts = [
        {
            "step": number,
            **({"stratum": dict(zip(taken.within, each.stratum, strict=True))} if each.stratum else {}),
            **{name: table.frame.to_dict(as_series=False) for name, table in each.tables.items()},
        }
        for number, taken in enumerate(release.provenance, start=1)
        for each in taken.byproducts.private_artifacts
    ]
    return {"fitted": artifacts} if artifacts else {}


def earlier_releases(ledger: Path, outcome: PlanOutcome) -> int:
    """How many releases of the same data with other chance were made here: of several, noise averages out."""
    now, found = _ledger_lines(outcome), 0
    try:
        for entry in map(json.loads, _ledger_text(ledger).splitlines()):
            found += any(
                entry["contents"] == each["contents"] and entry["chance"] != each["chance"]
                and set(entry["columns"]) & set(each["columns"])
                for each in now
            )  # fmt: skip
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReadError(
            f"the ledger of releases `{ledger}` has a damaged line",
            hint="it records earlier noise for the same data: restore it, or move it away if not needed",
        ) from None
    return found


def grown_ledger(ledger: Path, outcome: PlanOutcome) -> str:
    """The private ledger with what leaves now to chance: the data, the columns and methods, when."""
    lines = _ledger_lines(outcome)
    return "".join([_ledger_text(ledger), *(json.dumps(line) + "\n" for line in lines)]) if lines else ""


def _ledger_text(ledger: Path) -> str:
    return ledger.read_text(encoding="utf-8") if ledger.is_file() else ""


def _ledger_lines(outcome: PlanOutcome) -> list[dict[str, Any]]:
    """A line for each table that has chance in it; the seed only as a fingerprint."""
    made = []
    for part in outcome.parts.values():
        # In a series chance hangs on its secret, and is no other in the next release.
        secret = f"{outcome.randomness.seed:032x}" if part.member is None else part.member.series.secret.hex()
        chance = hashlib.sha256(secret.encode()).hexdigest()
        steps = [
            (taken, step)
            for taken, step in zip(part.release.provenance, part.plan.recipe.steps, strict=False)
            if step.method.randomness.stochastic
        ]
        if steps:
            made.append(
                {
                    "date": datetime.now(UTC).date().isoformat(),
                    "contents": part.original.digest.hex(),
                    "methods": [taken.method for taken, _ in steps],
                    "columns": sorted({name for taken, _ in steps for name in taken.columns}),
                    "chance": chance,
                }
            )
    return made
