"""The private half of the audit trail: what was done to which files, in what environment, by what seed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import ParameterError, ReadError
from sfumato.kernels.arrays import Ints
from sfumato.recipes.plan import Plan, fingerprint
from sfumato.releasing.sums import PRIVATE
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.releasing.carry_out import Outcome, Part

#: The form of trails that this version writes; one of a later form it cannot read.
FORMAT = 2
#: What the trail is called in the private part of a release folder, and the ledger of releases anywhere.
TRAIL, LEDGER = "trail.private.json", "releases.private.jsonl"
#: Packages whose version may change a number.
_NUMBER_MAKERS = ("numpy", "polars", "numba", "scipy", "pot")


def trail_of(
    outcome: Outcome,
    places: Mapping[str, Mapping[str, Path | str]],
    written: Mapping[Path, Path],
    run: Run,
    *,
    seeded: bool = False,
    further: Mapping[str, Sequence[Path | str]] | None = None,
) -> dict[str, Any]:
    """As a dictionary for JSON; ``written`` says where the file for each place lies now.

    ``further`` are the places of other copies of a release.
    """
    said = {name: _trail_of_part(part, places[name], written) for name, part in outcome.parts.items()}
    for name, others in (further or {}).items():
        copies = zip(outcome.parts[name].further, others, strict=True)
        if others:
            said[name]["further"] = [
                {**_rows_of(copy), "output": _file(place, written)} for copy, place in copies
            ]
    return {
        **(said[""] if "" in said else {"tables": said, "dangling": dict(outcome.dangling)}),
        "trail": FORMAT,
        "sfumato": __version__,
        "seed": f"{run.randomness.seed:032x}",
        "seed_given": seeded,
        "environment": environment(),
    }


def _trail_of_part(
    part: Part, places: Mapping[str, Path | str], written: Mapping[Path, Path]
) -> dict[str, Any]:
    outputs = {table: _file(place, written) for table, place in places.items()}
    files = {path: there for path, there in part.plan.files.items() if isinstance(there, Path)}
    return {
        **part.to_dict(),
        "plan": part.plan.to_dict(),
        "inputs": {path: fingerprint(there) for path, there in files.items()},
        "contents": part.original.digest.hex(),  # of the records, wherever they came from
        **_confided(part.release),
        **_rows_of(part.release),
        **({} if part.member is None else {"series": part.member.confided(part.original, part.release)}),
        "synthetic": part.release.synthetic,
        "output": next(iter(outputs.values())),  # whose rows these are
        **({} if part.release.plain else {"joined": _joined(part.release, outputs)}),
    }


def _file(place: Path | str, written: Mapping[Path, Path]) -> dict[str, str]:
    if not isinstance(place, Path):
        return {"name": place}
    return {"name": place.name, "sha256": fingerprint(written[place])}


def _rows_of(release: Release) -> dict[str, str]:
    """Whose each record is, from 0."""
    return {} if release.source_rows is None else {"rows": _listed(release.source_rows)}


def _joined(release: Release, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """By what the tables of a release are joined, and which columns stand apart from their records."""
    return {
        "apart": [list(group) for group in release.apart],
        "moved": {
            name: _listed(rows) for name, rows in release.moved.items() if name in release.first.schema
        },
        "files": {
            name: {
                **outputs[name],
                "keys": list(release.keys.get(name, ())),
                "counts": list(table.schema.with_role(Role.WEIGHT)) if table is not release.first else [],
                **({"rows": _listed(release.sources[name])} if name in release.sources else {}),
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

    return {
        "folder": seen(folder),
        "written": {seen(place): fingerprint(there) for place, there in written.items()},
    }


def _confided(release: Release) -> dict[str, Any]:
    """The tables that steps, numbered from 1, confide of all records or of a stratum."""
    said = [
        {
            "step": number,
            **({"stratum": dict(zip(taken.within, each.stratum, strict=True))} if each.stratum else {}),
            **{name: table.frame.to_dict(as_series=False) for name, table in each.tables.items()},
        }
        for number, taken in enumerate(release.provenance, start=1)
        for each in taken.confided
    ]
    return {"fitted": said} if said else {}


def earlier_releases(ledger: Path, outcome: Outcome, run: Run) -> int:
    """How many releases of the same data with other chance were made here: of several, noise averages out."""
    now, found = _ledger_lines(outcome, run), 0
    try:
        for said in map(json.loads, _kept(ledger).splitlines()):
            found += any(
                said["contents"] == each["contents"] and said["chance"] != each["chance"]
                and set(said["columns"]) & set(each["columns"])
                for each in now
            )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        raise ReadError(
            f"`{ledger}` must be the ledger of releases of this folder, got: a damaged line",
            hint="put it away if nobody needs it: it tells that noise was drawn for the same data before",
        ) from None
    return found


def grown_ledger(ledger: Path, outcome: Outcome, run: Run) -> str:
    """The private ledger with what leaves now to chance: the data, the columns and methods, when."""
    lines = _ledger_lines(outcome, run)
    return "".join([_kept(ledger), *(json.dumps(line) + "\n" for line in lines)]) if lines else ""


def _kept(ledger: Path) -> str:
    return ledger.read_text(encoding="utf-8") if ledger.is_file() else ""


def _ledger_lines(outcome: Outcome, run: Run) -> list[dict[str, Any]]:
    """A line for each table that has chance in it; the seed only as a fingerprint."""
    made = []
    for part in outcome.parts.values():
        # In a series chance hangs on its secret, and is no other in the next release.
        secret = f"{run.randomness.seed:032x}" if part.member is None else part.member.series.secret.hex()
        chance = hashlib.sha256(secret.encode()).hexdigest()
        steps = [
            (taken, step)
            for taken, step in zip(part.release.provenance, part.plan.recipe.steps, strict=False)
            if step.method.stochastic
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


def rows_kept(release: Path, original: Table) -> tuple[Ints | None, bool]:
    """Which original record each one of a released file comes from, by its private trail.

    None if there is no trail of just this file and these originals; and whether it says that they are
    nobody's.
    """
    part = part_kept(release, original)
    if part is None or part["output"]["sha256"] != fingerprint(release):
        return None, False
    return read_rows(part) if "rows" in part else None, bool(part.get("synthetic"))


def _listed(rows: Ints) -> str:
    return " ".join(map(str, rows))


def read_rows(said: Mapping[str, Any]) -> Ints:
    """Whose the rows of a file are, as the trail says it."""
    return np.array([int(row) for row in said["rows"].split()], dtype=np.int64)


def trails_beside(release: Path) -> list[Path]:
    """Where the private trail of a released file may lie: beside it, or in the private part of its folder."""
    names = [
        release.with_suffix(".private.json"),
        release.with_name("tables.private.json"),
        release.with_suffix("").with_suffix(".private.json"),  # of several tables or copies: NAME.qit.csv
        release.parent / PRIVATE / TRAIL,
    ]
    return [place for place in dict.fromkeys(names) if place.is_file()]


def part_kept(release: Path, original: Table) -> dict[str, Any] | None:
    """What the private trail of a released file says of it; None if there is none of it."""
    for trail in trails_beside(release):
        try:
            said = json.loads(trail.read_text(encoding="utf-8"))
            for part in said.get("tables", {"": said}).values():
                if part["contents"] != original.digest.hex():
                    continue
                files = [part["output"], *part.get("joined", {"files": {}})["files"].values()]
                found: dict[str, Any] = part
                if fingerprint(release) in {each["sha256"] for each in files}:
                    return found
                for copy in part.get("further", ()):
                    if copy["output"]["sha256"] == fingerprint(release):
                        return {**found, **copy}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # a file of that name that is no trail
    return None


def environment() -> dict[str, str]:
    """Say the versions of everything that may change a number."""
    found = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }
    for package in _NUMBER_MAKERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def seed_of(trail: Path, plan: Plan | None = None) -> tuple[int, bool]:
    """Read the seed out of a private audit trail, and whether someone had chosen it.

    A ``plan`` that would be followed with it must have no step whose chance the seed does not repeat.
    """
    steps = [name for part in (plan.parts.values() if plan else ()) for name in part.recipe.unrepeatable]
    if steps:
        raise ParameterError(
            f"a replay must have chance that a seed repeats, got: {', '.join(dict.fromkeys(steps))}",
            hint="its noise must not be repeatable: `sfumato verify` compares fingerprints",
        )
    said = read_trail(trail)
    return int(said["seed"], 16), bool(said["seed_given"])


def read_trail(trail: Path) -> dict[str, Any]:
    """Read a private audit trail, which holds at least its seed."""
    try:
        said: dict[str, Any] = json.loads(trail.read_text(encoding="utf-8"))
        int(said["seed"], 16), bool(said["seed_given"]), int(said.get("trail", 1))
    except (OSError, ValueError, KeyError, TypeError):
        raise ReadError(
            f"`{trail}` must be the private audit trail of an earlier run, got: a file without its seed",
            hint="it is written beside the release as NAME.private.json, or in private/ of its folder",
        ) from None
    if int(said.get("trail", 1)) > FORMAT:
        raise ReadError(
            f"`{trail}` must be a trail that sfumato {__version__} can read, got: one of a later version",
            hint="read it with the version of sfumato that wrote it, or a newer one",
        )
    return said
