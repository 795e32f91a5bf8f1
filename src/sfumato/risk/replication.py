"""What a release repeats of the original: unique combinations, and values that it makes certain.

Made for synthetic data, where no record is anybody's; they hold for every release of exact values.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import owners_of
from sfumato.core.measure import Counting, Laws, Measure, Needs, Score, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import COMPARABLE, Role
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct
from sfumato.risk._attack import number_records, stack_tables, unlearnable
from sfumato.risk._key_measures import SENSITIVE_HELP
from sfumato.risk._spaces import NOISE_NOT_SEEN, why_generalised, why_incomparable
from sfumato.risk.linkage import mean_of_best


class _ReplicationMeasure(Measure):
    """A measure of combinations of keys that stand in both tables."""

    aspect = "risk"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    cost = "n log n"
    needs = Needs(records=True)
    counts = Counting(
        pools_copies=True,
        compares_kept_relations=True,
        compares_equal=True,
        laws=Laws(copies_hide_nobody=True),
    )
    references = ("raab2024",)

    def looked_at(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns whose values are compared."""
        return self.columns(evidence)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse what cannot be compared value by value."""
        reason = super().refuses(evidence) or why_incomparable(self.name, evidence, self.kinds)
        return reason or why_generalised(
            self.name, self.looked_at(evidence), evidence.original, evidence.protected
        )

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that there is nobody to look at."""
        if (reason := super().why_not_estimable(evidence)) is not None:
            return reason
        if all(evidence.original.missing(name).all() for name in self.columns(evidence)):
            return "all values in the columns that the intruder knows are missing"
        return None


def _number_combinations(evidence: Evidence, names: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Number the combinations of some columns alike in both tables; what is missing is a value of its own."""
    assert evidence.protected is not None  # measures see to it
    numbers = number_records(stack_tables(evidence.original, evidence.protected, names))
    return numbers[: len(evidence.original)], numbers[len(evidence.original) :]


def _share(evidence: Evidence, hits: Floats) -> float:
    """The share of persons who are hit: of those in the release, or of all if that is more.

    Where nobody can tell who is in it, they are no more than the release has persons, and all who are hit may
    be among them. Records that are nobody's may be of anyone.
    """
    persons, rows = persons_of(evidence.original), evidence.source_rows
    share = mean_of_best(persons, hits)
    if rows is not None:
        inside = np.isin(persons, persons[rows[rows >= 0]])
        return float(np.fmax(share, mean_of_best(persons[inside], hits[inside])))
    if evidence.synthetic:
        return share
    size = count_distinct(persons[~np.isnan(hits)])
    return min(share * size / min(size, _released_persons(evidence)), 1.0)


def _released_persons(evidence: Evidence) -> int:
    """How many persons a release has at least whose records do not map.

    Without a column of persons in it each is taken to have as many records as in the original.
    """
    assert evidence.protected is not None  # measures see to it
    if evidence.protected.schema.with_role(Role.PERSON):
        return count_distinct(owners_of(evidence))
    by_person = len(evidence.original) / count_distinct(persons_of(evidence.original))
    return math.ceil(len(evidence.protected) / by_person)


class ReplicatedUniques(_ReplicationMeasure):
    r"""Share of persons who are unique in the keys and whose combination of keys is in the release.

    .. math:: \frac{|\{q : d_q = 1, s_q > 0\}|}{N}

    where :math:`d_q` and :math:`s_q` are how many records of the original and of the release have the
    combination :math:`q` of keys, and :math:`N` is how many persons are in the release (of synthetic records,
    which are nobody's: in the original).

    The published measure asks that the combination is unique in the release, too,

    .. math:: \mathrm{repU} = \frac{|\{q : d_q = 1, s_q = 1\}|}{N}

    with the :math:`N` of the original. It is in ``details`` as ``published``. It falls to 0 when so many
    records are drawn that everybody's are repeated several times, and a sample of the records themselves has
    no more of it than its share.

    Notes
    -----
    **How to read it.** Whoever finds somebody's keys in the release, once or often, will take these records
    for theirs. A high share of uniques that are repeated though they were not copied means that chance
    repeats them; ``uniques`` is how many there are in the original, ``share_of_uniques`` how many of these
    are repeated, ``baseline`` what a release of independent columns would repeat.

    **Doubt.** Exact; the baseline is that of one release drawn. Where nobody can tell who is in a release
    of fewer persons than the original, :math:`N` is theirs: more can not be told.

    **Missing.** A missing value is a value of its own.

    **Units.** Persons are counted: whose records alone have their keys is unique, however many those are.
    Copies are looked at one by one and all together, and the worst counts.

    **Cost.** One sort of the records of both tables.
    """

    name = "replicated-uniques"
    vetted = "brute-forced: property/test_replication.py::test_uniques_and_values_as_counts_of_rows_tell"
    aliases = ("repu",)
    family = "attacks"
    threat = "singling out"
    title = "Replicated uniques"
    tells = Tells(
        places={"report": 16},
        record_sentence="it is unique, and a released record has its keys (1: yes, 0: no): {:.0f}",
        not_seen=NOISE_NOT_SEEN,
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look for uniques whose keys are released."""
        names = self.columns(evidence)
        original_numbers, released_numbers = _number_combinations(evidence, names)
        persons = persons_of(evidence.original)
        unique = _holders(original_numbers, persons)[original_numbers] == 1
        found = (unique & np.isin(original_numbers, released_numbers)).astype(np.float64)
        assert evidence.protected is not None  # `refuses` saw to it
        blind = evidence.protected
        for name in names:  # sorted first, so that the order of the file decides nothing
            values = blind.frame[name].sort(nulls_last=True)
            blind = blind.with_values(name, values[run.rng(name).permutation(len(values))])
        own, others = _number_combinations(evidence.read_as(blind), names)
        guessed = _share(evidence, (unique & np.isin(own, others)).astype(np.float64))
        uniques, repeated = (int(best_by_person(persons, each).sum()) for each in (unique, found))
        published = mean_of_best(
            persons, _replicated_uniques(original_numbers, released_numbers, unique, owners_of(evidence))
        )
        details = {"published": published, "uniques": uniques, "share_of_uniques": repeated / max(uniques, 1)}
        return Score(
            value=_share(evidence, found),
            by_record=found,
            baseline=guessed,
            details={**details, "baseline": guessed, "columns": len(names)},
        )


def _holders(numbers: Ints, persons: Ints) -> Ints:
    """How many persons have each combination."""
    return np.bincount(np.unique(np.column_stack((numbers, persons)), axis=0)[:, 0])


def _replicated_uniques(
    original_numbers: Ints, released_numbers: Ints, unique: Flags, owners: Ints
) -> Floats:
    """Which unique records have records of exactly one person like them in the other table."""
    other = _holders(released_numbers, owners)
    held = np.append(other, np.zeros(max(int(original_numbers.max()) + 1 - len(other), 0), dtype=np.int64))[
        original_numbers
    ]
    found: Floats = (unique & (held == 1)).astype(np.float64)
    return found


class Disco(_ReplicationMeasure):
    r"""Share of persons whose sensitive value the release discloses with certainty, and correctly (DiSCO).

    Disclosive in the release, correct in the original:

    .. math:: \mathrm{DiSCO} = \frac{1}{N} \sum_q \sum_t d_{tq} \, [\, s_{tq} = s_{\cdot q} > 0 \,]

    where :math:`d_{tq}` and :math:`s_{tq}` are how many records of the original and of the release have the
    keys :math:`q` and the sensitive value :math:`t`: all released records of somebody's keys have one value,
    and it is theirs. The score is that of the worst sensitive column, and :math:`N` is how many persons are
    in the release, of whom those are counted who are in it (of synthetic records, which are nobody's: in the
    original). With the :math:`N` of the original it is the published measure, in ``details`` as
    ``published``: a sample of the records themselves has no more of that than its share.

    Notes
    -----
    **How to read it.** Some of it is no disclosure: what holds for everybody of those keys is learnt of
    everybody (`Inference` takes that off by a control). ``baseline`` is what the most frequent released value
    would be right for; ``in_original`` what the original would give away itself; ``uniques`` how many of
    those who are told are alone with their keys in the original.

    **Doubt.** Exact. Where nobody can tell who is in a release of fewer persons than the original, :math:`N`
    is theirs, and all who are told are taken to be among them.

    **Missing.** A missing key is a value of its own. Who has no sensitive value is not counted, and a missing
    released one is a value like another that is never right.

    **Units.** Persons are counted, each by the record whose value is made certain. Copies are looked at one
    by one and all together, and the worst counts.

    **Cost.** One sort of the records of both tables for each column.
    """

    name = "disco"
    vetted = "brute-forced: property/test_replication.py::test_uniques_and_values_as_counts_of_rows_tell"
    family = "attacks"
    threat = "inference"
    title = "Disclosive and correct"
    tells = Tells(
        places={"report": 17},
        record_sentence="the release discloses its sensitive value with certainty (1: yes, 0: no): {:.0f}",
        not_seen=NOISE_NOT_SEEN,
    )

    sensitive: Columns = param(("@sensitive",), SENSITIVE_HELP)

    def sensitive_columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The sensitive columns that the release still has."""
        wanted = evidence.original.schema.resolve(self.sensitive)
        shared = evidence.of_kinds(evidence.shared_columns, self.kinds)
        return tuple(name for name in shared if name in wanted)

    def _unlearnable(self, evidence: Evidence) -> str | None:
        wanted = evidence.original.schema.resolve(self.sensitive)
        return unlearnable(self.name, evidence, wanted, self.kinds)

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that the intruder knows, without those to be learnt."""
        learnt = self.sensitive_columns(evidence)
        return tuple(name for name in super().columns(evidence) if name not in learnt)

    def looked_at(self, evidence: Evidence) -> tuple[str, ...]:
        """The keys and the sensitive columns."""
        return (*self.columns(evidence), *self.sensitive_columns(evidence))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nothing is to be learnt."""
        if evidence.protected is not None and not self.sensitive_columns(evidence):
            return f"{self.name} needs a sensitive column in both tables, and there is none"
        return super().refuses(evidence) or self._unlearnable(evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Look for keys that have one value in the release."""
        original_numbers, released_numbers = _number_combinations(evidence, self.columns(evidence))
        found, guessed, certain = dict[str, Floats](), dict[str, float](), dict[str, float]()
        for name in self.sensitive_columns(evidence):
            there = ~evidence.original.missing(name)
            if not there.any():
                continue
            own, other = _number_combinations(evidence, (name,))
            assert evidence.protected is not None  # `refuses` saw to it
            other = np.where(evidence.protected.missing(name), -1, other)
            found[name] = np.where(there, _certain(original_numbers, released_numbers, other) == own, np.nan)
            usual = np.bincount(other[other >= 0]) if (other >= 0).any() else np.zeros(1)
            guessed[name] = float((own[there] == usual.argmax()).mean()) if usual.any() else 0.0
            certain[name] = float(
                (_certain(original_numbers, original_numbers, own)[there] == own[there]).mean()
            )
        if not found:
            return Score.not_estimable("no record has a sensitive value")
        persons = persons_of(evidence.original)
        by_column = {name: _share(evidence, each) for name, each in found.items()}
        worst = max(by_column, key=lambda name: by_column[name])
        alone = (_holders(original_numbers, persons)[original_numbers] == 1) & (found[worst] == 1)
        details = {
            "published": max(mean_of_best(persons, each) for each in found.values()),
            "uniques": int(best_by_person(persons, alone).sum()),
            "baseline": guessed[worst],
            "in_original": certain[worst],
            "columns": len(found),
        }
        return Score(
            value=by_column[worst],
            by_column=by_column,
            by_record=np.fmax.reduce(list(found.values())),
            baseline=guessed[worst],
            details=details,
        )


def _certain(original_numbers: Ints, keys: Ints, values: Ints) -> Ints:
    """The one value that all records of each one's keys have; −2 where there are none or several."""
    size = int(max(original_numbers.max(), keys.max())) + 1
    low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -2)
    np.minimum.at(low, keys, values)
    np.maximum.at(high, keys, values)
    return np.where((low == high) & (high >= 0), high, -2)[original_numbers]
