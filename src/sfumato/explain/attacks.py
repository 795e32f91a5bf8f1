"""Which attack reaches a record: what each measure of risk says of it alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.core import registry
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.run import Run
from sfumato.data.classes.classes import seen_table
from sfumato.data.evidence import Evidence
from sfumato.data.table import Floats, Ints
from sfumato.errors import ParameterError, RefusedError

#: Costs of measures that are asked without being named.
_LIGHT = frozenset({"n", "n log n"})


@dataclass(frozen=True)
class Attack:
    """What a measure says of one record.

    ``value`` is the record's own, ``whole`` the score of the file, ``guessing`` what guessing would give
    (None where that means nothing), ``safer`` the share of the other records that are at less risk.
    """

    measure: str
    title: str
    value: float
    sentence: str
    better: str
    whole: float | None
    guessing: float | None
    safer: float
    status: str

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private."""
        return asdict(self)


@dataclass(frozen=True)
class Riskiest:
    """The records most at risk by a measure, the riskiest first; of equals, those that come first.

    ``as_risky`` counts the records at no less risk than the last of them: if there are more than are listed,
    which of the equals are listed means nothing.
    """

    measure: str
    title: str
    better: str
    rows: Ints
    values: Floats
    as_risky: int
    records: int

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private."""
        said = {key: value for key, value in vars(self).items() if key not in {"rows", "values"}}
        return {
            **said,
            "riskiest": [
                {"record": row, "value": value}
                for row, value in zip(self.rows.tolist(), self.values.tolist(), strict=True)
            ],
        }


def usual_attacks() -> list[Measure]:
    """The measures of risk that are asked when none is named: the usual ones, and all that cost little."""
    return [
        cls()
        for cls in registry.measures().values()
        if cls.aspect == "risk" and (cls.usual or cls.cost in _LIGHT)
    ]


def attacks_on(
    evidence: Evidence, row: int, measures: Sequence[Measure], run: Run
) -> tuple[tuple[Attack, ...], dict[str, str]]:
    """What each measure says of a record, the gravest first; and why the others have nothing to say."""
    found, silent = [], {}
    for measure in measures:
        score = measure.score(evidence, run.at("measure", str(measure)))
        reason = _nothing_said(score, row)
        if reason:
            silent[str(measure)] = reason
        else:
            found.append(_attack(measure, score, row, evidence))
    found.sort(key=lambda attack: -attack.safer)  # stable: as the measures come
    return tuple(found), silent


def _nothing_said(score: Score, row: int) -> str:
    if score.status is Status.REFUSED:
        return score.reason
    if score.by_record is None:
        return score.reason or "it says nothing of single records"
    return "nothing is known of this record" if math.isnan(score.by_record[row]) else ""


def _attack(measure: Measure, score: Score, row: int, evidence: Evidence) -> Attack:
    assert score.by_record is not None
    value = float(score.by_record[row])
    severity = _severity(measure, score.by_record)
    others = severity[~np.isnan(severity)]
    less = int((others < severity[row]).sum())
    guessing = score.baseline
    if guessing is None and measure.name in _CHANCES:
        guessing = 1 / max(len(seen_table(evidence)), 1)
    return Attack(
        measure=str(measure),
        title=measure.title,
        value=value,
        sentence=sentence_of(measure, value),
        better=measure.better,
        whole=score.value if math.isfinite(score.value) else None,
        guessing=guessing,
        safer=less / max(len(others) - 1, 1),
        status=score.status.value,
    )


def _severity(measure: Measure, by_record: Floats) -> Floats:
    return -by_record if measure.better == "high" else by_record


def riskiest(evidence: Evidence, measure: Measure, count: int, run: Run) -> Riskiest:
    """Find the records most at risk by a measure."""
    if count < 1:
        raise ParameterError(f"the number of riskiest records must be at least 1, got: `{count}`")
    score = measure.score(evidence, run.at("measure", str(measure)))
    if score.by_record is None:
        reason = score.reason or "it says nothing of single records"
        raise RefusedError(
            f"{measure.name} must say something of single records to find the riskiest, got: {reason}",
            hint="choose another measure; `sfumato measures` lists them",
        )
    severity = _severity(measure, score.by_record)
    known = np.flatnonzero(~np.isnan(severity))
    rows = known[np.argsort(-severity[known], kind="stable")][:count]
    return Riskiest(
        measure=str(measure),
        title=measure.title,
        better=measure.better,
        rows=rows.astype(np.int64),
        values=score.by_record[rows],
        as_risky=int((severity[known] >= severity[rows[-1]]).sum()) if len(rows) else 0,
        records=len(known),
    )


# In words ------------------------------------------------------------------------------------------------


def sentence_of(measure: Measure, value: float) -> str:
    """Say in words what a measure's number means for one record."""
    if measure.name in _CHANCES:
        return f"an intruder who {_CHANCES[measure.name]} {_chance(value)}"
    if measure.name in _SENTENCES:
        return _SENTENCES[measure.name](value)
    side = "lower" if measure.better == "low" else "higher"
    return f"{measure.title} of this record is {value:.4g}; {side} is safer"


def _chance(value: float) -> str:
    if value >= 1:
        return "finds it for sure"
    if value <= 0:
        return "does not find it"
    return f"finds it with a chance of {value:.3g}"


def _persons(value: float) -> str:
    return "nobody else" if value <= 1 else f"{value - 1:,.0f} other" + ("s" if value > 2 else "")  # noqa: PLR2004


#: Measures whose number for a record is the chance to find it: how the intruder goes about it.
_CHANCES: Mapping[str, str] = {
    "certain-links": "rules out by the published bound all that cannot be",
    "dbrl": "takes the nearest released record",
    "direct-matching": "looks for a record that says the same",
    "distinction": "knows the keys",
    "gdbrl": "links everybody at once, one to one,",
    "interval-linkage": "looks among the records all of whose values are near",
    "journalist-risk": "does not know who is in the file",
    "marketer-risk": "looks for everybody",
    "probabilistic-linkage": "weighs agreements and disagreements of columns",
    "prosecutor-risk": "knows that it is in the file, and its keys,",
    "rank-interval-linkage": "knows how far ranks may have moved",
}

#: What other numbers of a record mean.
_SENTENCES: Mapping[str, Callable[[float], str]] = {
    "attribute-disclosure": lambda value: (
        "all who share its keys share a sensitive value, which is told to whoever knows the keys"
        if value > 0
        else "those who share its keys differ in the sensitive columns"
    ),
    "attribute-linkage": lambda value: (
        f"of its values, {value:.0%} are learnt from the released record that is nearest in the other columns"
    ),
    "interval-disclosure": lambda value: (
        f"of its values, {value:.0%} lie within the interval around what was released for it"
    ),
    "k-anonymity": lambda value: (
        f"{_persons(value)} looks like it in the keys"
        if value <= 2  # noqa: PLR2004
        else f"{_persons(value)} look like it in the keys"
    ),
    "l-diversity": lambda value: (
        f"who shares its keys has {value:.3g} different sensitive values (effectively)"
    ),
    "permutation-distance": lambda value: (
        f"the nearest released record is {value:.2%} of all ranks away in its farthest column"
    ),
    "rank-linkage": lambda value: (
        f"log rank distance to the nearest released record, per column: {value:.3g}"
    ),
    "t-closeness": lambda value: (
        f"the sensitive values of those who share its keys are {value:.3g} (of at most 1) from those of all"
    ),
    "uniqueness": lambda value: (
        "it is alone in what an intruder knows" if value > 0 else "others may stand behind the same keys"
    ),
    "unsafe-combinations": lambda value: (
        "no combination of a few keys makes it rare"
        if value <= 0
        else f"{value:.0f} smallest combination{'s' if value > 1 else ''} of a few keys make it rare"
    ),
}
