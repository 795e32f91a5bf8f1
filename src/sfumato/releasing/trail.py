"""The private half of the audit trail: what was done to which files, in what environment, by what seed."""

from __future__ import annotations

import json
import platform
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.randomness import ByPlace
from sfumato.data.table import Table
from sfumato.errors import ParameterError, ReadError
from sfumato.kernels.arrays import Ints
from sfumato.recipes.parts import fingerprint
from sfumato.recipes.plan import Plan
from sfumato.releasing.checksums import PRIVATE
from sfumato.version import __version__

#: The form of trails that this version writes; one of a later form it cannot read.
FORMAT = 4
#: What trail and plan are called in the private part of a release folder, and the ledger anywhere.
TRAIL, PLAN, LEDGER = "trail.private.json", "plan.toml", "releases.private.jsonl"
#: Rows of more records are no text, which would take more memory than the release; and what marks them.
_MAX_ROWS_AS_TEXT, _PARQUET = 100_000, "parquet:"
#: Packages whose version may change a number.
_NUMBER_MAKERS = ("numpy", "polars", "numba", "scipy", "pot")


def source_rows_of_file(release: Path, original: Table) -> tuple[Ints | None, bool]:
    """Which original record each one of a released file comes from, by its private trail.

    None if there is no trail of just this file and these originals; and whether it says that they are
    nobody's.
    """
    part = trail_of_file(release, original)
    if part is None or part["output"]["sha256"] != fingerprint(release):
        return None, False
    return read_rows(part) if "rows" in part else None, bool(part.get("synthetic"))


def pack_rows(rows: Ints) -> str:
    """Whose the rows of a file are, as a trail keeps it: as numbers; of many records as a file of Parquet."""
    if len(rows) <= _MAX_ROWS_AS_TEXT:
        return " ".join(map(str, rows))
    file = BytesIO()
    pl.DataFrame({"row": rows}).write_parquet(file, compression="zstd", statistics=False)
    return _PARQUET + b64encode(file.getbuffer()).decode("ascii")


def read_rows(payload: Mapping[str, Any]) -> Ints:
    """Whose the rows of a file are, as the trail says it."""
    text = payload["rows"]
    if not text.startswith(_PARQUET):
        return np.array([int(row) for row in text.split()], dtype=np.int64)
    try:
        rows = pl.read_parquet(BytesIO(b64decode(text.removeprefix(_PARQUET), validate=True)))["row"]
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise ValueError("the rows of a trail are damaged") from error
    return rows.cast(pl.Int64).to_numpy()


def trail_paths(release: Path) -> list[Path]:
    """Where the private trail of a released file may lie: beside it, or in the private part of its folder."""
    names = [
        release.with_suffix(".private.json"),
        release.with_name("tables.private.json"),
        release.with_suffix("").with_suffix(".private.json"),  # of several tables or copies: NAME.qit.csv
        release.parent / PRIVATE / TRAIL,
    ]
    return [place for place in dict.fromkeys(names) if place.is_file()]


def trails_in(place: Path) -> list[Path]:
    """The private trails of a release: of a folder all that are there, of a file its own."""
    if place.name.endswith(".private.json"):
        found = [place] if place.is_file() else []
    elif place.is_dir():
        inside = place / PRIVATE / TRAIL
        found = [inside] if inside.is_file() else sorted(place.glob("*.private.json"))
    else:
        found = trail_paths(place)[:1]
    if not found:
        raise ReadError(
            f"`{place}` has no private trail of a release",
            hint="the trail is called NAME.private.json; its owner needs it to verify the release",
        )
    return found


def trail_of_file(release: Path, original: Table) -> dict[str, Any] | None:
    """What the private trail of a released file says of it; None if there is none of it."""
    for part, _, _ in _parts_telling_of(release):
        if part["contents"] == original.digest.hex():
            return part
    return None


def plan_of_file(release: str | Path) -> tuple[Plan, Path] | None:
    """The plan by which a file was released, and the private trail that keeps it; None if there is none."""
    place = Path(release)
    for part, trail, folder in _parts_telling_of(place) if place.is_file() else ():
        if "plan" in part:
            return Plan.from_dict(part["plan"], folder=folder), trail
    return None


def plan_of_trail(trail: Path) -> Plan:
    """The plan for one table by which a release was made, as its private trail keeps it."""
    payload = read_trail(trail)
    if "plan" not in payload:
        raise ReadError(f"`{trail}` must be the trail of a plan for one table, got: another")
    return Plan.from_dict(payload["plan"], folder=trail.parent / payload.get("folder", ""))


def _parts_telling_of(release: Path) -> Iterator[tuple[dict[str, Any], Path, Path]]:
    """What private trails say of a released file, each with the trail and the folder of its plan."""
    for trail in trail_paths(release):
        try:
            text = json.loads(trail.read_text(encoding="utf-8"))
            folder = trail.parent / text.get("folder", "")
            for part in text.get("tables", {"": text}).values():
                files = [part["output"], *part.get("joined", {"files": {}})["files"].values()]
                if fingerprint(release) in {each["sha256"] for each in files}:
                    yield part, trail, folder
                for copy in part.get("further", ()):
                    if copy["output"]["sha256"] == fingerprint(release):
                        yield {**part, **copy}, trail, folder
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # a file of that name that is no trail


def environment() -> dict[str, str]:
    """Say the versions of everything that may change a number."""
    found = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    for package in _NUMBER_MAKERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def randomness_of(trail: Path, plan: Plan | None = None) -> ByPlace:
    """Read out of a private audit trail where the chance of its release came from.

    A ``plan`` that would be followed with it must have no step whose chance the seed does not repeat.
    """
    steps = [name for part in (plan.parts.values() if plan else ()) for name in part.recipe.unrepeatable]
    if steps:
        raise ParameterError(
            f"a replay cannot repeat the noise of {', '.join(dict.fromkeys(steps))}",
            hint="that noise must not be repeatable: `sfumato verify` compares fingerprints instead",
        )
    return randomness_of_trail(read_trail(trail))


def randomness_of_trail(payload: Mapping[str, Any]) -> ByPlace:
    """Where chance came from, as a trail tells it; of earlier versions one seed keyed persons too."""
    seed, given = int(payload["seed"], 16), bool(payload["seed_given"])
    return ByPlace(seed, is_given=given, person_seed=int(payload.get("person_seed", payload["seed"]), 16))


def read_trail(trail: Path) -> dict[str, Any]:
    """Read a private audit trail, which holds at least its seed."""
    try:
        payload: dict[str, Any] = json.loads(trail.read_text(encoding="utf-8"))
        randomness_of_trail(payload), int(payload.get("trail", 1))
    except (OSError, ValueError, KeyError, TypeError, ParameterError, RecursionError):
        raise ReadError(
            f"`{trail}` is not the private audit trail of a run: it has no seed",
            hint="the trail is beside the release, as NAME.private.json, or in private/ of its folder",
        ) from None
    if int(payload.get("trail", 1)) > FORMAT:
        raise ReadError(
            f"`{trail}` was written by a later version than sfumato {__version__}",
            hint="read it with the version that wrote it, or a newer one",
        )
    return payload
