"""What a measure of risk or utility is, and the score it gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol, final

import numpy as np
import polars as pl

from sfumato.core.approaches import Approach, approaches
from sfumato.core.component import Component
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import joining
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.core.sample_equivalent import SampleEquivalent
from sfumato.core.sample_interval import mean_interval
from sfumato.data.classes.classes import Classes
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.threads import one_thread_of_algebra

Aspect = Literal["risk", "utility"]
Better = Literal["low", "high"]

#: What an intruder may do to somebody, as the Article 29 Working Party tells it apart (WP 216, 2014).
Threat = Literal["", "singling out", "linkability", "inference"]

#: Where a measure is shown though nobody asked for it by name: when nobody says by what to measure; beside a
#: ranking of methods; beside an ε; of several releases together; in the report of a release, and in sections
#: of it: chances drawn as gauges, each record's own chance, rare combinations, what keys add to special
#: uniques, sensitive columns one by one, what analyses come to.
Place = Literal[
    "default", "comparison", "epsilon", "series",
    "report", "gauges", "records", "combinations", "uniques", "sensitive", "models",
]  # fmt: skip


#: The detail of a score that says by which approach of an intruder it is the worst, if not by the plain one.
APPROACH = "approach"


class Status(StrEnum):
    """How far a number can be trusted. A gate passes only on ``ok``, or on an interval that is proved.

    An estimate passes where the requirement asks for it, as in ``individual-risk <= 0.05 at 95%``.
    """

    OK = "ok"
    APPROXIMATE = "approximate"
    NOT_ESTIMABLE = "not-estimable"
    REFUSED = "refused"


#: Why a measure has no score of a table that was counted where it is.
NEEDS_RECORDS = (
    "must look at single records, got: counts of equal ones (read the table: leave out --in-database, "
    "in Python `in_database`; or collect the lazy frame)"
)

#: What a score may be that has a number.
_NUMERIC = frozenset({Status.OK, Status.APPROXIMATE})

#: The parts of a score by which a gate may rely on an estimate, where nobody can tell how far off it is.
_NO_FAR_END: dict[str, Any] = {"interval_is_proved": False, "bound": None, "confidence": None}


class Proof(Protocol):
    """What comes with a number that can be checked."""

    def verify(self, evidence: Evidence, run: Run) -> str | None:
        """Check the number against the data alone; None if it holds, else what does not."""


@dataclass(frozen=True)
class Score(Tabular):
    """A number with its doubt and with what guessing would score.

    ``interval_is_proved`` if the truth is proved to lie in the interval, and not only likely to;
    ``confidence`` is how likely, in per cent, where a requirement may rely on it. ``bound`` is proved to be
    no better than the value can be, where the interval says more than that.

    ``by_record`` follows the original's records and never leaves in a public report; neither does
    ``by_value``, which names cells: what the most telling values of each column add. ``proof`` is what lets
    anyone check the number without trusting how it was found; it stays as private as the data.
    ``like_sample`` is the random sample of the original that is as good, where somebody asked for it.
    """

    value: float
    status: Status = Status.OK
    interval: tuple[float, float] | None = None
    interval_is_proved: bool = False
    bound: float | None = None
    by_column: Mapping[str, float] = field(default_factory=dict)
    by_record: Floats | None = field(default=None, repr=False, compare=False)
    by_value: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False, compare=False)
    baseline: float | None = None
    reason: str = ""
    details: Mapping[str, float | int | str] = field(default_factory=dict)
    confidence: float | None = None
    proof: Proof | None = field(default=None, repr=False, compare=False)
    like_sample: SampleEquivalent | None = None

    @classmethod
    def refused(cls, reason: str) -> Score:
        """Make the score of a measure that does not apply."""
        return cls(math.nan, status=Status.REFUSED, reason=reason)

    @classmethod
    def not_estimable(cls, reason: str) -> Score:
        """Make the score of a measure that applies but cannot be had from these data."""
        return cls(math.nan, status=Status.NOT_ESTIMABLE, reason=reason)

    def to_dict(self, *, private: bool = False) -> dict[str, Any]:
        """As a dictionary for JSON; what is known per record only in private."""
        payload: dict[str, Any] = {
            "value": _finite(self.value),
            "status": self.status.value,
            "interval": [_finite(end) for end in self.interval] if self.interval else None,
            "interval_is_proved": self.interval_is_proved,
            "bound": _finite(self.bound),
            "confidence": self.confidence,
            "baseline": _finite(self.baseline),
            "by_column": {name: _finite(value) for name, value in self.by_column.items()},
            "details": {name: _finite(value) for name, value in self.details.items()},
            "reason": self.reason,
        }
        if self.like_sample is not None:
            payload["like_sample"] = self.like_sample.to_dict()
        if private and self.by_record is not None:
            payload["by_record"] = [_finite(value) for value in self.by_record.tolist()]
        if private and self.by_value:
            payload["by_value"] = {name: dict(values) for name, values in self.by_value.items()}
        return payload

    def to_frame(self) -> pl.DataFrame:
        """One row: the number, how far it can be trusted, its doubt, what guessing scores."""
        low, high = self.interval or (None, None)
        row = {"value": self.value, "status": self.status.value, "low": low, "high": high}
        return pl.DataFrame([{**row, "baseline": self.baseline, "reason": self.reason}])

    def _repr_html_(self) -> str:
        return as_html((), self.to_frame())


def _finite(value: float | str | None) -> float | str | None:
    """Say a number as JSON can: it has neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Needs:
    """What a measure must be given beside the original."""

    release: bool = True
    control: bool = False  # True: it attacks people who were not protected, too
    mapping: bool = False  # True: which original record each released one comes from
    exact_original: bool = False  # True: no ranges or sets of values in the columns of the original
    records: bool = False  # True: both tables must have some
    columns: int = 1  # as many at least that it can look at


@dataclass(frozen=True)
class Laws:
    """What holds between two scores of a measure: `sfumato.testing` tries what is declared.

    Records in another order, and other names of columns and categories, change no score; a measure of which
    that is not so says why. The others are for a risk to declare.
    """

    reads_order: str = ""
    reads_names: str = ""
    coarser_is_safer: bool = False  # True: keys at higher levels of their hierarchies for all are no riskier
    knowledge_is_risk: bool = False  # True: an intruder who knows more columns learns no less
    copies_hide_nobody: bool = False  # True: a person's record that is there twice makes nobody safer
    one_record_each: bool = False  # True: coarser and known hold where no person has several records


@dataclass(frozen=True)
class Counting:
    """Which records and people a measure counts, and the laws that follow."""

    people: bool = False  # True: it counts the people of the table seen
    joins_person_records: bool = False  # True: records that a column joins are judged as one person's
    sees_joined_rows: bool = False  # True: of linked tables it is asked of a person's records side by side
    pools_copies: bool = False  # True: of copies put one below the other it measures the risk of all
    intruder_records_only: bool = False  # True: it looks only at the records that the intruder holds
    averages_columns: bool = False  # True: its number is a mean over the columns that the intruder knows
    compares_kept_relations: bool = False  # True: it compares known with released values, so differences, too
    opens_suppressed: bool = (
        False  # True: a suppressed cell is as far as a value of its own, and any value, too
    )
    compares_equal: bool = False  # True: it asks whether values are equal, so those a hair apart, too
    classes_only: bool = False  # True: classes of records alike tell it all, so `Table.counts` will do
    laws: Laws = Laws()


@dataclass(frozen=True)
class Tells:
    """What a measure's number means for a record, and where it is shown.

    Parameters
    ----------
    places
        Where it is shown though nobody asked for it by name, and its rank there: the lowest is first, and of
        equals the first by name. They are the class's own: one derived from it has those it declares.
    intruder
        How an intruder goes about it, if a record's number is their chance to find it: ``"takes the nearest
        released record"``.
    record_sentence
        What a record's number means else, with a place for it: ``"of its values, {:.0%} are learnt"``.
    not_seen
        Of an attack, what it is blind to, in a sentence: shown wherever its number is.
    why_not_required
        Why nobody may require it, if so: it describes, and proves nothing.
    trades
        Whether its number is of risk and loss together: then the original itself has not the best of it.
    """

    places: Mapping[Place, int] = field(default_factory=dict)
    intruder: str = ""
    record_sentence: str = ""
    not_seen: str = ""
    why_not_required: str = ""
    trades: bool = False


@dataclass(frozen=True)
class Scaling:
    """What becomes of a measure of large tables that nobody asked for by name.

    Above ``exact_up_to`` records it is estimated from ``persons_drawn``, each looked for among all records;
    where none are drawn a sample would mislead, and it has no number.
    """

    exact_up_to: float = math.inf
    persons_drawn: int = 0


class Measure(Component):
    """Gives a score to evidence. Write ``measure``, and ``refuses`` where kinds do not say enough."""

    aspect: ClassVar[Aspect]
    better: ClassVar[Better]
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    threat: ClassVar[Threat] = ""  # of a risk: what an intruder does by it
    needs: ClassVar[Needs] = Needs()
    counts: ClassVar[Counting] = Counting()
    tells: ClassVar[Tells] = Tells()
    scales: ClassVar[Scaling] = Scaling()
    _former_flags = frozenset({
        "needs_release", "usual", "exact_up_to", "persons_drawn", "told_by", "sees_persons", "sees_copies",
        "only_held", "not_required", "counts_people", "needs_control", "intruder", "says",
        "survives_joining", "counts_persons", "undefined",
    })  # fmt: skip

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns it looks at: for a risk those the intruder knows, for a utility all that both have."""
        names = evidence.known_columns if self.aspect == "risk" else evidence.shared_columns
        return evidence.of_kinds(names, self.kinds)

    def refuses(self, evidence: Evidence) -> str | None:
        """Why this measure does not apply to this evidence; None when it does."""
        if self.needs.release and evidence.protected is None:
            return f"{self.name} must be given a release beside the original, got: only the original"
        if self.counts.people and evidence.synthetic:
            return f"{self.name} must count people, got: synthetic records, which are nobody's"
        if self.needs.control and evidence.control is None:
            return (
                f"{self.name} must have a control, people of the same population who were not protected, "
                "got: none (hold some out in a rehearsal: --control 0.2; or give a file of them)"
            )
        if undeclared := self.undeclared_resources(evidence.resources):
            return "; ".join(undeclared)
        return self._lacks(evidence, self.columns(evidence))

    def _lacks(self, evidence: Evidence, names: tuple[str, ...]) -> str | None:
        """What is needed of the columns and of the original, and is not there."""
        if len(names) < self.needs.columns:
            kinds, least = " or ".join(sorted(self.kinds)), self.needs.columns
            wanted = f"one {kinds} column" if least == 1 else f"{least} {kinds} columns"
            return f"{self.name} must find at least {wanted} in both tables, got: {len(names) or 'none'}"
        if self.needs.mapping and evidence.source_rows is None:
            wanted = "know which record each released one comes from"
            return f"{self.name} must {wanted}, got: records that do not map"
        if self.needs.exact_original and evidence.original.is_generalised(*names):
            coarse = quoted(name for name in names if evidence.original.is_generalised(name))
            got = f"ranges or sets of values in {coarse}"
            return f"{self.name} must find exact values in the original, got: {got}"
        return None

    def sees_joined_records(self, evidence: Evidence) -> bool:  # noqa: ARG002  — for some it depends on cells
        """Whether it judges records that are joined as one unit, and not each alone."""
        return self.counts.joins_person_records

    def concerns(self, original: Table) -> bool:  # noqa: ARG002  — most concern every table
        """Whether it is shown unasked of such a table; not where it could only say that it does not apply."""
        return True

    def among_people(self, evidence: Evidence) -> Evidence:
        """The evidence without released records that are seen to be nobody's."""
        return evidence.with_people_only

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Why there is no number though it applies, where that is known before any work; else None."""
        if self.needs.records and not (len(evidence.original) and len(evidence.protected or ())):
            return "one of the tables has no records"
        return None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Score the evidence."""
        raise NotImplementedError  # abstract: every measure in the registry has its own

    @property
    def ungrouped(self) -> Measure:
        """What is scored: the measure itself, unless that is of each group of records alone."""
        return self

    def with_settings(self, **settings: Any) -> Measure:
        """The same with other settings."""
        return replace(self, **settings)

    def quick(self) -> Measure:
        """What a search ranks by until few are left: a measure of the same order that costs little."""
        return self

    @final
    def score_sampled(self, evidence: Evidence, run: Run) -> Score:
        """The score if nobody asked for it by name: of large tables an estimate, or the sentence why none.

        Only the persons an intruder looks for are drawn, never the records they choose among: with fewer of
        these more is found. So what links all records at once has no estimate.
        """
        if not self.is_sampled(evidence):
            return self.score(evidence, run)
        if self.scales.persons_drawn:
            drawn = replace(evidence.sampling, persons=self.scales.persons_drawn)
            few = evidence.remember(drawn, lambda: replace(evidence, sampling=drawn))
            return self.score(few, run)
        reason = self.refuses(evidence.with_known_values if self.aspect == "risk" else evidence)
        if reason is not None:
            return Score.refused(reason)
        return Score.not_estimable(
            f"{self.name} of more than {self.scales.exact_up_to:,} records must be asked for by name: it "
            "takes long, and has no estimate from a sample"
        )

    def is_sampled(self, evidence: Evidence) -> bool:
        """Whether these are more records than it looks at when nobody asked for it by name."""
        return max(len(evidence.known_table), len(evidence.protected or ())) > self.scales.exact_up_to

    @final
    def score(self, evidence: Evidence, run: Run) -> Score:
        """Check, then measure: what the doors and studies call. A NaN is never taken for a number.

        To a utility a column that was left out is one of which every cell is suppressed; to a risk what the
        intruder knows stands beside each other, be it in several tables. A risk is scored by every approach
        that the release allows, and the worst counts.
        """
        if self.aspect == "utility":
            return self._score_once(evidence.with_all_columns, run)
        plain, *further = approaches(self.among_people(evidence.with_known_values))
        score = self._score_once(plain.evidence, run)
        unseen = ""
        for each in further:
            if not self.takes(each) or score.status not in _NUMERIC:
                continue
            other = self._by_approach(score, each, run)
            if other.status in _NUMERIC:
                score = self._worse(score, other, each.name)
            else:
                unseen = unseen or f"{self.name} cannot be measured {each.name}: {other.reason}"
        if not unseen:
            return score  # else a doubt, at last: it hides nothing that another approach found
        return self._with_doubt(score, unseen)

    def takes(self, approach: Approach) -> bool:
        """Whether a further approach may tell this measure more."""
        counts = self.counts
        return not (
            (approach.compares_values and not counts.compares_kept_relations)
            or (approach.adds_columns and counts.averages_columns)
            or (approach.opens_cells and not counts.opens_suppressed)
            or (approach.rounds_numbers and not self.compares_equal())
            or (approach.fills_values and not self.fills_values())
        )

    def compares_equal(self) -> bool:
        """Whether it asks if values are equal: then ones that are a hair apart are read as equal, too."""
        return self.counts.compares_equal

    def fills_values(self) -> bool:
        """Whether it asks what is learnt of those who are alike: then suppressed values are guessed, too."""
        return False

    def _score_once(self, evidence: Evidence, run: Run) -> Score:
        """Check, then measure by one approach."""
        counted = evidence.original.counts is not None
        if counted and not self.counts.classes_only:
            return Score.refused(f"{self.name} {NEEDS_RECORDS}")
        reason = self.refuses(evidence)
        if reason is not None:
            return Score.refused(reason)
        if (undefined := self.why_not_estimable(evidence)) is not None:
            return Score.not_estimable(undefined)
        run.check()
        self.state.require_room(self.name, len(evidence.original), len(self.columns(evidence)), run.engine)
        with one_thread_of_algebra():
            score = self.measure(evidence, run)
        if counted:  # nobody knows which record is which
            score = replace(score, by_record=None)
        if math.isnan(score.value) and score.status in _NUMERIC:
            return replace(
                score, status=Status.NOT_ESTIMABLE, reason=score.reason or "the result is undefined"
            )
        return self._mark_as_estimate(score, evidence)

    def _by_approach(self, plain: Score, approach: Approach, run: Run) -> Score:
        """Score by a further approach; who looks at each record alone has no number of joined ones."""
        if approach.evidence.joined is not None and not self.sees_joined_records(approach.evidence):
            return self._mark_as_estimate(plain, approach.evidence)
        return self._score_once(approach.evidence, run)

    def _worse(self, first: Score, second: Score, name: str) -> Score:
        """The worse of two scores, what is less certain first; the second is that of a further approach."""
        ends = [self._far_end(each) for each in (first, second)]
        if math.isnan(ends[0]) or not (math.isnan(ends[1]) or self.is_better(*ends)):
            return first
        return replace(second, details={**second.details, APPROACH: name})

    def _far_end(self, score: Score) -> float:
        """The worst that a score may stand for; NaN if nobody can tell."""
        if score.status is Status.OK or score.bound is not None:
            return score.value if score.bound is None else score.bound
        if score.interval is None or not (score.interval_is_proved or score.confidence is not None):
            return math.nan
        return score.interval[1 if self.better == "low" else 0]

    def _mark_as_estimate(self, score: Score, evidence: Evidence) -> Score:
        """Call a risk an estimate that is seen in a part of the records, or in each of a person's alone."""
        if self.aspect != "risk" or not math.isfinite(score.value):
            return score
        if evidence.sampling.persons is not None and score.by_record is not None:
            score = self._of_targets(score, score.by_record, evidence)
        elif self.counts.intruder_records_only and evidence.scenario.records < 1:
            held = round(evidence.scenario.records * len(evidence.known_table))
            low, high = self.bounds
            far = (high - low) * math.sqrt(math.log(2 / 0.05) / 2 / max(held, 1))  # Hoeffding (1963), 95 %
            between = (max(low, score.value - far), min(high, score.value + far))
            score = replace(
                score, status=Status.APPROXIMATE, interval=between if math.isfinite(far) else None,
                interval_is_proved=False, bound=None, confidence=None,
                reason=f"it is estimated from {max(held, 1)} records drawn, with 95 % confidence",
            )  # fmt: skip
        return self._doubt_if_joined(score, evidence)

    def _doubt_if_joined(self, score: Score, evidence: Evidence) -> Score:
        """Call a risk uncertain where records are joined, and it is that of each alone."""
        if self.aspect != "risk" or not math.isfinite(score.value) or self.sees_joined_records(evidence):
            return score
        if not (links := tuple(joining(evidence))):
            return score
        names = quoted(links, " and ")
        return self._with_doubt(
            score, f"{names} joins records in the file, and {self.name} looks at each alone"
        )

    @staticmethod
    def _with_doubt(score: Score, reason: str) -> Score:
        """The score as one of which nobody can tell how far off it is."""
        return replace(score, status=Status.APPROXIMATE, reason=reason, **_NO_FAR_END)

    def _of_targets(self, score: Score, by_record: Floats, evidence: Evidence) -> Score:
        """Say what a score of some persons tells of all: its value is the mean of each one's worst record."""
        seen, sign = np.isfinite(by_record), 1.0 if self.better == "low" else -1.0
        worst = sign * best_by_person(persons_of(evidence.known_table)[seen], sign * by_record[seen])
        low, high = mean_interval(worst, self.bounds)
        return replace(
            score, status=Status.APPROXIMATE, interval=(low, high), interval_is_proved=False, bound=None,
            reason=f"estimated from {len(worst):,} persons drawn, with 95 % confidence between {low:.4g} and "
            f"{high:.4g}; exact if it is asked for by name",
        )  # fmt: skip

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if self.tells.intruder:
            return f"an intruder who {self.tells.intruder} {_chance(value)}"
        if self.tells.record_sentence:
            return self.tells.record_sentence.format(value)
        return f"{self.title} of this record is {value:.4g}; {self.side()}"

    @classmethod
    def side(cls) -> str:
        """Which numbers are good, in words."""
        good = "safer" if cls.aspect == "risk" else "more useful"
        return f"{'lower' if cls.better == 'low' else 'higher'} is {good}"

    @property
    def worst(self) -> float:
        """The worst number that a release can have, infinite where none is known: no requirement asks less.

        It is the worse of the bounds; write it where settings say more.
        """
        return self.bounds[1 if self.better == "low" else 0]

    def is_better(self, first: float, second: float) -> bool:
        """Whether ``first`` is the better value of the two."""
        return first < second if self.better == "low" else first > second

    @classmethod
    def places(cls) -> Mapping[Place, int]:
        """Where it is shown though nobody asked for it by name, and its rank there; not inherited."""
        return cls.tells.places if "tells" in vars(cls) else {}

    @classmethod
    def laws(cls) -> Laws:
        """The laws that its scores keep."""
        return cls.counts.laws

    @classmethod
    def computed_from(cls) -> Literal["records", "classes", "class"]:
        """What makes its number: single records, the classes of records alike, or each class by itself."""
        return "records"

    @classmethod
    def description(cls) -> str:
        """The summary and, of an attack, what it cannot see."""
        return f"{cls.summary()} {cls.tells.not_seen}".strip()

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """As a dictionary for JSON and for the docs."""
        low, high = cls.bounds
        return {
            **super().describe(),
            "aspect": cls.aspect,
            "better": cls.better,
            "bounds": [low if math.isfinite(low) else None, high if math.isfinite(high) else None],
            "needs_release": cls.needs.release,
            "default": "default" in cls.places(),
            "not_seen": cls.tells.not_seen,
            "exact_up_to": cls.scales.exact_up_to if math.isfinite(cls.scales.exact_up_to) else None,
            "computed_from": cls.computed_from(),
        }


def _chance(value: float) -> str:
    if value >= 1:
        return "finds it for sure"
    return f"finds it with a chance of {value:.3g}" if value > 0 else "does not find it"


@dataclass(frozen=True)
class ClassValues:
    """What is known of the values that a model gives to classes of records alike."""

    independent: bool = False  # True: leaving out other classes changes nothing for those who stay
    survive_merging: bool = False  # True: classes put together are no worse than the worst of them
    are_sizes: bool = False  # True: they follow from the numbers of persons alone: write `of_sizes`


class ClassMeasure(Measure):
    """A measure whose score is that of the worst class of records alike: classes tell it all.

    Every enforcing method can enforce it, and a search of recodings judges it by counts of classes, without
    building releases. It takes what is declared here at its word; the release is measured all the same.
    """

    class_values: ClassVar[ClassValues] = ClassValues()

    @classmethod
    def laws(cls) -> Laws:
        """The laws that its scores keep: coarser keys, or fewer known ones, put classes together."""
        laws, merging = super().laws(), cls.class_values.survive_merging
        return replace(
            laws,
            coarser_is_safer=laws.coarser_is_safer or merging,
            knowledge_is_risk=laws.knowledge_is_risk or merging,
            # Of a person in two classes a value of either counts where these are one.
            one_record_each=merging and not cls.class_values.are_sizes,
        )

    @classmethod
    def computed_from(cls) -> Literal["records", "classes", "class"]:
        """What makes its number: the classes of records alike, or each class by itself."""
        return "class" if cls.class_values.independent else "classes"

    def keys(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns whose values make records alike."""
        raise NotImplementedError  # abstract

    def sensitive_columns(self, evidence: Evidence) -> tuple[str, ...]:  # noqa: ARG002  — many count nothing
        """The columns beside the keys whose values it counts (``classes.counts``)."""
        return ()

    def classes(self, evidence: Evidence) -> Classes:
        """The classes of the table that an intruder sees."""
        raise NotImplementedError  # abstract

    def of_sizes(self, persons: Ints) -> Floats:
        """The value of classes of so many persons, the more the better, where ``class_values.are_sizes``."""
        raise NotImplementedError  # abstract

    def of_classes(self, evidence: Evidence, classes: Classes) -> Floats:  # noqa: ARG002  — others look at it
        """The value of each class; the worst of them is the score."""
        return self.of_sizes(classes.persons)

    def always_failing(self, evidence: Evidence, classes: Classes, level: float) -> Floats:  # noqa: ARG002
        """Say what share of each class at least is worse than a level, however finely it is divided.

        Of classes of records whose persons nobody tells. Where that is above what may be suppressed, a search
        of recodings need not look at any finer one. Nothing is known of a measure that does not say.
        """
        return np.zeros(len(classes))


class EstimatedMeasure(Measure):
    """A measure that estimates, and says how far off it may be: with an interval of a stated confidence.

    A requirement may rely on it by saying so: ``individual-risk <= 0.05 at 95%`` counts the far end of an
    interval of that confidence. The score has ``Score.confidence``, unless the interval cannot be relied on.
    """

    confidence: float = param(
        95.0, "How sure the interval is to hold the truth.", ge=50, lt=100, unit="per cent"
    )

    def far_of_classes(self, evidence: Evidence, classes: Classes) -> Floats:
        """The far end of the interval of each class, where classes tell it all: what is enforced."""
        raise NotImplementedError  # abstract: for those that are a ClassMeasure too

    def far_of_records(self, evidence: Evidence) -> Floats | None:  # noqa: ARG002  — many have none
        """The far end of each record's own interval, if the score is that of the worst record; else None."""
        return None
