"""The report of one release, for its owner and for the public: as data, and as a page that needs no network.

The public form is built from nothing: what is not in `_public` is not in it. It shows what was done and what
was lost; parameters, seeds, records, small counts and every risk stay with the owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core import registry
from sfumato.core.budget import PrivacyBudget
from sfumato.core.measure import Measure, Score
from sfumato.core.release import Provenance
from sfumato.core.run import Run
from sfumato.data.dominance import hides_each
from sfumato.data.persons import persons_of
from sfumato.data.scenario import CONTROL
from sfumato.kernels.arrays import Ints
from sfumato.recipes.parts import fingerprint, locate
from sfumato.recipes.profile import Profile
from sfumato.releasing.budget_coverage import BudgetCoverage
from sfumato.releasing.outcome import Judgement, PlanOutcome, TableOutcome, tally
from sfumato.releasing.prepare import ACCEPTED, ANSWERED, GUESSED
from sfumato.report.alternatives import rejected_candidates
from sfumato.report.class_sizes import class_sizes
from sfumato.report.content import about_people, pictured_tables, public_loss, suppressed_columns
from sfumato.report.correlations import correlations
from sfumato.report.distributions import distributions
from sfumato.report.exposure import (
    attribute_exposure,
    combinations,
    gauges,
    individual_risks,
    losses_strip,
    strip,
)
from sfumato.report.fates import centres_of
from sfumato.report.group_scores import group_scores
from sfumato.report.mosaics import mosaics
from sfumato.report.page import page_of_release
from sfumato.report.recipients import THREATS, meant_for, recipients
from sfumato.report.release_scores import ReleaseScores, is_number, measure_release
from sfumato.report.score_entry import measure_title, score_entry
from sfumato.report.words import DOMINATED, finite, plain
from sfumato.study.column_sentences import ColumnSentence
from sfumato.tuning.tuning_result import TuningResult
from sfumato.version import __version__

#: So many columns are drawn, those that changed most first.
_MOST_DRAWN = 24
#: What happened to columns that are drawn: all that are there and not as they were.
_DRAWN = frozenset({"changed", "emptied", "made anew"})
#: The status of a number that would disclose a person's value.
_SUPPRESSED = "suppressed"
#: The key of the release among the tables that are drawn.
RELEASE = "release"
_NO_CONTROL = (
    "there is no control group. Add `--control 0.2` (or control = 0.2 under [data] in the plan): every fifth "
    "person is held out, the recipe is applied to the others and both groups are attacked, so that general "
    "knowledge is not counted as disclosure; the release itself is still made from everyone"
)


def tell(
    outcome: PlanOutcome,
    profile: Profile | None,
    run: Run,
    head: Mapping[str, Any],
    *,
    tuned: TuningResult | None = None,
    generated: str = "",
) -> ReportContent:
    """Measure all that the report of a release shows, once for all its forms.

    ``head`` is its title and verdict, how the recipe was found, and what its owner says of it;
    ``tuned`` what a search found on the way;
    ``generated`` is a date or another word on the making.
    """
    found = {
        name: measure_release(part, run.at("table", name) if name else run, profile)
        for name, part in outcome.parts.items()
    }
    return ReportContent(found, profile, head, tuned, generated)


@dataclass(frozen=True)
class ReportContent:
    """The report of a release: ``to_dict`` as data for JSON, ``page`` as HTML; in two forms."""

    tables: Mapping[str, ReleaseScores] = field(repr=False)
    profile: Profile | None
    head: Mapping[str, Any]
    tuned: TuningResult | None = field(repr=False)
    generated: str = ""

    def to_dict(self, *, public: bool) -> dict[str, Any]:
        """The JSON twin: one table is flat, several tables are each under their name."""
        return self._public if public else self._internal

    def page(self, *, public: bool) -> str:
        """The page: all it shows is in its twin, which it holds."""
        return page_of_release(self.to_dict(public=public))

    @cached_property
    def _coverage(self) -> BudgetCoverage:
        return BudgetCoverage.joint({name: found.part.coverage for name, found in self.tables.items()})

    @cached_property
    def _internal(self) -> dict[str, Any]:
        return self._make_content(public=False)

    @cached_property
    def _public(self) -> dict[str, Any]:
        return self._make_content(public=True)

    def _make_content(self, *, public: bool) -> dict[str, Any]:
        profile = self.profile
        head = {
            "sfumato": __version__,
            "kind": "release",
            "public": public,
            "generated": self.generated,
            "title": self.head["title"],
            "about": self.head["about"],
            "verdict": self.head["verdict"],
            "profile": profile and {"name": profile.name, "title": profile.title, "summary": profile.summary},
            **({} if public else {"how": self.head["how"]}),
        }
        form = _public if public else _internal
        content = {name: form(found, profile, self.tuned) for name, found in self.tables.items()}
        for name, own in content.items():
            spent = self.tables[name].part.budget
            if spent:  # what else leaves counts: a person may be in each table
                own["budget"] = self._coverage.statement(spent)
        if list(content) == [""]:
            return {**head, **content[""]}
        return {**head, "tables": content}

    def flat(self, *, public: bool) -> dict[str, Any]:
        """The same as if it were one table: columns of several have their table's name before their own."""
        content = self.to_dict(public=public)
        if "tables" not in content:
            return content
        tables = content["tables"]
        whole = {key: value for key, value in content.items() if key != "tables"} | {"tables": list(tables)}
        for key in ("roles", "lost"):
            whole[key] = [
                {**each, "column": f"{name}.{each['column']}"}
                for name, own in tables.items()
                for each in own[key]
            ]
        if spent := sum((found.part.budget for found in self.tables.values()), PrivacyBudget()):
            whole["budget"] = self._coverage.statement(spent)
        whole["steps"] = [
            {
                **each,
                "columns": [f"{name}.{column}" for column in each["columns"]],
                "centres": {f"{name}.{column}": centre for column, centre in each["centres"].items()},
            }
            for name, own in tables.items()
            for each in own["steps"]
        ]
        first, *others = tables.values()
        records = [own["records"] for own in tables.values()]
        whole["records"] = {key: sum(each[key] for each in records) for key in first["records"]}
        judged = [own["requirements"] for own in tables.values()]
        whole["requirements"] = (
            {key: sum(each[key] for each in judged) for key in ("met", "of")}
            if public
            else [each for own in judged for each in own]
        )
        if not public:
            whole["tests"] = {threat: _of_each(tables, threat) for threat in THREATS}
        rest = {key: value for own in (*reversed(others), first) for key, value in own.items()}
        return {**rest, **whole}


def _of_each(tables: Mapping[str, Any], threat: str) -> str:
    """Whether a threat was tested, for each table where they differ."""
    reasons: dict[str, str] = {name: own["tests"][threat] for name, own in tables.items()}
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{name}: {each}" for name, each in reasons.items())


# The internal form ----------------------------------------------------------------------------------------


def _internal(found: ReleaseScores, profile: Profile | None, tuned: TuningResult | None) -> dict[str, Any]:
    part = found.part
    utility = [score_entry(measure, score) for measure, score in found.utilities.values()]
    risks = [
        {**score_entry(measure, score, each.name), "original": finite(before.value) if before else None}
        for each in found.intruders
        for name, (measure, score) in each.risks.items()
        for before in [each.before.get(name)]
    ]
    return {
        "source": _source(part),
        "records": {"original": len(part.original), "released": len(part.release.first)},
        **_shape(part),
        "roles": _with_shares(
            _roles(part, {each.column: str(ColumnSentence(each)) for each in part.lost}), part
        ),
        "scenarios": _scenarios(found, profile),
        "steps": [_step(each, part, parameters=True) for each in part.release.provenance],
        "requirements": [_requirement(each, profile) for each in part.judgements],
        "attacks": {threat: [e for e in risks if e["threat"] == threat] for threat in THREATS},
        "recipients": recipients(found),
        "lost": [{"column": each.column, "sentence": str(ColumnSentence(each))} for each in part.lost],
        "utility": utility,
        "risks": risks,
        "listed": [each for each in (*risks, *utility) if each["measure"] in found.listed],
        "not_estimated": _unestimated_measures([*risks, *utility]),
        "tests": _tests(found),
        "rejected": rejected_candidates(tuned, part.plan.recipe),
        "notes": _notes(part, profile),
        "warnings": list(part.warnings),
        "broken_promises": [vars(each) for each in part.broken],
        "changes": dict(part.changes),
        **({"series": part.member.to_dict()} if part.member else {}),
        "strip": strip(found, utility),
        "individual_risk": individual_risks(found),
        "gauges": gauges(found),
        "combinations": combinations(found),
        "learnt": attribute_exposure(found),
        "groups": group_scores(found),
        **_pictures(found, public=False),
    }


def _tests(found: ReleaseScores) -> dict[str, str]:
    """Whether each threat was tested by attacks with a control group, and why not; the one answer."""
    plan = found.part.plan
    has_control = bool(plan.control) or CONTROL in plan.resources
    scores = [each for each in found.main.risks.values() if each[0].needs.control]
    return {threat: _test([e for e in scores if e[0].threat == threat], has_control) for threat in THREATS}


def _test(scores: list[tuple[Measure, Score]], has_control: bool) -> str:  # noqa: FBT001
    if not has_control:
        return f"not tested: {_NO_CONTROL}"
    done = [measure_title(measure) for measure, score in scores if is_number(score)]
    failed = [f"{measure_title(each)}: {score.reason}" for each, score in scores if not is_number(score)]
    if not done:
        return f"not tested: {'; '.join(failed) or 'no attack of this kind was requested'}"
    return "; not by ".join([f"tested by {', '.join(done)}", *failed])


def _scenarios(found: ReleaseScores, profile: Profile | None) -> list[dict[str, Any]]:
    reasons = {each.name: each.reason for each in profile.intruders} if profile else {}
    return [
        {
            "name": each.name,
            "columns": sorted(each.known),
            "records": each.scenario.records,
            "reason": " ".join(filter(None, (reasons.get(name) for name in each.names))),
            "judged": bool(each.names),
            "most": each is found.main,
        }
        for each in found.intruders
    ]


def _requirement(judged: Judgement, profile: Profile | None) -> dict[str, Any]:
    thresholds = profile.thresholds if profile else ()
    reasons = [each.reason for each in thresholds if each.requirement == judged.requirement]
    payload = {"asked": judged.requirement.short, "reason": reasons[0] if reasons else ""}
    payload["vetted"] = judged.requirement.measure.ungrouped.vetting().level
    return {**judged.to_dict(), **payload}


def _notes(part: TableOutcome, profile: Profile | None) -> list[str]:
    return [*part.notes, *left_out_of(profile, part)]


def _source(part: TableOutcome) -> dict[str, Any]:
    """What was released: the name of its file, without the folder it lies in, and fingerprints."""
    data = part.plan.data
    place = None if data is None or data.is_builtin else locate(data.path, part.plan.folder)
    is_file = isinstance(place, Path)
    return {
        "name": "" if data is None else Path(data.path).name if is_file else data.path,
        "sha256": fingerprint(place) if isinstance(place, Path) and place.is_file() else None,
        "contents": part.original.digest.hex(),
    }


def left_out_of(profile: Profile | None, part: TableOutcome) -> tuple[str, ...]:
    """What of a profile does not apply to a table, with the reason."""
    return profile.left_out(part.plan.schema) if profile and part.plan.schema else ()


def _unestimated_measures(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What gave no number, each reason once with the intruders it is about."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in entries:
        if each["value"] is None:
            key = (each["measure"], each["reason"])
            facts = {k: each[k] for k in ("measure", "title", "reason")}
            entry = found.setdefault(key, {**facts, "scenarios": []})
            entry["scenarios"] += [each["scenario"]] if each["scenario"] else []
    return list(found.values())


# The public form ------------------------------------------------------------------------------------------


def _public(found: ReleaseScores, profile: Profile | None, tuned: TuningResult | None) -> dict[str, Any]:
    """What the public may know, and nothing else."""
    part, grain = found.part, 1 / max(len(found.part.original), 1)
    persons = persons_of(part.original)
    hides = all(each.hides_each for each in part.lost)
    utility = [_coarse(*each, persons, hides_each=hides, grain=grain) for each in found.utilities.values()]
    pictures = _pictures(found, public=True)
    lost = [{"column": each.column, "sentence": str(ColumnSentence(each, public=True))} for each in part.lost]
    return {
        "records": {"released": len(part.release.first)},
        **_shape(part),
        "roles": _roles(part, {each["column"]: each["sentence"] for each in lost}),
        "steps": [_step(each, part, parameters=False) for each in part.release.provenance],
        "requirements": tally(each.to_dict() for each in part.judgements),
        "attacks": None,
        "recipients": meant_for(profile),
        "lost": lost,
        "utility": utility,
        "listed": [each for each in utility if each["measure"] in found.listed],
        "not_estimated": [
            {"measure": each["measure"], "title": each["title"], "reason": _why_not(each)}
            for each in utility
            if each["value"] is None
        ],
        "rejected": rejected_candidates(tuned, part.plan.recipe, public=True, grain=grain),
        "notes": pictures.pop("pictured"),
        "warnings": [],
        "strip": {"losses": losses_strip(utility)},
        **pictures,
    }


def _coarse(
    measure: Measure, score: Score, persons: Ints, *, hides_each: bool, grain: float
) -> dict[str, Any]:
    """A loss in the digits that may be published, and nothing but its number; none that is a few people's.

    ``hides_each`` is what the columns say; a measure that knows the loss of each record is asked itself.
    """
    entry, is_share = score_entry(measure, score), measure.family == "cells" and measure.bounds == (0.0, 1.0)
    payload = {key: entry[key] for key in ("measure", "title", "better", "what", "from_zero", "model")}
    tells = not is_share and _tells_someone(measure, score, persons)
    hides = hides_each or score.by_record is not None or not score.value
    value, baseline = (
        None if tells else public_loss(measure, entry[key], hides_each=hides, grain=grain)
        for key in ("value", "baseline")
    )
    status = _SUPPRESSED if value is None and entry["value"] is not None else entry["status"]
    like = None if value is None or score.like_sample is None else score.like_sample.rounded().to_dict()
    return {**payload, "status": status, "value": value, "baseline": baseline, "like_sample": like}


def _tells_someone(measure: Measure, score: Score, persons: Ints) -> bool:
    """Whether a mean over records may give away the loss of one of them, and with it the value that was."""
    if score.by_record is None or measure.better != "low" or not score.value:
        return False
    there = np.isfinite(score.by_record)
    return not hides_each(score.by_record[there], persons[there])


def _why_not(entry: Mapping[str, Any]) -> str:
    reasons = {"refused": "it does not apply to these columns", _SUPPRESSED: DOMINATED}
    return reasons.get(entry["status"], "it cannot be computed for this release")


# Both forms -----------------------------------------------------------------------------------------------


def _shape(part: TableOutcome) -> dict[str, Any]:
    """How many columns, copies and tables there are."""
    release = part.release
    tables = release.tables.items()
    several = {name: {"records": len(each), "columns": list(each.names)} for name, each in tables}
    return {
        "columns": list(release.reading().names),
        "synthetic": release.synthetic,
        **({"copies": len(part.copies)} if part.further else {}),
        **({"files": several} if len(several) > 1 else {}),
        **({"tables_beside": dict(part.beside.sentences)} if part.beside.sentences else {}),
    }


def _roles(part: TableOutcome, became: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each column of the original: its role, who decided on that, and what happened to it."""
    outcomes = {each.column: each.outcome for each in part.lost}
    return [
        {
            "column": column.name,
            "role": column.role.value if column.role else "",
            "kind": column.kind.value,
            "reason": column.role_basis or "declared",
            "decided_by": _decided_by(column.role_basis),
            "outcome": outcomes[column.name],
            "became": became.get(column.name, ""),
        }
        for column in part.original.schema.columns
    ]


def _with_shares(roles: list[dict[str, Any]], part: TableOutcome) -> list[dict[str, Any]]:
    """The same with the shares of the cells that changed, which is for the owner."""
    found = {each.column: {"shares": each.shares, "spans": each.spans} for each in part.lost}
    return [{**each, **found[each["column"]]} for each in roles]


def _decided_by(basis: str) -> str:
    """Who decided on a role."""
    words = {
        GUESSED: "sfumato (not confirmed)",
        ACCEPTED: "a person (suggestion accepted)",
        ANSWERED: "a person (question answered)",
    }
    return next((word for start, word in words.items() if basis.startswith(start)), "the plan or an option")


def _step(taken: Provenance, part: TableOutcome, *, parameters: bool) -> dict[str, Any]:
    method = registry.method(taken.method)
    payload = {
        "method": taken.method,
        "title": method.title,
        "columns": list(taken.columns),
        "what": plain(method.summary()),
        "vetted": method.vetting().level,
        "centres": centres_of(taken, part.original.schema),
        "analyst_note": method.from_dict(taken.parameters).settings_note(),
    }
    own = {"parameters": dict(taken.parameters), "notes": list(taken.notes)} if parameters else {}
    return {**payload, **own}


def _pictures(found: ReleaseScores, *, public: bool) -> dict[str, Any]:
    """The columns before and after; who is in classes of which size only for the owner."""
    part = found.part
    original, releases, picture_notes = pictured_tables(part.original, {RELEASE: part.release}, public=public)
    names = _shown_names(part)
    hidden = suppressed_columns(releases, names) if public else frozenset()
    changed = tuple(name for name in _drawn_columns(part) if name not in hidden)
    drawn = changed[:_MOST_DRAWN]
    ordered = (*changed, *(name for name in names if name not in changed and name not in hidden))
    content: dict[str, Any] = {
        "distributions": distributions(original, releases, drawn, public=public),
        "not_drawn": [name for name in names if name not in drawn],
        "mosaics": mosaics(original, releases, ordered, about=changed or ordered, public=public),
        "correlations": correlations(
            original, releases, _correlated_columns(releases, ordered), public=public
        ),
    }
    if public:
        return {**content, "pictured": list(picture_notes)}
    if part.release.synthetic:  # its classes say nothing about people
        return {**content, "class_sizes": None}
    return {**content, "class_sizes": class_sizes(original, releases, found.main.scenario, public=False)}


def _correlated_columns(releases: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that the release still has: of others there is nothing to hold the original's against."""
    return tuple(name for name in names if all(name in table.schema for table in releases.values()))


def _shown_names(part: TableOutcome) -> tuple[str, ...]:
    """The columns that may be drawn: those about people that the release has, none that names them."""
    there = part.release.reading().schema
    return tuple(name for name in about_people(part.original) if name in there)


def _drawn_columns(part: TableOutcome) -> tuple[str, ...]:
    """The columns that are no longer as they were, those that lost most first."""
    shown = set(_shown_names(part))
    changed = [each for each in part.lost if each.column in shown and each.fate in _DRAWN]
    changed.sort(key=lambda each: -(each.suppressed + each.coarser + each.changed))
    return tuple(each.column for each in changed)
