"""The folder of a release: what leaves, and in ``private`` what stays; whole, in one instant.

It is put together beside its place and takes its name by one rename; one that is there already is exchanged
for it, and only if nothing in it is anybody else's (see `sfumato.io.Staging`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.errors import PlanError, WriteError
from sfumato.io import Staging, addresses, check_format
from sfumato.recipes.parts import fingerprint
from sfumato.recipes.plan import Plan
from sfumato.releasing.checksums import (
    CHECK,
    CHECK_LATTICE,
    CHECK_ORIGINAL,
    OVERRIDES,
    PRIVATE,
    SUMS,
    contents,
    is_release_folder,
    states_of,
    sums_of,
)
from sfumato.releasing.claims import read_script
from sfumato.releasing.decide import Decision
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.mappings import is_mapping, mapping_files
from sfumato.releasing.tau_argus import is_tau_argus
from sfumato.releasing.trail import LEDGER, PLAN, TRAIL

REPORT, TWIN, EVIDENCE, EVIDENCE_PAGE = "report.html", "report.json", "evidence.json", "evidence.html"
CHANGE_NOTE, DATA_CARD = "change-note.md", "data-card.md"

#: What every release writes into its private part; the rest of that (keys, ledgers) outlives a release.
_WRITTEN = frozenset(
    {PLAN, REPORT, TWIN, EVIDENCE, EVIDENCE_PAGE, TRAIL, SUMS, CHECK_ORIGINAL, CHECK_LATTICE}
)
#: Names that no table may have.
_TAKEN = frozenset({REPORT, TWIN, EVIDENCE, EVIDENCE_PAGE, CHANGE_NOTE, DATA_CARD, CHECK, SUMS, PRIVATE})

#: Gives the texts of a release by their names in the folder, once the hash of each released file is known.
Pages = Callable[[Mapping[str, str]], Mapping[str, str]]


@dataclass(frozen=True)
class ReleaseFolder:
    """The place of a release folder.

    ``originals`` are files that were read: none of them may lie in a folder that is overwritten, except that
    the plan of the folder itself may be the ``source`` of what takes its place.
    """

    place: Path
    overwrite: bool = False
    originals: tuple[Path, ...] = ()
    source: Path | None = None

    @property
    def real(self) -> Path:
        """The place, links followed."""
        return self.place.resolve()

    @property
    def ledger(self) -> Path:
        """Where the releases that were made here are noted."""
        return self.real / PRIVATE / LEDGER

    def check(self, plan: Plan) -> None:
        """Raise now what writing would raise later: no long search ends in front of a locked door."""
        self._require_free()
        for name, part in self.plan_in_private(plan).parts.items():
            check_format(self.real / PRIVATE / part.output.path, guard=part.output.guard)
            Destination(plan.parts[name]).copies("")
        self._require_keys(plan)
        staging = Staging(overwrite=self.overwrite)
        try:
            staging.folder(self.real)
        finally:
            staging.discard()

    def plan_in_private(self, plan: Plan) -> Plan:
        """The plan as it lies in the private part, from where its release is one folder up."""
        home = self.real / PRIVATE
        moved = plan.seen_from(home)
        names = {name: _file_name(part) for name, part in moved.parts.items()}
        if len(set(names.values())) < len(names):
            raise PlanError("two tables have the same file name: each needs its own in a release folder")
        parts = {
            name: replace(part, output=replace(part.output, path=f"../{names[name]}"))
            for name, part in moved.parts.items()
        }
        return replace(moved, tables=parts) if plan.tables else parts[""]

    def write(self, decision: Decision, plan: Plan, pages: Pages) -> list[Path]:
        """Write the whole folder of what was decided on, if it may leave, and say what is in it."""
        decision.require_leave()
        self._require_free()
        self._require_keys(plan)
        placed = self.plan_in_private(plan)
        with Staging(overwrite=self.overwrite) as staging:
            fresh = staging.folder(self.real)
            self._carry_over(fresh)
            self._write_tables(decision, _in(placed, fresh / PRIVATE))
            hashes = {name: fingerprint(fresh / name) for name in _public(fresh)}
            texts = {f"{PRIVATE}/{PLAN}": placed.to_toml(), **pages(hashes), **_mappings(decision)}
            owners = {f"{PRIVATE}/{name}": read_script(name) for name in (CHECK_ORIGINAL, CHECK_LATTICE)}
            texts |= {CHECK: read_script(CHECK), **owners}
            with Staging() as inner:
                for name, text in texts.items():
                    inner.write_text(fresh / name, text, private=name.startswith(f"{PRIVATE}/"))
            _write_sums(fresh)
            self._require_free()  # others may have been here meanwhile
        return [self.place / name for name in contents(self.real)]

    def _write_tables(self, decision: Decision, plan: Plan) -> None:
        home, outcome = plan.folder, decision.outcome
        assert outcome is not None  # a folder is made of what was carried out
        parts = {name: replace(part, plan=plan.parts[name]) for name, part in outcome.parts.items()}
        keys = {self._in_fresh(path, home.parent): key for path, key in outcome.new_keys.items()}
        moved = replace(decision, outcome=replace(outcome, parts=parts, new_keys=keys))
        write_release(moved, Destination(plan, private=home))

    def _in_fresh(self, path: Path, fresh: Path) -> Path:
        real = path.resolve()
        return fresh / real.relative_to(self.real) if real.is_relative_to(self.real) else path

    def _carry_over(self, fresh: Path) -> None:
        """Make the private part, with what outlives a release: ledgers, and keys of pseudonyms."""
        home = fresh / PRIVATE
        home.mkdir(mode=0o700)
        there = self.real / PRIVATE
        for path in sorted(there.iterdir()) if there.is_dir() else ():
            if path.name not in _WRITTEN and not is_mapping(path.name) and not is_tau_argus(path.name):
                shutil.copy2(path, home / path.name)

    def _require_free(self) -> None:
        """Raise unless nothing is there, or what may be overwritten and is nobody else's."""
        place, real = self.place, self.real
        if not real.parent.is_dir():
            raise WriteError(f"Folder not found: {place.parent}")
        if real.exists() and not real.is_dir():
            raise WriteError(f"`{place}` is a file, not a folder", hint="name a folder with --out")
        if Path.cwd().is_relative_to(real):
            raise WriteError(
                f"`{place}` is the folder you are in, and a release replaces its folder as a whole",
                hint="name a new folder with --out",
            )
        if not real.exists() or not any(real.iterdir()):
            return
        if not self.overwrite:
            raise WriteError(
                f"`{place}` exists already and is not empty",
                hint="choose another name, or replace it with --overwrite (in Python overwrite=True)",
            )
        if not is_release_folder(real):
            raise WriteError(
                f"`{place}` is not overwritten: it is not a release folder",
                hint="name a new folder with --out",
            )
        self._require_ours(real)

    def _require_ours(self, real: Path) -> None:
        for original in self.originals:
            if original.resolve().is_relative_to(real):
                raise WriteError(
                    f"`{self.place}` is not overwritten: it contains the input `{original}`",
                    hint="name a new folder with --out",
                )
        own = self.source.resolve() if self.source else None
        for name, state in states_of(real).items():
            if state == "signature":
                raise WriteError(
                    f"`{self.place}` is not overwritten: it is signed by `{name}`",
                    hint="move the signature away first: it belongs to the release that is there",
                )
            if state in {"added", "different", "unchecked"} and real / name != own:
                what = "is not part of its release" if state == "added" else "was changed after the release"
                raise WriteError(
                    f"`{self.place}` is not overwritten: `{name}` {what}",
                    hint="move it away first, or name a new folder with --out",
                )

    def _require_keys(self, plan: Plan) -> None:
        """A key of pseudonyms may lie in the private part of the folder, never beside what leaves."""
        for key in Destination(plan).keys:
            real = key.resolve()
            if real.is_relative_to(self.real) and real.parent != self.real / PRIVATE:
                raise WriteError(
                    f"the key `{key}` is among the files that are released in `{self.place}`",
                    hint=f"keep it elsewhere, or in {self.place / PRIVATE}",
                )


def _mappings(decision: Decision) -> dict[str, str]:
    """The mapping tables of what leaves, by their names in the folder: they stay."""
    assert decision.outcome is not None  # a folder is made of what was carried out
    return {f"{PRIVATE}/{name}": text for name, text in mapping_files(decision.outcome).items()}


def _file_name(plan: Plan) -> str:
    """What the file of a table is called: as its plan says, in whatever folder that may be."""
    path = plan.output.path
    if addresses.is_address(path):
        raise PlanError(
            "a release folder needs a file as its output, got: a table of a database",
            hint="`sfumato run` writes into databases; or name a file in [output]",
        )
    name = Path(path).name
    if name in _TAKEN or not name.isprintable() or "\\" in name:
        raise PlanError(f"a release folder cannot have a table called `{name}`", hint="choose another `path`")
    return name


def _in(plan: Plan, folder: Path) -> Plan:
    tables = {name: replace(part, folder=folder) for name, part in plan.tables.items()}
    return replace(plan, tables=tables, folder=folder)


def _public(folder: Path) -> list[str]:
    return [name for name in contents(folder) if not name.startswith(f"{PRIVATE}/")]


def _write_sums(folder: Path) -> None:
    """Write both lists: that of what leaves, then that of everything, the first list too."""
    with Staging() as staging:
        staging.write_text(folder / SUMS, sums_of(folder, _public(folder)))
    listed = [name for name in contents(folder) if name != f"{PRIVATE}/{OVERRIDES}"]
    with Staging() as staging:
        text = sums_of(folder, listed, seen_from=PRIVATE)
        staging.write_text(folder / PRIVATE / SUMS, text, private=True)
