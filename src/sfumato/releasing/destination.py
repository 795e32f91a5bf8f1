"""Write what the owner's protocol has accepted: the release, and the private half of its audit trail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.release import reordered
from sfumato.core.run import Run
from sfumato.data.schema import Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, RequirementError, WriteError
from sfumato.io import addresses, check_writable, write, write_text
from sfumato.io.formats import format_of
from sfumato.recipes.plan import Output, fingerprint
from sfumato.releasing.carry_out import environment
from sfumato.releasing.postprocess import finish
from sfumato.study.protocol import Protocol
from sfumato.version import __version__


@dataclass(frozen=True)
class Destination:
    """Where a release goes, beside which original, and what stays behind."""

    path: str
    source: str
    drop: tuple[str, ...] = ()
    shuffle: bool = True
    overwrite: bool = False
    others: tuple[str, ...] = ()  # further files that were read, such as a plan or a hierarchy

    @property
    def originals(self) -> list[str]:
        """What must never be overwritten."""
        return [*([] if self.source.startswith("builtin:") else [self.source]), *self.others]

    @property
    def private(self) -> Path:
        """Where the private half of the audit trail goes."""
        named = Path("release.csv" if addresses.is_address(self.path) else self.path)
        return named.with_suffix(".private.json")

    def check(self) -> None:
        """Raise now what writing would raise later."""
        if not addresses.is_address(self.path):
            format_of(Path(self.path), error=WriteError)
        for place in (self.path, self.private):
            check_writable(place, originals=self.originals, overwrite=self.overwrite)

    def check_columns(self, schema: Schema) -> None:
        """Raise if a name would be released, or nothing at all."""
        named = [
            name
            for name in schema.with_role(Role.IDENTIFIER)
            if name not in self.drop and not schema[name].pseudonym
        ]
        if named:
            listed = ", ".join(f"`{name}`" for name in named)
            raise PlanError(
                f"no identifier may be left in a protected file, got: {listed}",
                hint=f"leave it out with --drop {','.join(named)}, or correct its role in a plan",
            )
        if set(schema.names) <= set(self.drop):
            raise ParameterError("at least one column must be left, got: all are dropped")


def write_accepted(
    protocol: Protocol, original: Table, place: Destination, run: Run, *, seeded: bool = False
) -> tuple[str | Path, Path]:
    """Write an accepted release and its private trail; return where. One refused is never written."""
    if protocol.release is None:
        raise RequirementError(f"a release must be accepted to be written, got: {protocol.reason}")
    place.check_columns(original.schema)
    place.check()
    release = finish(protocol.release, original, Output(drop=place.drop), run).release
    if place.shuffle:
        order = run.at(original.digest).rng("shuffle").permutation(len(release.table))
        release = reordered(release, order)
    write(release.table, place.path, originals=place.originals, overwrite=place.overwrite)
    file = None if addresses.is_address(place.path) else Path(place.path)
    known = [path for path in place.originals if not addresses.is_address(path)]
    trail = {
        "sfumato": __version__,
        "protocol": protocol.to_dict(),
        "records": len(release.table),
        "columns": list(release.table.names),
        "steps": [step.to_dict() for step in release.provenance],
        "inputs": {path: fingerprint(Path(path)) for path in known},
        "contents": original.digest.hex(),
        "output": {"name": file.name, "sha256": fingerprint(file)} if file else {"name": place.path},
        "seed": f"{run.seed:032x}",
        "seed_given": seeded,
        "environment": environment(),
    }
    text = json.dumps(trail, indent=2, allow_nan=False)
    write_text(place.private, text, originals=place.originals, overwrite=place.overwrite, private=True)
    return place.path, place.private
