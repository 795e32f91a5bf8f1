"""A release that was made for someone: what it is safe for, against whom, and what was lost, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.releasing.carry_out import Judgement, Outcome, Part
from sfumato.releasing.destination import Destination, write_release
from sfumato.report.page import page_of_release
from sfumato.study.losses import sentences
from sfumato.tuning.tuned import describe

#: The files of a release in its folder, beside the table and what is private.
PLAN, PAGE = "plan.toml", "report.html"


@dataclass(frozen=True)
class Released:
    """What `sfumato.release` gives: a release that meets what its profile requires, and all that tells so.

    ``how`` says how the recipe was found. ``run`` holds the seed, which stays private.
    """

    outcome: Outcome
    profile: Profile
    how: str
    run: Run = field(repr=False)

    @property
    def part(self) -> Part:
        """The one table that was released."""
        return self.outcome.parts[""]

    @property
    def release(self) -> Release:
        """The release itself."""
        return self.outcome.release

    @property
    def data(self) -> Any:
        """The protected table in the type that came in, without identifiers."""
        return self.release.data

    @property
    def plan(self) -> Plan:
        """The plan that makes the release: ``plan.to_toml()`` is what ``sfumato run`` takes."""
        return self.part.plan

    @property
    def verdict(self) -> str:
        """What it is safe for, in one sentence."""
        if not self.part.judgements:
            return f"{self.profile.title}: nothing is required of the records. {self.profile.summary}"
        count = len(self.part.judgements)
        return (
            f"{self.profile.title}: meets {'the requirement' if count == 1 else f'all {count} requirements'} "
            f"of the profile {self.profile.name}. {self.profile.summary}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the owner should know, and what of the profile does not apply here, with the reason."""
        left_out = self.profile.left_out(self.plan.schema) if self.plan.schema else ()
        return (*self.part.notes, *left_out)

    def against(self) -> list[str]:
        """Against whom it is safe, and by what number."""
        reasons = {each.name: each.reason for each in self.profile.intruders}
        said = []
        for name in dict.fromkeys(each.scenario for each in self.part.judgements):
            own = [each for each in self.part.judgements if each.scenario == name]
            met = "; ".join(_figures(each) for each in own)
            said.append(f"{name}: {reasons.get(name, '')} {met}.".replace(":  ", ": "))
        return said

    def lost(self) -> list[str]:
        """What was lost, column by column."""
        return sentences(self.part.lost)

    def sentences(self) -> list[str]:
        """All of it in words."""
        return [
            f"Safe for. {self.verdict}",
            *(f"Against {each}" for each in self.against()),
            f"Made by {describe(self.plan.recipe)} ({self.how}).",
            f"Lost: {'; '.join(self.lost())}.",
            *(f"Note: {each}." for each in self.notes),
            *(f"WARNING: {each}." for each in self.part.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "profile": self.profile.name,
            "verdict": self.verdict,
            "against": self.against(),
            "how": self.how,
            "notes": list(self.notes),
            "words": self.sentences(),
            **self.outcome.to_dict(),
        }

    def to_frame(self) -> pl.DataFrame:
        """What became of each column, a row each."""
        return pl.DataFrame([loss.to_dict() for loss in self.part.lost])

    def report(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page of the release."""
        from sfumato.io import write_text

        write_text(path, self.page(), overwrite=overwrite)
        return Path(path)

    def page(self, files: Sequence[str] = ()) -> str:
        """The page of the release, which names the files that lie beside it."""
        said = {loss.column: loss.sentence() for loss in self.part.lost}
        return page_of_release({**self.to_dict(), "by_column": said, "files": list(files)})

    def write(self, folder: str | Path, *, overwrite: bool = False, seeded: bool = False) -> list[Path | str]:
        """Write the table, its plan, its page and the private trail into a folder: all of them, or none."""
        place = Path(folder)
        plan = replace(self.plan, folder=place)
        destination = destination_of(plan, overwrite=overwrite)
        outcome = replace(self.outcome, parts={"": replace(self.part, plan=plan)})
        tables = destination.files("", self.release.tables).values()
        files = [*(Path(each).name for each in tables), PLAN, PAGE, destination.trail.name]
        pages = {place / PLAN: plan.to_toml(), place / PAGE: self.page(files)}
        how: dict[str, Any] = {"seeded": seeded, "unjudged": not plan.demands, "pages": pages}
        return write_release(outcome, destination, self.run, **how)

    def __repr__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        from sfumato.data.notebook import as_html

        return as_html(self.sentences(), self.to_frame())


def _figures(judgement: Judgement) -> str:
    """A requirement and what the release scores, in the digits that may be published."""
    requirement = judgement.requirement
    if not judgement.met:
        return f"{requirement.short} is not met"
    how = " (estimated)" if requirement.is_estimated(judgement.score) else ""
    return f"{requirement.short} is met with {requirement.worst(judgement.score):.3g}{how}"


def destination_of(plan: Plan, *, overwrite: bool) -> Destination:
    """Where the files of a release go: into the folder of its plan."""
    pages = (plan.folder / PLAN, plan.folder / PAGE)
    return Destination(plan, overwrite=overwrite, pages=pages)
