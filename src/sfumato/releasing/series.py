"""Releases in a series: finds the earlier ones, and says what all of them tell of the people in them.

Earlier releases are named in the plan's part ``[series]`` and found by their private trails, which know whose
each released record is.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.randomness import ByPerson, Series
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.waves import SERIES, Wave, Waves
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.series import NOBODY, Identity
from sfumato.data.strata import Stratum
from sfumato.data.table import Table
from sfumato.errors import PlanError, ReadError, SfumatoError, count_noun
from sfumato.kernels.arrays import Floats, Words
from sfumato.recipes.parts import SeriesSpec, fingerprint
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.releasing.read_release import conform_released, join_released_files, read_like
from sfumato.releasing.trail import randomness_of_trail, read_rows, read_trail, trails_in
from sfumato.study.evaluate import EvaluationCase, evaluate

#: A change is outlying that many times the usual distance from the median, if at most this share are.
_OUTLIER_DISTANCES, _MAX_OUTLIER_SHARE = 8.0, 0.05
#: A correlation has moved by so many standard errors, and at least so much; of fewer records nobody can tell.
_FAR_CORRELATION, _LEAST_MOVE, _MIN_RECORDS = 4.0, 0.05, 10


@dataclass(frozen=True)
class SeriesMember:
    """What is known of a release as one of a series: who was there before, and what all releases tell."""

    series: Series
    earlier: int
    persons_in_common: int
    notes: tuple[str, ...] = ()
    measures: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, plan: Plan, table: Table, release: Release, run: Run) -> SeriesMember:
        """Look at a release beside the earlier ones."""
        assert isinstance(run.randomness, ByPerson)  # it was entered
        waves: Waves = run.resources[SERIES]
        now = np.unique(waves.identity.persons(table))
        before = [wave.persons for wave in waves.earlier]
        common = np.intersect1d(now, np.concatenate(before)) if before else now[:0]
        case = EvaluationCase(table, plan.scenarios[0], run.resources)
        notes = [*_notes(plan, table, waves), *_changes(case.evidence(release), waves)]
        measures = _score_series(release, case, run) if waves.earlier else ()
        return cls(run.randomness.series, len(waves.earlier), len(common), tuple(notes), tuple(measures))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no secret."""
        return {
            "earlier": self.earlier,
            "persons_in_common": self.persons_in_common,
            "measures": [dict(each) for each in self.measures],
            "notes": list(self.notes),
        }

    def private_facts(self, original: Table, release: Release) -> dict[str, str]:
        """What the private trail keeps for the next release: the secret, and whose each record is."""
        payload = {"secret": self.series.secret.hex()}
        rows, identity = release.source_rows, self.series.identity
        if rows is None:
            return payload
        whose = {"persons": identity.persons(original), "units": identity.units(original)}
        words = {name: np.append(each, NOBODY)[rows] for name, each in whose.items()}
        return payload | {name: _encode_words(each) for name, each in words.items()}


def enter_series(plan: Plan, name: str, table: Table, run: Run, *, read: Callable[[Plan], Table]) -> Run:
    """The run in which a plan's release is made: in a series, with its secret and the earlier releases."""
    if plan.series is None:
        return run
    found = [_EarlierRelease.of(trail, name) for trail in trails_of(plan)]
    secret = _secret(found, run)
    artifacts: dict[tuple[str, Stratum], dict[str, Table]] = {}
    for each in found:
        for place, tables in each.private_tables() if each.secret == secret else ():
            artifacts.setdefault(place, {}).update(tables)
    _require_course(plan.series, [each for each in found if each.in_series])
    series = Series(secret, plan.series.record, plan.series.as_course, artifacts)
    series.identity.units(table)  # what is wrong with it is said before any work
    waves = tuple(each.wave(series.identity, table, read) for each in found)
    there = {SERIES: Waves(series.identity, waves)}
    was = run.randomness
    here = ByPerson(was.seed, was.place, was.is_given, was.person_seed, series=series)
    return replace(run, randomness=here, resources={**run.resources, **there})


def _secret(found: Sequence[_EarlierRelease], run: Run) -> bytes:
    """The secret that the releases of a series share; the first of them begins it."""
    secrets = list(dict.fromkeys(each.secret for each in found if each.in_series))
    if len(secrets) > 1:
        raise PlanError(
            f"the earlier releases must be of one series, got: releases of {len(secrets)} series",
            hint="name the first release, and those whose plan names it",
        )
    begun = secrets or [each.secret for each in found]
    return begun[0] if begun else run.randomness.series_secret


def _require_course(series_spec: SeriesSpec, found: Sequence[_EarlierRelease]) -> None:
    """Raise unless the course is what the earlier releases were made for: with another, noise is another."""
    before = [spec for each in found if (spec := each.plan.series) is not None]
    if any(each.as_course != series_spec.as_course for each in before):
        raise PlanError(
            "`releases` and `course` of the series differ from those of its earlier releases",
            hint="copy them from the plan of the first release, or begin a new series",
        )


def trails_of(plan: Plan) -> list[Path]:
    """The private trails of the releases that a plan names as earlier ones."""
    found = []
    for place in () if plan.series is None else plan.series.earlier:
        trails = trails_in(plan.folder / place)
        if len(trails) > 1:
            raise PlanError(
                f"`earlier` of the series must name one release each, got: {len(trails)} trails in `{place}`",
                hint="name the trail: FOLDER/NAME.private.json",
            )
        found += trails
    return found


def with_absolute_paths(plan: Plan) -> Plan:
    """The plan with its earlier releases named so that they are found from any folder."""
    if plan.series is None:
        return plan
    places = tuple(str((plan.folder / place).absolute()) for place in plan.series.earlier)
    return replace(plan, series=replace(plan.series, earlier=places))


def files_of_earlier(plan: Plan) -> list[Path]:
    """The files of earlier releases, which no later one may overwrite."""
    trails = [trail for part in plan.parts.values() for trail in trails_of(part)]
    return [
        place
        for trail in trails
        for place in (trail, *(trail.parent / name for name in read_trail(trail).get("written", ())))
        if place.is_file()
    ]


@dataclass(frozen=True)
class _EarlierRelease:
    """What a private trail says of one table of an earlier release."""

    trail: Path
    payload: Mapping[str, Any] = field(repr=False)
    part: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, trail: Path, name: str) -> _EarlierRelease:
        payload = read_trail(trail)
        parts = payload.get("tables", {"": payload})
        if name not in parts or "plan" not in parts[name]:
            raise ReadError(
                f"`{trail}` must be the trail of an earlier release of the same table, got: another",
                hint="name the folder of a release of this table",
            )
        return cls(trail, payload, parts[name])

    @property
    def secret(self) -> bytes:
        """The secret of its series; one that was not in a series begins one."""
        if self.in_series:
            return bytes.fromhex(self.part["series"]["secret"])
        return randomness_of_trail(self.payload).series_secret

    @property
    def in_series(self) -> bool:
        """Whether its chance was keyed by person."""
        return "series" in self.part

    @property
    def plan(self) -> Plan:
        return Plan.from_dict(self.part["plan"], folder=self.trail.parent / self.payload.get("folder", ""))

    def private_tables(self) -> Iterator[tuple[tuple[str, Stratum], dict[str, Table]]]:
        """What each step confided, by what is said of it and the stratum."""
        steps = Recipe.from_list(self.part["plan"].get("steps", ())).step_identities
        for each in self.part.get("fitted", ()):
            stratum = tuple(each.get("stratum", {}).values())
            names = [name for name in each if name not in {"step", "stratum"}]
            tables = {name: _table(each[name]) for name in names}
            yield (steps[each["step"] - 1], stratum), tables

    def wave(self, identity: Identity, table: Table, read: Callable[[Plan], Table]) -> Wave:
        """The release as it left, and whose its records are."""
        original = self._original(read)
        release = self._release(table if original is None else original)
        facts = self.part.get("series", {})
        if "persons" in facts:
            persons, units = _decode_words(facts["persons"]), _decode_words(facts["units"])
        elif "rows" not in self.part:  # nobody's
            persons = units = np.zeros(len(release.first), dtype=np.uint64)
        elif original is None:
            raise ReadError(
                f"`{self.trail.name}` cannot be followed: it is the trail of a release outside of a series, "
                "and its original was moved or changed",
                hint="put the original back where it was, or begin a new series",
            )
        else:
            rows = read_rows(self.part)
            persons, units = (
                np.append(words, NOBODY)[rows]
                for words in (identity.persons(original), identity.units(original))
            )
        reading = release.reading()
        if len(persons) != len(reading):
            raise ReadError(f"`{self.trail.name}` does not fit the records of its release")
        return Wave(self.trail.name, reading, persons, units, release.buckets, original, keyed=self.in_series)

    def _original(self, read: Callable[[Plan], Table]) -> Table | None:
        """What the release was made of; None if that is not at hand any more, or has changed."""
        try:
            original = read(self.plan)
        except (SfumatoError, OSError):
            return None
        return original if original.digest.hex() == self.part["contents"] else None

    def _release(self, original: Table) -> Release:
        output = self.part["output"]
        place = self._place(output["name"])
        if place is None or fingerprint(place) != output.get("sha256"):
            raise ReadError(
                f"the earlier release of `{self.trail}` is {'missing' if place is None else 'changed'}",
                hint="put the file back beside its trail: the new release is compared with it",
            )
        reading = self.plan.source_at("").reading
        if "joined" in self.part:
            return join_released_files(original, place, {"rows": "", **self.part}, reading)
        return Release.of(conform_released(read_like(place, reading), original))

    def _place(self, name: str) -> Path | None:
        """Where a released file lies, seen from the trail."""
        seen = [each for each in self.payload.get("written", ()) if Path(each).name == name]
        places = (self.trail.parent / each for each in (*seen, name))
        return next((place for place in places if place.is_file()), None)


def _encode_words(words: Words) -> str:
    return base64.b64encode(words.astype("<u8").tobytes()).decode("ascii")


def _decode_words(text: str) -> Words:
    return np.frombuffer(base64.b64decode(text), dtype="<u8").astype(np.uint64)


def _table(payload: Mapping[str, Any]) -> Table:
    """A table that a step confided, as the trail writes it."""
    frame = pl.DataFrame(payload, strict=False)
    kinds = [
        Column(name, Kind.CONTINUOUS if dtype.is_numeric() else Kind.NOMINAL)
        for name, dtype in frame.schema.items()
    ]
    return Table(frame, Schema(tuple(kinds)))


# What the owner should know ----------------------------------------------------------------------------


def _score_series(release: Release, case: EvaluationCase, run: Run) -> Iterator[Mapping[str, Any]]:
    """What all releases tell together, by the measures of several releases."""
    asked = registry.measures_for("series")
    found = evaluate(release, case, asked, run.silent(), allow_sampling=True).scores
    for measure in asked:
        score = found[str(measure)]
        alone = "" if score.baseline is None else f"; for the last release alone {score.baseline:.3g}"
        value_text = f"{score.value:.3g}{alone}" if np.isfinite(score.value) else f"not known: {score.reason}"
        words = f"{measure.title}: {value_text}"
        yield {"measure": measure.name, "title": measure.title, "words": words, **score.to_dict()}


def _notes(plan: Plan, table: Table, waves: Waves) -> Iterator[str]:
    """Sentences on a release beside the earlier ones; no cell is in them."""
    persons = waves.identity.persons(table)
    again = len(persons) - len(np.unique(persons))
    if again and not waves.identity.record:
        yield (
            f"{count_noun(again, 'further record')} of persons with several can only be told apart by "
            "order: name a column that identifies them as `record` of the series"
        )
    fresh = sum(not wave.keyed for wave in waves.earlier)
    if fresh and plan.recipe.stochastic:
        yield (
            f"{count_noun(fresh, 'earlier release')} made outside of the series with other noise: an "
            "intruder with all releases can average it out"
        )
    planned, number = plan.series.releases if plan.series else 0, len(waves.earlier) + 1
    if number > planned and plan.recipe.stochastic:
        yield (
            f"this is release {number} of a series planned for {planned}: together they disclose more than "
            "planned, see `difference-risk`"
        )
    if plan.recipe.unrepeatable and waves.earlier:
        yield (
            f"{', '.join(plan.recipe.unrepeatable)} draws new noise in every release: the privacy budgets of "
            "all releases of the series add up"
        )
    renumbered = _count_renumbered(table, waves) if waves.earlier else 0
    if renumbered:
        yield (
            f"{count_noun(renumbered, 'record')} of new persons with exactly the keys of a person who has "
            "left, which no other record has: if they are the same people, give them their old numbers; else "
            "the releases together disclose more than is measured"
        )


def _count_renumbered(table: Table, waves: Waves) -> int:
    """How many records of new persons have the keys of somebody who has left, and no other record has."""
    last, identity = waves.earlier[-1], waves.identity
    before, then = last.reading, last.persons
    if last.original is not None:
        before, then = last.original, identity.persons(last.original)
    keys = [
        each.name
        for each in table.schema.columns
        if each.role is Role.KEY
        and each.name in before.schema
        and not (table.is_generalised(each.name) or before.is_generalised(each.name))
    ]
    if not keys:
        return 0
    now = identity.persons(table)
    new = ~np.isin(now, np.concatenate([wave.persons for wave in waves.earlier]))
    gone = ~np.isin(then, np.append(now, NOBODY).astype(now.dtype))
    ones, others = (
        pl.DataFrame([canonical_text(own.frame[name]).cast(pl.String).alias(name) for name in keys]).filter(
            pl.struct(keys).is_unique() & pl.Series(who)
        )
        for own, who in ((table, new), (before, gone))
    )
    return ones.join(others, on=keys, how="semi", nulls_equal=True).height


def _changes(evidence: Evidence, waves: Waves) -> Iterator[str]:
    """What stands out of the change since the last release: people by theirs, and correlations that moved."""
    if not waves.earlier or evidence.source_rows is None or evidence.protected is None:
        return
    last, now = waves.earlier[-1], waves.now(evidence)
    names = [
        name
        for name in evidence.shared_columns
        if name in last.reading.schema
        and all(
            table.schema[name].kind is Kind.CONTINUOUS and not table.is_generalised(name)
            for table in (last.reading, evidence.protected)
        )
    ]
    places = now.places_in(last)
    both = np.flatnonzero(places >= 0)
    before, after = last.reading.matrix(names), evidence.protected.matrix(names)
    for place, name in enumerate(names):
        outlying = _outlying(after[both, place] - before[places[both], place])
        if outlying:
            yield (
                f"{count_noun(outlying, 'record')} with an outlying change of `{name}` since the last "
                "release: an intruder with both releases may re-identify them"
            )
    for one, other in combinations(range(len(names)), 2):
        moved = _changed_correlation(before[:, [one, other]], after[:, [one, other]])
        if moved is not None:
            yield (
                f"the correlation of `{names[one]}` and `{names[other]}` moved from {moved[0]:.2f} to "
                f"{moved[1]:.2f} since the last release"
            )


def _outlying(changes: Floats) -> int:
    """How many changes lie far out: by so many times the median distance from the median.

    Where most have not changed, a few who have stand out.
    """
    there = changes[np.isfinite(changes)]
    if len(there) < _MIN_RECORDS:
        return 0
    apart = np.abs(there - np.median(there))
    usual = 1.4826 * float(np.median(apart))
    found = int((apart > _OUTLIER_DISTANCES * usual).sum())
    return found if found <= _MAX_OUTLIER_SHARE * len(there) else 0


def _changed_correlation(before: Floats, after: Floats) -> tuple[float, float] | None:
    """The correlations of two columns, if they differ by more than chance (Fisher's z); else None."""
    found, doubt = [], 0.0
    for values in (before, after):
        there = values[np.isfinite(values).all(axis=1)]
        if len(there) < _MIN_RECORDS or (there.std(axis=0) == 0).any():
            return None
        one, other = ((there - there.mean(axis=0)) / there.std(axis=0)).T
        found.append(float(np.clip((one * other).mean(), -1 + 1e-9, 1 - 1e-9)))
        doubt += 1 / (len(there) - 3)
    apart = abs(np.arctanh(found[0]) - np.arctanh(found[1]))
    far = apart > _FAR_CORRELATION * np.sqrt(doubt) and abs(found[0] - found[1]) > _LEAST_MOVE
    return (found[0], found[1]) if far else None
