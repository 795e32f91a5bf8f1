"""Which attack reaches a record: the value of each measure of risk for it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.run import Run
from sfumato.errors import ParameterError, RefusedError
from sfumato.kernels.arrays import Floats, Ints
from sfumato.study.evaluate import score_of

#: Costs of measures that are asked without being named.
_LIGHT = frozenset({"n", "n log n"})
_NOT_BY_RECORD = "it has no values for single records"


@dataclass(frozen=True)
class Attack:
    """The value of a measure for one record.

    ``value`` is the record's own, ``whole`` the score of the file, ``guessing`` what guessing would give
    (None where that means nothing), ``safer`` the share of the other records that are at less risk,
    ``not_seen`` what the measure is blind to, if it says so.
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
    not_seen: str

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private."""
        return asdict(self)


@dataclass(frozen=True)
class RiskiestRecords:
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
        payload = {key: value for key, value in vars(self).items() if key not in {"rows", "values"}}
        return {
            **payload,
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
        if cls.aspect == "risk" and ("default" in cls.places() or cls.cost in _LIGHT)
    ]


def attacks_on(
    evidence: Evidence, row: int, measures: Sequence[Measure], run: Run
) -> tuple[tuple[Attack, ...], dict[str, str]]:
    """What each measure says of a record, the riskiest first; and why the others have no value."""
    found, silent = [], {}
    for measure in measures:
        score = score_of(measure, evidence, run)
        reason = _why_no_record_risk(score, row)
        if reason:
            silent[str(measure)] = reason
        else:
            found.append(_attack(measure, score, row, evidence))
    found.sort(key=lambda attack: -attack.safer)  # stable: as the measures come
    return tuple(found), silent


def _why_no_record_risk(score: Score, row: int) -> str:
    if score.status is Status.REFUSED:
        return score.reason
    if score.by_record is None:
        return score.reason or _NOT_BY_RECORD
    return "it has no value for this record" if math.isnan(score.by_record[row]) else ""


def _attack(measure: Measure, score: Score, row: int, evidence: Evidence) -> Attack:
    assert score.by_record is not None
    value = float(score.by_record[row])
    severity = _severity(measure, score.by_record)
    others = severity[~np.isnan(severity)]
    less = int((others < severity[row]).sum())
    guessing = score.baseline
    if guessing is None and measure.tells.intruder:
        guessing = 1 / max(len(seen_table(evidence)), 1)
    return Attack(
        measure=str(measure),
        title=measure.title,
        value=value,
        sentence=measure.sentence(value),
        better=measure.better,
        whole=score.value if math.isfinite(score.value) else None,
        guessing=guessing,
        safer=less / max(len(others) - 1, 1),
        status=score.status.value,
        not_seen=measure.tells.not_seen,
    )


def _severity(measure: Measure, by_record: Floats) -> Floats:
    return -by_record if measure.better == "high" else by_record


def riskiest(evidence: Evidence, measure: Measure, count: int, run: Run) -> RiskiestRecords:
    """Find the records most at risk by a measure."""
    if count < 1:
        raise ParameterError(f"the number of riskiest records must be at least 1, got: `{count}`")
    score = score_of(measure, evidence, run)
    if score.by_record is None:
        raise RefusedError(
            f"{measure.name} cannot rank records: {score.reason or _NOT_BY_RECORD}",
            hint="choose another measure; `sfumato measures` lists them",
        )
    severity = _severity(measure, score.by_record)
    known = np.flatnonzero(~np.isnan(severity))
    rows = known[np.argsort(-severity[known], kind="stable")][:count]
    return RiskiestRecords(
        measure=str(measure),
        title=measure.title,
        better=measure.better,
        rows=rows.astype(np.int64),
        values=score.by_record[rows],
        as_risky=int((severity[known] >= severity[rows[-1]]).sum()) if len(rows) else 0,
        records=len(known),
    )
