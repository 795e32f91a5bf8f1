"""A release that was made for someone: what it is safe for, against whom, and what was lost, in words."""

from __future__ import annotations

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
from sfumato.report.outcome import Told, tell
from sfumato.report.page import as_json, twins
from sfumato.study.losses import sentences
from sfumato.tuning.tuned import Tuned, describe

#: The files of a release in its folder, beside the table and what is private.
PLAN, PAGE, TWIN = "plan.toml", "report.html", "report.json"
#: The report for the owner.
OWN_PAGE, OWN_TWIN = "private-report.html", "private-report.json"


@dataclass(frozen=True)
class Released:
    """What `sfumato.release` gives: a release that meets what its profile requires, and all that tells so.

    ``how`` says how the recipe was found, ``tuned`` what a search found on the way. ``run`` holds the seed,
    which stays private. A release by a plan that somebody wrote has no profile.
    """

    outcome: Outcome
    profile: Profile | None
    how: str
    run: Run = field(repr=False)
    tuned: Tuned | None = field(default=None, repr=False)

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
    def title(self) -> str:
        """What the release is called on its page."""
        return f"Release: {self.profile.title}" if self.profile else "Release by a plan"

    @property
    def verdict(self) -> str:
        """What it is safe for, in one sentence."""
        count, unmet = len(self.outcome.judgements), self.outcome.unmet
        about = f"{self.profile.title}: " if self.profile else ""
        more = f" {self.profile.summary}" if self.profile and self.profile.summary else ""
        if not count:
            said = "nothing is required of the records"
            return f"{about}{said if about else said.capitalize() + ', so nobody has judged it'}.{more}"
        of = f"of the profile {self.profile.name}" if self.profile else "of the plan"
        what = "the requirement" if count == 1 else f"all {count} requirements"
        said = f"meets {what} {of}" if not unmet else f"{unmet} of {count} requirements {of} are not met"
        return f"{about}{said if about else said.capitalize()}.{more}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the owner should know, and what of the profile does not apply here, with the reason."""
        return (*self.part.notes, *self.left_out(self.part))

    def left_out(self, part: Part) -> tuple[str, ...]:
        """What of the profile does not apply to a table, with the reason."""
        return self.profile.left_out(part.plan.schema) if self.profile and part.plan.schema else ()

    def against(self) -> list[str]:
        """Against whom it is safe, and by what number."""
        reasons = {each.name: each.reason for each in self.profile.intruders} if self.profile else {}
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
            "profile": self.profile and self.profile.name,
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

    def tell(self, *, generated: str = "") -> Told:
        """Measure what its report shows; of ``generated``, a date, it tells."""
        return tell(self, run=self.run, generated=generated)

    def report(
        self, path: str | Path, *, public: bool = False, overwrite: bool = False, generated: str = ""
    ) -> Path:
        """Write the page of the release, and its JSON twin beside it; the public form may be given out."""
        from sfumato.io.atomic import Staging

        told = self.tell(generated=generated)
        with Staging(originals=(), overwrite=overwrite) as staging:
            for place, text in report_files(told, Path(path), public=public).items():
                staging.write_text(place, text)
        return Path(path)

    def page(self, *, public: bool = False) -> str:
        """The page of the release."""
        return self.tell().page(public=public)

    def write(self, folder: str | Path, *, overwrite: bool = False, seeded: bool = False) -> list[Path | str]:
        """Write the table, its plan, its reports and the private trail into a folder: all, or none."""
        place = Path(folder)
        plan = replace(self.plan, folder=place)
        destination = destination_of(plan, overwrite=overwrite)
        outcome = replace(self.outcome, parts={"": replace(self.part, plan=plan)})
        told = self.tell()
        pages = {
            place / PLAN: plan.to_toml(),
            **report_files(told, place / PAGE, public=True),
            **report_files(told, place / OWN_PAGE, public=False),
        }
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
    pages = tuple(plan.folder / name for name in (PLAN, PAGE, TWIN, OWN_PAGE, OWN_TWIN))
    return Destination(plan, overwrite=overwrite, pages=pages)


def report_files(told: Told, path: Path, *, public: bool) -> dict[Path, str]:
    """The page and its JSON twin, each by its place."""
    page, twin = twins(path)
    return {page: told.page(public=public), twin: as_json(told.to_dict(public=public)) + "\n"}
