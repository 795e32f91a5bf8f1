"""Verifies a release: its files are those that were written, and its plan still makes them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import PlanError, ReadError, RequirementError, SfumatoError, trouble_with
from sfumato.io import addresses
from sfumato.io import read as read_frame
from sfumato.io.journal import settle
from sfumato.io.stdin import STDIN
from sfumato.recipes.parts import fingerprint
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.checksums import CHECK, PRIVATE, State, is_release_folder, states_of
from sfumato.releasing.checksums import state_of as _state
from sfumato.releasing.decide import decide_reproduced
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.pseudonym_keys import key_places
from sfumato.releasing.series import trails_of, with_absolute_paths
from sfumato.releasing.trail import TRAIL, environment, randomness_of_trail, read_trail, trails_in
from sfumato.version import __version__

#: Numbers that differ by less count as equal.
TOLERANCE = 1e-9

#: What a file of a release must not be.
_WRONG = frozenset({"different", "missing", "added", "unchecked"})


@dataclass(frozen=True)
class VerificationReport:
    """What became of each file of a release, and why it was not made again where it was not.

    ``identical`` and ``equal`` (numbers to 1e-9) are files that were made again from the original;
    ``unchanged`` ones have the bytes that were written, and were not made again; ``missing``, ``different``
    and ``added`` ones are not what was released, and ``unchecked`` is what a damaged list no longer tells of.
    """

    files: Mapping[str, State]
    notes: tuple[str, ...] = ()

    @property
    def wrong(self) -> list[str]:
        """The files that are not what was released."""
        return [name for name, state in self.files.items() if state in _WRONG]

    @property
    def holds(self) -> bool:
        """Whether every file is what was released."""
        return not self.wrong

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {"holds": self.holds, "files": dict(self.files), "notes": list(self.notes)}


def verify_release(place: Path, run: Run, *, original: str | None = None) -> dict[Path, VerificationReport]:
    """Verify a release folder, a folder of releases, one released file, or what a private trail tells of.

    Files are named as they are seen from the release folder, or from their trail.
    """
    settle(place.absolute().parent)  # a release that was killed while it was written is there, or is not
    folder = next((each for each in _folders_of(place) if is_release_folder(each)), None)
    if folder is not None:
        return {folder: verify_folder(folder, run, original=original)}
    return {trail: verify(trail, run, original=original) for trail in trails_in(place)}


def _folders_of(place: Path) -> tuple[Path, ...]:
    """The folders that a place may stand for: itself, or where a released file or its trail lies."""
    if place.is_dir():
        return (place.parent, place) if place.name == PRIVATE else (place,)
    return (place.parent.parent,) if place.name == TRAIL else (place.parent,)


def verify_folder(folder: Path, run: Run, *, original: str | None = None) -> VerificationReport:
    """Hash every file of a release folder, and make its tables again where trail and original are at hand.

    Without its private part, what leaves is compared with the list that leaves with it.
    """
    try:
        states = states_of(folder)
    except OSError as error:
        raise ReadError(f"cannot read the folder `{folder}`: {trouble_with(error)}") from None
    notes = [
        f"`{name}` is a signature, which sfumato does not check: ask the person who made it how to"
        for name, state in states.items()
        if state == "signature"
    ]
    trail, name = folder / PRIVATE / TRAIL, f"{PRIVATE}/{TRAIL}"
    if name not in states:
        return VerificationReport(
            states, (f"the tables were not made again: `private` is not here{_claims(folder)}", *notes)
        )
    if states[name] != "unchanged":
        why = f"the tables were not made again: `{name}` is {states[name]}"
        return VerificationReport(states, (why, *notes))
    made = verify(trail, run, original=original)
    again = {posixpath.normpath(f"{PRIVATE}/{each}"): state for each, state in made.files.items()}
    reported = {each: state for each, state in again.items() if states.get(each) not in _WRONG}
    return VerificationReport({**states, **reported}, (*made.notes, *notes))


def _claims(folder: Path) -> str:
    """How the claims can be checked nevertheless."""
    return f"; `python3 {CHECK}` in the folder recomputes its claims" if (folder / CHECK).is_file() else ""


def verify(trail: Path, run: Run, *, original: str | None = None) -> VerificationReport:
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
    payload, folder = read_trail(trail), trail.parent
    if "written" not in payload:
        raise ReadError(
            f"`{trail}` does not list its files: an older version wrote it",
            hint="reproduce the release with `sfumato run PLAN --replay TRAIL`",
        )
    states: dict[str, State] = {name: _state(folder / name, sha) for name, sha in payload["written"].items()}
    reason = _differing_versions(payload)
    try:
        plan = _plan_of(payload, folder, original)
        with TemporaryDirectory(prefix="sfumato-verify-") as fresh:
            seeded = replace(run, randomness=randomness_of_trail(payload))
            made = _reproduce_release(plan, Path(fresh), seeded, payload)
            for name, state in states.items():
                if state != "missing" and (again := made.get((folder / name).resolve())) is not None:
                    states[name] = _compare_file(folder / name, again, state)
    except _NotMade as why:
        return VerificationReport(states, (f"the tables were not made again: {why}", *reason))
    return VerificationReport(states, tuple(reason))


class _NotMade(Exception):  # noqa: N818  — it is a reason, and never leaves this file
    pass


def _differing_versions(payload: Mapping[str, Any]) -> list[str]:
    then, now = payload.get("environment", {}), environment()
    then, now = {"sfumato": payload.get("sfumato", ""), **then}, {"sfumato": __version__, **now}
    other = [f"{n} {then[n]} then, {now[n]} now" for n in now if then.get(n, now[n]) != now[n]]
    return [f"versions differ: {'; '.join(other)}"] if other else []


def _plan_of(payload: Mapping[str, Any], folder: Path, original: str | None) -> Plan:
    """The plan that the trail keeps, for the original it was followed on."""
    parts = payload.get("tables", {"": payload})
    plans = {name: part["plan"] for name, part in parts.items()}
    spec = {"tables": plans} if "tables" in payload else payload["plan"]
    plan = Plan.from_dict(spec, folder=folder / payload["folder"])
    if original is not None:
        if plan.tables:
            raise PlanError("--original works for a plan of one table, got: several tables")
        plan = replace(plan, data=plan.source_at(str(Path(original).absolute())))
    for part in plan.parts.values():
        if part.recipe.unrepeatable:
            raise _NotMade("a step draws new noise each time, so that its noise cannot be removed")
        if original is None and (part.data is None or part.data.path == STDIN):
            raise _NotMade("the plan names no file; give the original with --original")
        gone = [path for path, place in part.files.items() if isinstance(place, Path) and not place.is_file()]
        if part.data is not None and part.data.path in gone and original is None:
            raise _NotMade("the original is not where the plan expects it; give it with --original")
        if any(source.path in gone for source in part.resources.values()):
            raise _NotMade("another file is not where the plan expects it")
        try:
            trails_of(part)
        except ReadError:
            raise _NotMade("an earlier release of the series is not where the plan expects it") from None
    if not all(place.is_file() for place in key_places(plan).values()):
        raise _NotMade("the key of the pseudonyms is not where the plan expects it")
    return plan


def _reproduce_release(plan: Plan, fresh: Path, run: Run, payload: Mapping[str, Any]) -> dict[Path, Path]:
    """The files of the release, made again in a fresh folder, by where the released ones lie."""
    if any(addresses.is_address(part.output.path) for part in plan.parts.values()):
        raise _NotMade("the release went into a database")
    homes, parts = dict[Path, Path](), dict[str, Plan]()
    for number, (name, part) in enumerate(plan.parts.items()):
        home, place = fresh / str(number), part.folder / part.output.path
        home.mkdir()
        homes[home] = place.parent
        output = replace(part.output, path=str(home / place.name))
        parts[name] = replace(with_absolute_paths(part), output=output)
    plan = replace(plan, tables=parts) if plan.tables else parts[""]
    contents = {part["contents"] for part in payload.get("tables", {"": payload}).values()}

    def the_same(_plan: Plan, table: Table, _run: Run) -> None:
        if table.digest.hex() not in contents:
            raise ReadError(
                "this is not the original that was released: its records differ",
                hint="give the right file with --original",
            )

    try:
        outcome = carry_out(plan, run, before=the_same)
        destination = Destination(replace(plan, folder=fresh), private=fresh)
        write_release(decide_reproduced(outcome, payload), destination)
    except RequirementError as error:
        raise _NotMade(error.message) from None
    return {(was / path.name).resolve(): path for home, was in homes.items() for path in home.iterdir()}


def _compare_file(there: Path, again: Path, state: State) -> State:
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
