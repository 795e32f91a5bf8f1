"""Certificates of linkages in the private evidence: prices with which their optimum can be checked again.

Only of small files and plain numbers: `check_original.py` computes the distances anew by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sfumato.core.measure import APPROACH, Measure, Score
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Ints
from sfumato.releasing.outcome import TableOutcome
from sfumato.report.release_scores import ReleaseScores
from sfumato.risk.global_linkage import Certificate

#: More records are not compared pair by pair in plain Python.
MAX_RECORDS = 2000


def certificates_of(tables: Iterable[ReleaseScores]) -> list[dict[str, Any]]:
    """The certificates of one table, as dictionaries for JSON; none of several tables."""
    every = list(tables)
    return list(_certificates(every[0])) if len(every) == 1 else []


def _certificates(scores: ReleaseScores) -> Iterator[dict[str, Any]]:
    part = scores.part
    for intruder in scores.intruders:
        names = sorted(name for name in intruder.known if name in part.release.first.schema)
        for measure, score in intruder.risks.values():
            proof = score.proof
            if not isinstance(proof, Certificate) or not _is_simple(part, names, measure, score):
                continue
            released = _places_in_file(part, names, proof)
            if released is not None:
                yield {
                    "scenario": intruder.name,
                    "columns": names,
                    "value": proof.value,
                    "records": proof.rows.tolist(),
                    "released": released.tolist(),
                    "partners": proof.partners.tolist(),
                    "row_prices": proof.row_prices.tolist(),
                    "column_prices": proof.column_prices.tolist(),
                }


def _is_simple(part: TableOutcome, names: list[str], measure: Measure, score: Score) -> bool:
    """Whether the distances are Euclidean, in deviations, between complete columns of numbers."""
    first, settings = part.release.first, measure.to_dict()
    usual = {"metric": "euclidean", "scale": "deviation", "pairs": "all"}
    if APPROACH in score.details or part.further or not part.release.plain or not names:
        return False
    if not len(first) == len(part.original) <= MAX_RECORDS or score.details.get("gap"):
        return False
    return all(settings.get(key) == value for key, value in usual.items()) and all(
        table.schema[name].kind is Kind.CONTINUOUS
        and not table.is_generalised(name)
        and not table.missing(name).any()
        for table in (part.original, first)
        for name in names
    )


def _places_in_file(part: TableOutcome, names: list[str], proof: Certificate) -> Ints | None:
    """Where the released records of a proof stand in the file, which was shuffled after it was judged.

    None if the prices of linked records are their distances in neither order.
    """
    first, sources = part.release.first, part.release.source_rows
    if sources is None or len(np.unique(sources)) < len(sources) or (sources < 0).any():
        return None
    units = [part.original.numbers(name).std() or 1.0 for name in names]
    known, shown = (
        np.column_stack([table.numbers(name) / unit for name, unit in zip(names, units, strict=True)])
        for table in (part.original, first)
    )
    prices = (proof.row_prices + proof.column_prices[proof.partners]).astype(np.float64)
    for places in (proof.released, np.argsort(sources)[proof.released]):
        gaps = known[proof.rows] - shown[places[proof.partners]]
        lengths = np.sqrt((gaps**2).sum(axis=1))
        unit = 2.0 ** np.rint(np.log2(lengths.sum() / prices.sum())) if prices.sum() > 0 else 0.0
        if np.allclose(lengths, prices * unit, rtol=0, atol=1e-9 + 2 * unit):
            return places
    return None
