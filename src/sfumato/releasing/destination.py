"""Where a release goes, and writing it there: all its files together, or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sfumato.errors import PlanError, WriteError
from sfumato.io import Staging, check_format, check_writable, codebook, stage
from sfumato.recipes.parts import locate
from sfumato.recipes.plan import Plan
from sfumato.releasing.checksums import has_private_part
from sfumato.releasing.decide import Decision, record_override
from sfumato.releasing.load import reading_of
from sfumato.releasing.outcome import TableOutcome
from sfumato.releasing.pseudonym_keys import key_places
from sfumato.releasing.series import files_of_earlier
from sfumato.releasing.tau_argus import tau_argus_names
from sfumato.releasing.trail import LEDGER, TRAIL
from sfumato.releasing.write_trail import files_of, grown_ledger, trail_of


@dataclass(frozen=True)
class Destination:
    """Where every file of a release goes, what was read and is never overwritten, and whether others may be.

    ``also_read`` are files beside those that the plan names, such as the plan itself; ``pages`` are the
    places of texts that belong to the release. The private trail goes beside the release, or into a folder
    for what is ``private``.
    """

    plan: Plan
    overwrite: bool = False
    also_read: tuple[str | Path, ...] = ()
    private: Path | None = None
    pages: tuple[Path, ...] = ()

    @cached_property
    def places(self) -> Mapping[str, Path | str]:
        """Where each table goes: a file, or the address of a table in a database."""
        if not all(plan.output.path for plan in self.plan.parts.values()):
            raise PlanError("the plan names no output", hint='add path = "…" to its [output]')
        return {name: locate(plan.output.path, plan.folder) for name, plan in self.plan.parts.items()}

    def copies(self, name: str) -> list[Path | str]:
        """Where each copy of a release goes: one to its place, several to NAME.1.csv and the like."""
        place, count = self.places[name], self.plan.parts[name].output.copies
        if count == 1:
            return [place]
        if not isinstance(place, Path):
            raise PlanError("several copies must be written to files, got: a database")
        return [place.with_suffix(f".{copy}{place.suffix}") for copy in range(1, count + 1)]

    def files(self, name: str, tables: Iterable[str]) -> dict[str, Path | str]:
        """Where the tables of one release go: one to its place, several to NAME.qit.csv and the like."""
        place, names = self.copies(name)[0], list(tables)
        if len(names) == 1:
            return {names[0]: place}
        if not isinstance(place, Path):
            raise PlanError(
                f"a release of {len(names)} tables must be written to files, got: one table of a database",
                hint="name a file: each table goes to a file of that name with one word added",
            )
        return {each: place.with_name(f"{place.stem}.{each}{place.suffix}") for each in names}

    def counts(self, name: str) -> dict[str, Path]:
        """Where the tables of counts beside a release go: to NAME.TABLE.csv, whatever the release is."""
        place, counted = self.places[name], self.plan.parts[name].count_tables
        if not counted:
            return {}
        if not isinstance(place, Path):
            raise PlanError("tables of counts must be written to files, got: a database")
        return {each.name: place.with_name(f"{place.stem}.{each.name}.csv") for each in counted}

    def for_tau_argus(self, name: str) -> list[Path]:
        """Where tables that stay behind go for τ-ARGUS: beside the private trail."""
        asked = (each for each in self.plan.parts[name].count_tables if each.otherwise == "tau-argus")
        return [self.trail.with_name(file) for each in asked for file in tau_argus_names(each.name)]

    @property
    def trail(self) -> Path:
        """Where the private trail goes: beside the release; if that is no single file, beside the plan."""
        if self.private is not None:
            return self.private / TRAIL
        alone = self.places.get("")
        if isinstance(alone, Path):
            return alone.with_suffix(".private.json")
        return self.plan.folder / ("tables.private.json" if alone is None else "release.private.json")

    @property
    def ledger(self) -> Path:
        """Where the releases made here are noted, beside their trails."""
        return self.trail.with_name(LEDGER)

    @property
    def originals(self) -> list[str | Path]:
        """What must never be overwritten."""
        keys = (place for place in self.keys if place.exists())
        return codebook.with_codebooks([*self.plan.files.values(), *self.also_read, *keys, *self.earlier])

    @cached_property
    def earlier(self) -> list[Path]:
        """The files of earlier releases of the series."""
        return files_of_earlier(self.plan)

    @property
    def keys(self) -> tuple[Path, ...]:
        """Where the keys of pseudonyms are kept."""
        return tuple(dict.fromkeys(key_places(self.plan).values()))

    def check(self) -> None:
        """Raise now what writing would raise later, as if every table needed a codebook."""
        places = list(self.places.values())  # where several files go, no other release may have that name
        for name, part in self.plan.parts.items():
            check_format(self.places[name], guard=part.output.guard)
            if part.recipe.steps:
                places += self.files(name, part.recipe.steps[-1].method.table_names()).values()
            places += [*self.copies(name), *self.counts(name).values(), *self.for_tau_argus(name)]
        _require_no_release_folder(places)
        books = [each for place in places if isinstance(place, Path) for each in codebook.files_beside(place)]
        keys = (place for place in self.keys if not place.exists())
        taken = (self.trail, *keys, *books, *self.pages, *places)  # all, or the rest is lost
        for place in dict.fromkeys(taken):
            check_writable(place, originals=self.originals, overwrite=self.overwrite)


def _require_no_release_folder(places: Iterable[Path | str]) -> None:
    """A release folder is written as a whole: another file in it is not what its sums say."""
    for place in places:
        folder = place.parent if isinstance(place, Path) else None
        if folder is not None and any(has_private_part(each) for each in (folder, folder.parent)):
            raise WriteError(
                f"`{place}` is in a release folder, which can only be replaced as a whole",
                hint="`sfumato release PLAN --out FOLDER --overwrite` replaces it; or choose another `path`",
            )


def write_release(
    decision: Decision,
    destination: Destination,
    *,
    record: Mapping[str, Any] | None = None,
    pages: Mapping[Path, str] | None = None,
) -> list[Path | str]:
    """Write what was decided on, if it may leave: every table, the codebooks, one private trail for all.

    Nothing is written unless everything may be: a table alone would not link to the others, and without its
    trail it could not be made again. The trail keeps what the decision rests on: that nothing was required,
    or what someone has overridden and why, which the ledger of overrides keeps too. ``record`` is what else
    the trail shall keep; ``pages`` are texts that belong to the release, by their places. Returns what was
    written.
    """
    decision.require_leave()
    outcome = decision.outcome
    assert outcome is not None  # a file that came from elsewhere is not written again
    places = {name: destination.files(name, part.release.tables) for name, part in outcome.parts.items()}
    further = {name: destination.copies(name)[1:] for name in outcome.parts}
    with Staging(originals=destination.originals, overwrite=destination.overwrite) as staging:
        for name, part in outcome.parts.items():
            like = reading_of(part.plan)
            for table, place in places[name].items():
                stage(part.release.tables[table], place, staging, guard=part.plan.output.guard, like=like)
            for copy, place in zip(part.further, further[name], strict=True):
                stage(copy.table, place, staging, guard=part.plan.output.guard, like=like)
            _stage_tables_beside(part, name, destination, staging)
        trail = trail_of(outcome, places, staging.staged_files(), further=further)
        for place, page in (pages or {}).items():
            staging.write_text(place, page)
        judgement_record = {
            "unjudged": bool(outcome.unjudged_tables),
            **({"override": decision.to_dict()} if decision.override else {}),
            **files_of(destination.plan.folder, destination.trail, staging.staged_files()),
            **(record or {}),
        }
        text = json.dumps({**trail, **judgement_record}, indent=2, allow_nan=False)
        staging.write_text(destination.trail, text, private=True)
        for place, key in outcome.new_keys.items():  # never another's: its pseudonyms would be lost
            staging.write_text(place, key, private=True, replaces=False)
        tables = [place for each in places.values() for place in each.values() if isinstance(place, str)]
        written: list[Path | str] = [*tables, *staging.staged_files()]
        if grown_ledger(destination.ledger, outcome):
            staging.grow(destination.ledger, partial(grown_ledger, destination.ledger, outcome))
    if decision.override:
        record_override(decision, destination.trail.parent, sha256="")
    return written


def _stage_tables_beside(part: TableOutcome, name: str, destination: Destination, staging: Staging) -> None:
    """Make the tables ready that leave beside a release, and for τ-ARGUS those that do not."""
    guard, like = part.plan.output.guard, reading_of(part.plan)
    for table, place in destination.counts(name).items():
        if table in part.beside.tables:
            stage(part.beside.tables[table], place, staging, guard=guard, like=like)
    for file, text in part.beside.private.items():
        staging.write_text(destination.trail.with_name(file), text, private=True)
