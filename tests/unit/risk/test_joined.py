"""Records that leave together are judged together: a person is the set of their records."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.reidentification import ProsecutorRisk
from sfumato.risk.uniqueness import Uniqueness

NAME = Kind.NOMINAL
WHO, HOUSE = Column("who", NAME, Role.PERSON), Column("house", NAME, Role.HOUSEHOLD)
WARD = Column("ward", NAME, Role.KEY)


def table(columns, **values):
    return Table(pl.DataFrame(values), Schema(tuple(columns)))


def score(measure, original, **evidence):
    """Score a release; the original itself, if none is given."""
    released = {"release": Release.unchanged(original), **evidence}
    return measure.score(Evidence(original, **released), Run(seed=1))


STAYS = table((WHO, WARD), who=[1, 2, 3, 4, 1, 2, 3, 4], ward=list("AABBBCAC"))


def test_persons_are_alike_who_are_so_in_all_of_their_records():
    """A and B: 1 and 3. A and C: 2. B and C: 4."""
    assert score(KAnonymity(), STAYS).value == 1
    assert score(ProsecutorRisk(), STAYS).value == 1
    assert score(Uniqueness(), STAYS).value == 0.5
    assert score(KAnonymity(), STAYS).by_record.tolist() == [2, 1, 2, 1, 2, 1, 2, 1]


def test_a_column_that_is_not_released_joins_nothing():
    assert score(KAnonymity(), STAYS, release=None).value == 2  # of the raw table nothing leaves
    released = Release.record_by_record(STAYS.select(["ward"]))
    assert score(KAnonymity(), STAYS, release=released).value == 2
    assert score(KAnonymity(), STAYS, sampling=PersonSampling(ignore_person_links=True)).value == 2


def test_a_released_column_that_was_emptied_or_exchanged_makes_no_new_persons():
    original = table((WHO, WARD), who=[1, 1, 1, 2, 3, 4], ward=list("AAABBB"))
    for told in ([None] * 6, [1, 2, 3, 4, 5, 6], [1, None, None, 2, 3, 4]):
        released = original.with_values("who", pl.Series("who", told, dtype=pl.Int64))
        assert score(KAnonymity(), original, release=Release.record_by_record(released)).value == 1


def test_households_that_stay_are_counted():
    """Two households of a woman and a man, one of two women: the twins do not hide each other."""
    columns = (HOUSE, WARD)
    people = table(columns, house=[1, 1, 2, 2, 3, 3], ward=list("fmfmff"))
    assert score(KAnonymity(), people).value == 1
    assert score(KAnonymity(), people).by_record.tolist() == [2, 2, 2, 2, 1, 1]
    released = {"release": Release.record_by_record(people.select(["ward"]))}
    assert score(KAnonymity(), people, **released).value == 2


def test_what_looks_at_single_records_passes_no_gate_when_records_are_joined():
    number = Column("ward", Kind.CONTINUOUS, Role.KEY)
    stays = table((WHO, number), who=[1, 1, 2], ward=[1.0, 2.0, 3.0])
    found = score(GlobalLinkage(), stays, release=Release.unchanged(stays))
    assert found.status is Status.APPROXIMATE
    assert "`who` joins records" in found.reason
    released = {"release": Release.record_by_record(stays.select(["ward"]))}
    assert score(GlobalLinkage(), stays, **released).status is Status.OK
    assert score(DistanceLinkage(), stays, release=Release.unchanged(stays)).status is Status.OK


def test_a_share_of_the_records_gives_an_estimate_with_its_interval():
    number = Column("ward", Kind.CONTINUOUS, Role.KEY)
    people = table((number,), ward=[float(n) for n in range(100)])
    drawn = Scenario(records=0.5)
    found = score(DistanceLinkage(), people, release=Release.unchanged(people), scenario=drawn)
    assert (found.value, found.status, found.interval_is_proved) == (1, Status.APPROXIMATE, False)
    assert found.interval == (pytest.approx(1 - np.sqrt(np.log(40) / 100)), 1)
    assert score(KAnonymity(), people, scenario=drawn).status is Status.OK  # which looks at everybody


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=14)
)
def test_joined_as_counted_by_hand(records):
    whose, ages, sexes = (list(each) for each in zip(*records, strict=True))
    columns = (WHO, Column("age", Kind.CONTINUOUS, Role.KEY), Column("sex", NAME, Role.KEY))
    people = table(columns, who=whose, age=ages, sex=sexes)
    stories = defaultdict(list)
    for who, age, sex in records:
        stories[who].append((age, sex))
    alike = Counter(tuple(sorted(story)) for story in stories.values())
    by_hand = [alike[tuple(sorted(stories[who]))] for who in whose]
    assert score(KAnonymity(), people).by_record.tolist() == by_hand
    shares = [alike[tuple(sorted(story))] == 1 for story in stories.values()]
    assert score(Uniqueness(), people).value == pytest.approx(np.mean(shares))
