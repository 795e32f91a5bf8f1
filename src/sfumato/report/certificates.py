"""Certificates in the private evidence, with which an optimum can be checked again without sfumato.

Of a linkage they are its prices, of small files and plain numbers: `check_original.py` computes the distances
anew by itself. Of a recoding they are its levels and hierarchies: `check_lattice.py` goes through the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sfumato.core.measure import APPROACH, Measure, Score
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.generalised.nodes import WILDCARD
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Codes, Ints, count_distinct
from sfumato.methods.recoding import Recoding
from sfumato.releasing.outcome import TableOutcome
from sfumato.report.release_scores import ReleaseScores
from sfumato.risk.global_linkage import Certificate

#: More records are not compared pair by pair in plain Python.
MAX_RECORDS = 2000
#: Keys of more values are not told.
MAX_VALUES = 50_000


def certificates_of(tables: Iterable[ReleaseScores]) -> list[dict[str, Any]]:
    """The certificates of one table, as dictionaries for JSON; none of several tables."""
    every = list(tables)
    return list(_certificates(every[0])) if len(every) == 1 else []


def _certificates(scores: ReleaseScores) -> Iterator[dict[str, Any]]:
    part = scores.part
    fitted, steps = part.release.fitted, part.release.provenance
    if isinstance(fitted, Recoding) and steps and "nodes_looked_at" in steps[0].figures:
        yield _levels_of(part, fitted, steps[0].columns)
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


def _levels_of(part: TableOutcome, fitted: Recoding, columns: Sequence[str]) -> dict[str, Any]:
    """The level of each key and what is to be known of its hierarchy; or why that is not told."""
    named, known = fitted.hierarchies, part.release.resources
    trees = {name: known.get(str(named[name])) for name in columns} if named else {}
    found: dict[str, Any] = {"levels": {name: fitted.levels[name] for name in columns}}
    sound = {name: each for name, each in trees.items() if isinstance(each, Hierarchy)}
    if len(sound) < len(columns) or any(each.root != WILDCARD for each in sound.values()):
        return {**found, "why": "a key has no hierarchy with * at its root"}
    keys = {name: KeyLevels.of(part.original, name, tree) for name, tree in sound.items()}
    if sum(len(each.leaves) for each in keys.values()) > MAX_VALUES:
        return {**found, "why": f"the keys have more than {MAX_VALUES:,} values"}
    rows = {name: _rows_of(tree, keys[name].leaves[1:]) for name, tree in sound.items()}
    return {**found, "hierarchies": rows}


def _rows_of(tree: Hierarchy, leaves: Codes) -> dict[str, Any]:
    """The labels of these leaves at each level, and how many leaves each label covers."""
    labels, sizes = [], []
    for level in range(tree.height):
        codes = tree.leaf_codes(level)
        own = tree.labels(level).gather(codes[leaves]).to_list()
        labels.append(own)
        sizes.append(dict(zip(own, np.bincount(codes)[codes[leaves]].tolist(), strict=True)))
    return {"rows": [list(row) for row in zip(*labels, strict=True)], "sizes": sizes}


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
    if sources is None or count_distinct(sources) < len(sources) or (sources < 0).any():
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
