"""A release made for a profile: its verdict, the intruders it is judged against, and the information loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.recipes.parts import About
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.releasing import folder as places
from sfumato.releasing.checksums import PRIVATE
from sfumato.releasing.claims import claims_of
from sfumato.releasing.decide import Decision, decide
from sfumato.releasing.folder import ReleaseFolder
from sfumato.releasing.outcome import Judgement, PlanOutcome, TableOutcome
from sfumato.releasing.series import files_of_earlier
from sfumato.report.certificates import certificates_of
from sfumato.report.evidence_file import FIRST_PAGE, change_note, data_card, evidence_of, text_or_unknown
from sfumato.report.outcome import ReportContent, left_out_of, tell
from sfumato.report.page import as_json, page_of_evidence, twins, write_twins
from sfumato.study.column_sentences import sentences
from sfumato.tuning.tuning_result import TuningResult, describe


@dataclass(frozen=True)
class Released:
    """What `sfumato.release` gives: a release that meets the requirements of its profile, and the evidence.

    ``how`` says how the recipe was found, ``tuned`` what a search found on the way, ``decision`` why it may
    leave; ``about`` is what the owner says of a release of several tables, and ``source``
    the plan that was read, if one was. ``run`` holds the seed, which stays private. A release by a plan
    written by hand has no profile. What its report measures may take ``seconds``.
    """

    outcome: PlanOutcome
    profile: Profile | None
    how: str
    run: Run = field(repr=False)
    decision: Decision | None = None
    about: About = field(default_factory=About)
    source: Path | None = None
    tuned: TuningResult | None = field(default=None, repr=False)
    seconds: float = math.inf

    @property
    def part(self) -> TableOutcome:
        """The table that was released; of several the first."""
        return next(iter(self.outcome.parts.values()))

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
        plans = {name: part.plan for name, part in self.outcome.parts.items()}
        if "" in plans:
            return plans[""]
        return Plan(tables=plans, about=self.about, folder=self.part.plan.folder)

    @property
    def title(self) -> str:
        """What the release is called on its page."""
        named = self.plan.about.title
        profile = self.profile.title if self.profile else ""
        return named or (f"Release: {profile}" if profile else "Release by a plan")

    @property
    def verdict(self) -> str:
        """Whether the requirements are met, after the title of the profile and before what that is for."""
        judged = [each for each in self.outcome.judgements if each.requirement.can_fail]
        missed, unjudged = self.outcome.unmet, self.outcome.unjudged_tables
        about = f"{self.profile.title}. " if self.profile and self.profile.title else ""
        more = f" {self.profile.summary}" if self.profile and self.profile.summary else ""
        is_profile = self.profile is not None and self.profile.thresholds
        of = f"of the profile {self.profile.name}" if self.profile and is_profile else "of the plan"
        one, all_met = f"The requirement {of} is met", f"All {len(judged)} requirements {of} are met"
        sentence = one if len(judged) == 1 else all_met
        if without := len(self._left_out):
            sentence += f" ({without} more cannot be applied to these data, see the notes)"
        if missed:
            sentence = f"{missed} of {len(judged)} requirements {of} are not met"
            sentence += "; the owner has overridden this" if self.decision and self.decision.override else ""
        elif len(unjudged) == len(self.outcome.parts):
            sentence = "There is no requirement on risk" + ("" if about else ": the release is not judged")
        elif unjudged:
            sentence += "; some tables have no requirement on risk"
        if uncovered := self.outcome.coverage.sentence:
            more += f" {uncovered}."
        return f"{about}{sentence}.{more}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the owner should know, and what of the profile does not apply here, with the reason."""
        own = [f"{_of(name)}{note}" for name, part in self.outcome.parts.items() for note in part.notes]
        blocked = self.decision.findings if self.decision else ()
        return (*own, *self._left_out, *(f"overridden: {each.message}" for each in blocked))

    @property
    def _left_out(self) -> tuple[str, ...]:
        """What of the profile cannot be applied to these tables, each with the reason."""
        parts = self.outcome.parts.values()
        return tuple(dict.fromkeys(reason for part in parts for reason in left_out_of(self.profile, part)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known of the release, whatever was required of it."""
        parts = self.outcome.parts.items()
        return tuple(f"{_of(name)}{warning}" for name, part in parts for warning in part.warnings)

    def against(self) -> list[str]:
        """For each intruder which requirements are met, and with what score."""
        reasons = {each.name: each.reason for each in self.profile.intruders} if self.profile else {}
        sentences = []
        for table, part in self.outcome.parts.items():
            for name in dict.fromkeys(each.scenario for each in part.judgements):
                own = [each for each in part.judgements if each.scenario == name]
                met = "; ".join(_figures(each) for each in own)
                sentences.append(f"{_of(table)}{name}: {reasons.get(name, '')} {met}.".replace(":  ", ": "))
        return sentences

    def losses_by_column(self) -> list[str]:
        """What was lost, column by column."""
        parts = self.outcome.parts.items()
        return [_of(name) + each for name, part in parts for each in sentences(part.lost)]

    def sentences(self) -> list[str]:
        """All of it in words."""
        return [
            f"Result: {self.verdict}",
            *(f"Against {each}" for each in self.against()),
            f"Made by {'; '.join(self._recipes())} ({self.how}).",
            f"Information loss: {'; '.join(self.losses_by_column())}.",
            *(f"Note: {each}." for each in self.notes),
            *(f"WARNING: {each}." for each in self.warnings),
        ]

    def _recipes(self) -> list[str]:
        return [f"{_of(name)}{describe(part.plan.recipe)}" for name, part in self.outcome.parts.items()]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            **self.outcome.to_dict(),
            "profile": self.profile and self.profile.name,
            "verdict": self.verdict,
            "against": self.against(),
            "how": self.how,
            "notes": list(self.notes),
            "words": self.sentences(),
        }

    def to_frame(self) -> pl.DataFrame:
        """What became of each column, a row each."""
        return pl.DataFrame([loss.to_dict() for loss in self.part.lost])

    def to_polars(self) -> Any:
        """The protected table in polars, without identifiers."""
        return self.release.to_polars()

    def to_pandas(self) -> Any:
        """The protected table in pandas, without identifiers."""
        return self.release.to_pandas()

    def tell(self, *, generated: str = "") -> ReportContent:
        """Measure what its report shows; ``generated`` is its date."""
        about = {name: text_or_unknown(getattr(self.plan.about, name)) for name in FIRST_PAGE}
        head = {"title": self.title, "verdict": self.verdict, "how": self.how, "about": about}
        run = self.run if math.isinf(self.seconds) else self.run.with_deadline(self.seconds)
        return tell(self.outcome, self.profile, run, head, tuned=self.tuned, generated=generated)

    def report(
        self, path: str | Path, *, public: bool = False, overwrite: bool = False, generated: str = ""
    ) -> Path:
        """Write the page of the release, and its JSON twin beside it; the public form may be published."""
        content = self.tell(generated=generated)
        page, twin = content.page(public=public), content.to_dict(public=public)
        return write_twins(Path(path), page, twin, overwrite=overwrite)[0]

    def page(self, *, public: bool = False) -> str:
        """The page of the release."""
        return self.tell().page(public=public)

    def folder(self, place: str | Path, *, overwrite: bool = False) -> ReleaseFolder:
        """The folder that the release goes to, which must hold nothing that was read."""
        return folder_of(self.plan, place, overwrite=overwrite, source=self.source)

    def write(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write the release folder, with what leaves and what is private, whole and in one instant.

        What keeps it from leaving is raised, unless it was overridden.
        """
        decision = self.decision
        if decision is None:
            unjudged = self.profile is not None and not self.profile.thresholds
            decision = decide(self.outcome, subject=str(folder), unjudged=unjudged)
            decision.require_leave()
        place = self.folder(folder, overwrite=overwrite)
        content = self.tell(generated=datetime.now(UTC).date().isoformat())
        pages = partial(self._pages, content)
        return place.write(decision, self.plan, pages)

    def _pages(self, content: ReportContent, files: Mapping[str, str]) -> dict[str, str]:
        """The texts of the folder by their names; ``files`` are the hashes of the tables that leave."""
        public = content.flat(public=True)
        card = data_card(self.plan.about, public)
        pages = {places.CHANGE_NOTE: change_note(public), places.DATA_CARD: card}
        in_series = any(part.member for part in self.outcome.parts.values())
        claims = claims_of(self.outcome, self.plan)
        for home, is_public in (("", True), (f"{PRIVATE}/", False)):
            flat = content.flat(public=is_public)
            evidence = evidence_of(
                self.plan.about, flat, files, decision=self.decision, in_series=in_series, claims=claims
            )
            pages[home + places.REPORT] = content.page(public=is_public)
            pages[home + places.TWIN] = as_json(content.to_dict(public=is_public)) + "\n"
            pages[home + places.EVIDENCE_PAGE] = page_of_evidence(evidence)
            if not is_public and (proofs := certificates_of(content.tables.values())):
                evidence["identifiability"]["certificates"] = proofs
            pages[home + places.EVIDENCE] = as_json(evidence) + "\n"
        return pages

    def __repr__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        from sfumato.data.notebook import as_html

        return as_html(self.sentences(), self.to_frame())


def _figures(judgement: Judgement) -> str:
    """A requirement and what the release scores, in the digits that may be published."""
    requirement = judgement.requirement
    if not judgement.is_met:
        return f"{requirement.short} is not met"
    how = ", estimated" if requirement.is_estimated(judgement.score) else ""
    return f"{requirement.short} is met (score {requirement.worst(judgement.score):.3g}{how})"


def folder_of(
    plan: Plan, place: str | Path, *, overwrite: bool = False, source: Path | None = None
) -> ReleaseFolder:
    """The folder of a release of a plan; ``source`` is the plan's own file, if it has one."""
    read = [each for each in plan.files.values() if isinstance(each, Path)]
    read += files_of_earlier(plan)
    return ReleaseFolder(Path(place), overwrite=overwrite, originals=tuple(read), source=source)


def report_files(content: ReportContent, path: Path, *, public: bool) -> dict[Path, str]:
    """The page and its JSON twin, each by its place."""
    page, twin = twins(path)
    return {page: content.page(public=public), twin: as_json(content.to_dict(public=public)) + "\n"}


def _of(table: str) -> str:
    return f"{table}: " if table else ""
