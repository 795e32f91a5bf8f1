"""Verifies a release: its files are those that were written, and its plan still makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import polars as pl
from polars.testing import assert_frame_equal

from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import PlanError, ReadError, RequirementError, SfumatoError
from sfumato.io import read as read_frame
from sfumato.recipes.plan import Plan, fingerprint
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.series import anchored, trails_of
from sfumato.releasing.trail import environment, read_trail, seed_of

#: Numbers that differ by less count as equal.
TOLERANCE = 1e-9

State = Literal["identical", "equal", "different", "missing", "unchanged"]


@dataclass(frozen=True)
class Verified:
    """What became of each file of a release, and why it was not made again where it was not.

    ``identical`` and ``equal`` (numbers to 1e-9) are files that were made again from the original;
    ``unchanged`` ones have the bytes that were written, and were not made again; ``missing`` and
    ``different`` ones are not what was released.
    """

    files: Mapping[str, State]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every file is what was released."""
        return not any(state in {"different", "missing"} for state in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {"holds": self.holds, "files": dict(self.files), "notes": list(self.notes)}


def trails_in(place: Path) -> list[Path]:
    """The private trails of a release: of a folder all that are there, of a file its own."""
    if place.name.endswith(".private.json"):
        found = [place] if place.is_file() else []
    elif place.is_dir():
        found = sorted(place.glob("*.private.json"))
    else:
        found = [each for each in (place.with_suffix(".private.json"),) if each.is_file()]
    if not found:
        raise ReadError(
            f"`{place}` must be a release with its private trail, got: none there",
            hint="the trail is called NAME.private.json; only who has it can verify the release",
        )
    return found


def verify(trail: Path, run: Run, *, original: str | None = None) -> Verified:
    """Hash every file that a trail tells of, and make the tables again where the original is at hand.

    Parameters
    ----------
    trail
        The private audit trail.
    run
        Whose progress is told; the seed is that of the trail.
    original
        The original, where it is not where the plan looks for it.
    """
    said, folder = read_trail(trail), trail.parent
    if "written" not in said:
        raise ReadError(
            f"`{trail}` must tell which files left with it, got: the trail of an older version",
            hint="`sfumato run PLAN --replay TRAIL` makes the release again",
        )
    states: dict[str, State] = {name: _state(folder / name, sha) for name, sha in said["written"].items()}
    reason = _differing_versions(said)
    try:
        plan = _plan_of(said, folder, original)
        with TemporaryDirectory(prefix="sfumato-verify-") as fresh:
            made = _made_again(plan, Path(fresh), replace(run, seed=seed_of(trail)[0]), said)
            for name, state in states.items():
                if state != "missing" and (again := made.get(Path(name).name)) is not None:
                    states[name] = _compared(folder / name, again, state)
    except _NotMade as why:
        return Verified(states, (f"the tables were not made again: {why}", *reason))
    return Verified(states, tuple(reason))


class _NotMade(Exception):  # noqa: N818  — it is a reason, and never leaves this file
    pass


def _state(place: Path, sha256: str) -> State:
    if not place.is_file():
        return "missing"
    return "unchanged" if fingerprint(place) == sha256 else "different"


def _differing_versions(said: Mapping[str, Any]) -> list[str]:
    then, now = said.get("environment", {}), environment()
    other = [f"{name} {then[name]} then, {now[name]} now" for name in now if then.get(name, "") != now[name]]
    return [f"made by other versions: {'; '.join(other)}"] if other else []


def _plan_of(said: Mapping[str, Any], folder: Path, original: str | None) -> Plan:
    """The plan that the trail keeps, for the original it was followed on."""
    parts = said.get("tables", {"": said})
    told = (
        {"tables": {name: part["plan"] for name, part in parts.items()}} if "tables" in said else said["plan"]
    )
    plan = Plan.from_dict(told, folder=folder / said["folder"])
    if original is not None:
        if plan.tables:
            raise PlanError("--original must be of a plan for one table, got: several tables")
        plan = replace(plan, data=plan.source_at(str(Path(original).absolute())))
    for part in plan.parts.values():
        if part.recipe.unrepeatable:
            raise _NotMade("a step never repeats itself, so that nobody can take its noise away")
        if original is None and part.data is not None and not _is_there(part):
            raise _NotMade("the original is not where the plan looks for it; name it with --original")
        try:
            trails_of(part)
        except ReadError:
            raise _NotMade("an earlier release of the series is not where the plan looks for it") from None
    return plan


def _is_there(plan: Plan) -> bool:
    return all(not isinstance(place, Path) or place.is_file() for place in plan.files.values())


def _made_again(plan: Plan, fresh: Path, run: Run, said: Mapping[str, Any]) -> dict[str, Path]:
    """The files of the release, made again in a fresh folder, by their names."""
    parts = {
        name: replace(
            anchored(part), output=replace(part.output, path=str(fresh / Path(part.output.path).name))
        )
        for name, part in plan.parts.items()
    }
    plan = replace(plan, tables=parts) if plan.tables else parts[""]
    contents = {part["contents"] for part in said.get("tables", {"": said}).values()}

    def the_same(_plan: Plan, table: Table, _run: Run) -> None:
        if table.digest.hex() not in contents:
            raise ReadError(
                "the original must be the one that was released, got: other records",
                hint="name the right file with --original",
            )

    if any("?" in part.output.path for part in parts.values()):
        raise _NotMade("it went into a database")
    try:
        outcome = carry_out(plan, run, before=the_same)
        how: dict[str, Any] = {"unjudged": said.get("unjudged", False)}
        write_release(outcome, Destination(replace(plan, folder=fresh)), run, **how)
    except RequirementError as error:
        raise _NotMade(error.message) from None
    return {path.name: path for path in fresh.iterdir() if ".private." not in path.name}


def _compared(there: Path, again: Path, state: State) -> State:
    """How a file of the release compares to the same one made again."""
    if fingerprint(there) == fingerprint(again):
        return "identical"
    return "equal" if state == "unchanged" and _same_values(there, again) else "different"


def _same_values(there: Path, again: Path) -> bool:
    try:
        left, right = read_frame(there), read_frame(again)
        assert_frame_equal(left, right, check_exact=False, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except (AssertionError, SfumatoError, pl.exceptions.PolarsError):
        return False
    return True
