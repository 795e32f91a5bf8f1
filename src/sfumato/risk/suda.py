"""Special uniques: who is alone in few keys already, by how few and how often (SUDA), and its worth."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, prod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Scaling, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Codes, Flags, Floats
from sfumato.risk._key_measures import Facts, KeyMeasure, by_original, counted_in, of_records
from sfumato.risk._sampling import SampledMeasure
from sfumato.risk._subsets import MAX_SUBSETS, KeyCodes, SmallestUnsafe, too_many

Scale = Literal["elliot", "ihsn"]
_SCALE_MEANS = {
    "elliot": "As published: the product of the numbers of remaining keys, up to `dimension`.",
    "ihsn": "As by IHSN: the number of key sets it makes unique, divided by the number of sets of its size.",
}

#: So many subsets of the keys are gone through level by level at most, if what is kept of them takes so many
#: bytes, with so many for each beside its bits; and records by subsets in the recursion.
_MAX_SUBSETS, _MAX_BYTES, _OVERHEAD, _MAX_LOOKS = 1_000_000, 1_000_000_000, 200, 1_000_000_000_000

#: The sets of so many keys are few enough to keep a few bytes of each in the recursion.
_MOST_KEYS = 62

#: So many values of each key have their share told.
_MOST_VALUES = 10

_ESTIMATED = "the people behind unique records are estimated"


def _elliot(size: int, n_keys: int, dimension: int) -> float:
    r"""What a minimal unique of ``size`` keys adds: :math:`\prod_{i=k}^{\min(M, A-1)} (A - i)`."""
    return float(prod(n_keys - i for i in range(size, min(dimension, n_keys - 1) + 1)))


def _ihsn(size: int, n_keys: int, dimension: int) -> float:  # noqa: ARG001  — it is the same at every depth
    r"""What a minimal unique of ``size`` keys adds: :math:`(2^{A-k} - 1) / \binom{A}{k}`."""
    return (2.0 ** (n_keys - size) - 1) / comb(n_keys, size)


class _SudaTotals(NamedTuple):
    """What the minimal uniques of all records add up to."""

    scores: Floats  # [records]
    special: Flags  # [records] who has one
    numbers: dict[int, int]  # how many there are of each size
    by_code: list[Floats]  # [keys][values] the worth of those in which a value takes part


_SCALES: dict[Scale, Callable[[int, int, int], float]] = {"elliot": _elliot, "ihsn": _ihsn}


class Suda(KeyMeasure):
    r"""Highest score of a record by its minimal sample uniques: the fewer keys single it out, the higher.

    A minimal sample unique (MSU) of a record is a set of keys in which nobody else is like it, while in every
    part of the set somebody is. With :math:`A` keys, and MSUs of up to :math:`M` of them (``dimension``),

    .. math::

        \mathrm{score}(r) = \sum_{S \in \mathrm{MSU}(r),\ |S| = k}\ \prod_{i=k}^{\min(M,\, A-1)} (A - i).

    On the other ``scale`` in use, *ihsn*, an MSU of :math:`k` keys adds :math:`(2^{A-k} - 1) / \binom{A}{k}`:
    the sets that it makes unique beside itself, by the number of sets of its size. The measure is the score
    of the worst record.

    See Also
    --------
    DisSuda : what the scores are worth as chances.
    UnsafeCombinations : the share of records with rare combinations, rare for any k.

    Notes
    -----
    **How to read it.** Who is singled out by few keys (a *special unique*) is more likely unique in the
    population too. Scores compare records of one file: they grow with the number of keys and have no unit.
    ``by_record`` is each record's score. ``by_column`` is the share of all scores from MSUs in which a key
    takes part: the higher, the more it helps to recode it; an MSU has several keys, so they may add up to
    more than 1. ``by_value`` has that of the values of each key which tell most, and is as private as they
    are. ``details`` has the number of MSUs of each size (``uniques_1``, …), of records with one
    (``special``) and the mean score.

    **Doubt.** Exact for the file: all MSUs up to the size are found. A record that only more keys than
    ``dimension`` single out scores 0, and so does, on the scale *ihsn*, one that only all keys do. A
    generalised value is a value like others, and so is a decimal: nothing is rounded.

    **Missing.** A missing key is a value of its own by default (``category``). As ``any`` it agrees with
    every value. At ``worst`` a record is alone wherever it lacks a key, and helps nobody else.

    **Units.** Where a column tells whose record it is, a combination is unique if one person has it.

    **Cost.** A pass for each subset of up to ``dimension`` keys over those who are alone in all keys and one
    record of each other combination, less who is alone in fewer keys already; and a bit for each of them
    and subset of fewer keys. It takes up to 62 keys, and refuses more than 10¹² records by subsets. Where
    persons are counted, or a missing key agrees with every value, all records are gone through, of up to
    1,000,000 subsets, or 20,000 if those bits took more than a GB.

    Examples
    --------
    >>> jobs = ["cook", "cook", "cook", "smith", "cook"]
    >>> frame = pl.DataFrame({"sex": ["m", "m", "f", "f", "f"], "job": jobs, "town": [1, 1, 1, 1, 1]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))
    >>> Suda().score(Evidence(table), Run(seed=1)).by_record.tolist()
    [0.0, 0.0, 0.0, 2.0, 0.0]
    """

    name = "suda"
    vetted = "brute-forced: unit/risk/test_suda.py::test_scores_by_enumeration"
    synonyms: ClassVar[tuple[str, ...]] = ("suda2", "special uniques", "minimal sample uniques")
    family = "equivalence classes"
    tells = Tells(places={"report": 9, "uniques": 1})
    scales = Scaling(exact_up_to=200_000)
    title = "SUDA"
    better = "low"
    bounds = (0.0, np.inf)
    references = ("elliot2002", "elliot2005", "manning2008")
    cost = "n"

    dimension: int = param(3, "Largest number of keys in a minimal unique.", ge=1, le=6, symbol="M")
    scale: Scale = param("elliot", "How much a minimal unique adds to a score.", choices=_SCALE_MEANS)

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if value <= 0:
            return "no combination of a few keys makes it unique"
        return f"combinations of a few keys make it unique, with a score of {value:.4g}"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse more subsets than can be gone through, or kept."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        names, table = self.keys(evidence), seen_table(evidence)
        most = self._most_of_levels(table, len(names))
        if self._can_recurse(table, names):
            most = max(most, _MAX_LOOKS // max(len(table), 1))
        return too_many(self.name, len(names), self._sizes(len(names)), most=most)

    def _sizes(self, n_keys: int) -> range:
        return range(1, min(self.dimension, n_keys) + 1)

    def _most_of_levels(self, table: Table, n_keys: int) -> int:
        """How many subsets can be gone through level by level: what is kept of one is needed for the next."""
        bytes_stored = comb(n_keys, max(self._sizes(n_keys)[-1] - 1, 0)) * (len(table) // 8 + _OVERHEAD)
        return _MAX_SUBSETS if bytes_stored <= _MAX_BYTES else MAX_SUBSETS

    def _can_recurse(self, table: Table, names: tuple[str, ...]) -> bool:
        """Whether the recursion can tell who is alike: records one by one, by equal values."""
        equal = self.missing != "any" or not any(table.missing(name).any() for name in names)
        few = len(names) <= _MOST_KEYS
        return equal and few and table.schema.only_role(Role.PERSON) is None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Take the worst record's score."""
        scores, shares, details = self.record_scores(evidence, run)
        return Score(
            value=float(scores.max()),
            **shares,
            by_record=by_original(evidence, scores, worst="high"),
            details=details,
        )

    def record_scores(self, evidence: Evidence, run: Run) -> tuple[Floats, dict[str, Any], Facts]:
        """Each record's score, shares of keys, what to tell."""
        table, names = seen_table(evidence), self.keys(evidence)
        keys, n_keys = KeyCodes.of(table, names), len(names)
        recurse = self._can_recurse(table, names)
        found = self.by_recursion(keys, run) if recurse else self.by_levels(keys, run)
        total = float(found.scores.sum())
        by_value = [values / (total or 1.0) for values in found.by_code]
        details: Facts = {
            "columns": n_keys,
            "records": len(table),
            **{f"uniques_{size}": number for size, number in found.numbers.items()},
            "special": int(found.special.sum()),
            "mean_score": total / len(table),
            "counted": counted_in(table),
        }
        shares = {
            "by_column": {name: float(part.sum()) for name, part in zip(keys.names, by_value, strict=True)},
            "by_value": {
                name: _largest_shares(keys, place, part)
                for place, (name, part) in enumerate(zip(keys.names, by_value, strict=True))
            },
        }
        return keys.in_table_order(found.scores).astype(np.float64), shares, details

    def by_levels(self, keys: KeyCodes, run: Run) -> _SudaTotals:
        """Go through all subsets, small ones first."""
        n, n_keys = len(keys.table), len(keys.names)
        part_of = [np.zeros(cut.n_classes) for cut in keys.columns]
        found = _SudaTotals(np.zeros(n), np.zeros(n, dtype=np.bool_), {}, part_of)
        search = SmallestUnsafe(keys, k=2, missing=self.missing, dimension=self.dimension)
        for size in search.sizes:
            worth, n_uniques = self.worth(size, n_keys), 0
            for each in run.track(f"{self.title} of {size}", search.of_size(size), comb(n_keys, size)):
                rows = np.flatnonzero(each.smallest)
                if len(rows):
                    found.scores[rows] += worth
                    found.special[rows] = True
                    for key in each.subset:
                        np.add.at(part_of[key], keys.columns[key].of_record[rows], worth)
                    n_uniques += len(rows)
            found.numbers[size] = n_uniques
        return found

    def by_recursion(self, keys: KeyCodes, run: Run) -> _SudaTotals:
        """Leave out who is alone already."""
        n_keys = len(keys.names)
        columns = [self._codes_of_key(keys, key) for key in range(n_keys)]
        worths = [0.0, *(self.worth(size, n_keys) for size in self._sizes(n_keys))]
        found = kernels.special_uniques.minimal_uniques(columns, worths, run.ticker(self.title))
        ends = np.cumsum([int(column.max()) + 1 for column in columns])
        parts = []
        for key, part in enumerate(np.split(found.by_code, ends[:-1])):
            own, gone = keys.columns[key], keys.missing[key]
            values = part[: own.n_classes].copy()
            if gone is not None and self.missing == "worst":
                values[own.of_record[np.argmax(gone)]] = part[own.n_classes :].sum()
            parts.append(values)
        return _SudaTotals(
            found.scores, found.special, dict(enumerate(found.numbers[1:].tolist(), start=1)), parts
        )

    def _codes_of_key(self, keys: KeyCodes, key: int) -> Codes:
        """The codes of a key; at worst each missing value is like no other."""
        own, gone = keys.columns[key], keys.missing[key]
        if gone is None or self.missing != "worst":
            return own.of_record
        return np.where(gone, own.n_classes - 1 + np.cumsum(gone), own.of_record).astype(np.int32)

    def worth(self, size: int, n_keys: int) -> float:
        """What a minimal unique of ``size`` of the keys adds to a score."""
        return _SCALES[self.scale](size, n_keys, self.dimension)


def _largest_shares(keys: KeyCodes, place: int, shares: Floats) -> dict[str, float]:
    """The shares of the values of a key that tell most, by their text; the largest first."""
    name, codes = keys.names[place], keys.columns[place].of_record
    top_codes = [code for code in np.argsort(-shares, kind="stable")[:_MOST_VALUES] if shares[code] > 0]
    rows = np.arange(len(codes)) if keys.order is None else keys.order
    examples = [int(rows[np.argmax(codes == code)]) for code in top_codes]
    values = to_text(keys.table.frame[name].gather(examples), keys.table.nodes.get(name))
    texts = values.cast(pl.String).fill_null("missing").to_list()
    return dict(zip(texts, shares[top_codes].tolist(), strict=True))


class DisSuda(SampledMeasure, Suda):
    r"""Highest probability that a match with a unique record is correct, by its SUDA score (DIS-SUDA).

    In a sample of the fraction :math:`\pi`, with :math:`s_1` combinations of all keys that one person has and
    :math:`s_2` that two have, the chance that who matches a unique record is its person is estimated as

    .. math::

        \theta = \frac{\pi s_1}{\pi s_1 + 2 (1 - \pi) s_2}

    for the file as a whole (data intrusion simulation, DIS). Behind each unique record stand
    :math:`1/\theta` people of the population on average. DIS-SUDA shares out those beside its person by the
    scores of the unique records:

    .. math::

        \frac{1}{p_r} = 1 + s_1 \left(\frac{1}{\theta} - 1\right)
            \frac{\mathrm{score}(r)^{-q}}{\sum_u \mathrm{score}(u)^{-q}},
        \qquad q = 1 + \frac{8 - A}{20} \text{ for } A \text{ keys.}

    See Also
    --------
    Suda : the scores, and which keys they come from.

    Notes
    -----
    **How to read it.** Give the share of the population that was drawn, or its size; else weights tell: the
    mean of one over them, which a single huge weight cannot take to 0 (their sum can), and which is the same
    where all are equal. The number is the chance of the record at the highest risk; ``by_record`` has all, 0
    for who is not unique in the keys. ``dis`` in the details is :math:`\theta`, and ``fraction`` is
    :math:`\pi`. ``by_column`` is that of SUDA.

    **As elsewhere.** The exponent :math:`q` and the scale *ihsn* are those of IHSN's implementation, which
    sdcMicro goes back to (``original_scores = FALSE``); with more than 28 keys, where :math:`q` would fall
    below 0 and turn the order round, it is 0. Both look at minimal uniques of every size, so the default
    ``dimension`` is as large as can be: a smaller one may understate, of up to seven keys this one does not.
    On the scale *ihsn* who is alone in all keys together, and no fewer, has the score 0, and there the chance
    0. Here nobody who is unique has: one minimal unique of the largest size is counted, so that all chances
    are at least theirs (sdcMicro's testdata with seven keys: .3145, not .3115, for one such record of 157).

    **Doubt.** An estimate, *approximate* always: :math:`\theta` rests on the number of pairs, and how it is
    shared out is a rule of thumb. It holds for samples drawn at random with about the same chance for all.
    Who is unique in all keys but in no ``dimension`` of them counts as having one minimal unique of the
    largest size. Without pairs :math:`\theta` is 1, which is on the safe side.

    **Missing.** As for SUDA; *not-estimable* where a missing key counts for any value: classes that overlap
    have no number of pairs.

    **Units.** Where a column tells whose record it is, persons are counted.

    **Cost.** That of SUDA.
    """

    name = "dis-suda"
    vetted = "published: unit/risk/test_suda.py::test_practice_guide_dis"
    synonyms = ("suda2",)
    family = "re-identification"
    title = "DIS-SUDA"
    bounds = (0.0, 1.0)
    references = ("skinner2002", "elliot2005", "manning2008")

    dimension: int = param(6, "Largest number of keys in a minimal unique.", ge=1, le=6, symbol="M")
    scale: Scale = param("ihsn", "How much a minimal unique adds to a score.", choices=_SCALE_MEANS)

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if value <= 0:
            return "it is not unique in the keys"
        return f"a match with it is correct with a probability of {value:.3g}"

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Share out the people behind unique records by their scores."""
        scores, shares, details = self.record_scores(evidence, run)
        classes = self.classes(evidence)
        fraction = int(classes.persons.sum()) / self.people(evidence)
        theta, alone = _dis(classes, fraction), classes.persons == 1
        chances = np.zeros(len(classes))
        if alone.any():
            chances[alone] = self._chances(scores[classes.examples[alone]], theta, len(classes.keys))
        return Score(
            value=float(chances.max()),
            status=Status.APPROXIMATE if alone.any() else Status.OK,
            reason=_ESTIMATED + self.weights_note(evidence) if alone.any() else "",
            **shares,
            by_record=by_original(evidence, of_records(classes, chances), worst="high"),
            details={**details, "dis": theta, "fraction": fraction, "unique": int(alone.sum())},
        )

    @property
    def estimates(self) -> str:
        """What is estimated of the file as a whole."""
        return "matches with unique records that are right"

    def true_value(self, alike: Floats, people: Floats) -> float | None:
        """The share of matches with unique records that are right."""
        ones = alike == 1
        return float(ones.sum() / people[ones].sum()) if ones.any() else 0.0

    def estimate_of(self, score: Score) -> float:
        """The chance of the file as a whole; the score is that of the worst record."""
        return float(score.details.get("dis", score.value))

    def _chances(self, scores: Floats, theta: float, n_keys: int) -> Floats:
        """The chance of each unique class, whose score is given."""
        least = self.worth(min(self.dimension, max(n_keys - 1, 1)), n_keys) or 1.0
        steepness = max(1 + (8 - n_keys) / 20, 0.0)
        shares = np.maximum(scores, least) ** -steepness
        chances: Floats = 1 / (1 + len(scores) * (1 / theta - 1) * shares / shares.sum())
        return chances


def _dis(classes: Classes, fraction: float) -> float:
    """The chance that a match with a unique record is right, in the file as a whole; 1 without pairs."""
    ones, pairs = int((classes.persons == 1).sum()), int((classes.persons == 2).sum())  # noqa: PLR2004
    others = 2 * max(1 - fraction, 0.0) * pairs
    return fraction * ones / (fraction * ones + others) if ones else 0.0
