"""What a release lets people put together again is part of what is judged: every approach, the worst counts."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.approaches import approaches
from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.measure import APPROACH, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.diversity import LDiversity
from sfumato.risk.exact_match import ExactMatch
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.itemsets import KmAnonymity
from sfumato.risk.linkage import DistanceLinkage

NAME = Kind.NOMINAL
REGION, SEX, JOB = (Column(name, NAME, Role.KEY) for name in ("region", "sex", "job"))
WEIGHT = Column("weight", Kind.CONTINUOUS, Role.WEIGHT)
RUN = Run(seed=1)


def table(columns, **values):
    return Table(pl.DataFrame(values), Schema(tuple(columns)))


def survey(n=240):
    """Regions of different sizes, each with its own weight."""
    rng = np.random.default_rng(5)
    region = np.repeat(["n", "e", "s", "i"], [n // 2, n // 4, n // 5, n - n // 2 - n // 4 - n // 5])
    values = {
        "region": region,
        "sex": rng.choice(["f", "m"], n),
        "weight": pl.Series(region).replace_strict({"n": 9.5, "e": 3.25, "s": 2.0, "i": 1.75}),
    }
    return table((REGION, SEX, WEIGHT), **values)


def coarse(original, name="region"):
    """The release in which a key is the same for everybody."""
    return original.with_values(name, pl.Series(["all"] * len(original)))


def test_of_a_release_without_relations_there_is_one_approach():
    original = survey().select(["region", "sex"])
    assert len(approaches(Evidence(original, Release.unchanged(original)))) == 1
    assert len(approaches(Evidence(original))) == 1


def test_a_weight_gives_back_the_region_that_was_made_coarse():
    original = survey()
    released = coarse(original)
    evidence = Evidence(original, Release.record_by_record(released))
    score = KAnonymity().score(evidence, RUN)
    sizes = original.frame.group_by("region", "sex").len()["len"]
    assert score.value == sizes.min()
    assert score.details[APPROACH] == "with `region` as `weight` tells it"
    assert "`weight` tells it" in Requirement.parse("k >= 30").verdict(score)


def test_a_certificate_of_the_linkage_that_a_weight_makes_better_holds():
    """It proves the number that is told, of the region that the weight gives back: not that of the plain approach."""
    original = survey(40)
    evidence = Evidence(original, Release.record_by_record(coarse(original)))
    score = GlobalLinkage().score(evidence, RUN)
    assert score.details[APPROACH] == "with `region` as `weight` tells it"
    assert score.proof.verify(evidence, RUN) is None


def test_what_a_method_asks_of_its_own_work_is_the_plain_approach():
    original = survey()
    evidence = Evidence(
        original,
        Release.record_by_record(coarse(original)),
        sampling=PersonSampling(ignore_person_links=True),
    )
    assert KAnonymity().score(evidence, RUN).value == original.frame["sex"].value_counts()["count"].min()


def test_a_key_that_was_left_out_comes_back():
    original = survey()
    released = original.select(["sex", "weight"])
    evidence = Evidence(original, Release.record_by_record(released))
    assert (
        KAnonymity().score(evidence, RUN).value == original.frame.group_by("region", "sex").len()["len"].min()
    )


def test_a_key_that_stays_is_told_by_nobody_else():
    original = survey()
    released = original.with_values("sex", pl.Series(["x"] * len(original)))
    assert len(approaches(Evidence(original, Release.record_by_record(released)))) == 1


def test_swapped_regions_are_read_from_the_weight():
    original = survey()
    swapped = np.random.default_rng(1).permutation(original.frame["region"].to_numpy())
    number = Column("age", Kind.CONTINUOUS, Role.KEY)
    ages = pl.Series("age", np.random.default_rng(2).integers(0, 90, len(original)).astype(float))
    original = Table(original.frame.with_columns(ages), Schema((*original.schema.columns, number)))
    released = original.with_values("region", pl.Series(swapped))
    evidence = Evidence(original, Release.record_by_record(released))
    blind = Evidence(
        original.select(["region", "sex", "age"]),
        Release.record_by_record(released.select(["region", "sex", "age"])),
    )
    assert DistanceLinkage().score(evidence, RUN).value > 2 * DistanceLinkage().score(blind, RUN).value


def test_what_a_known_column_implies_is_known_too():
    """A postcode is left out; its first digit, which says less, stays and is not named a key."""
    n = 300
    rng = np.random.default_rng(3)
    zips = rng.choice([f"{a}{b}" for a in "123" for b in "0123456789"], n)
    columns = (Column("zip", NAME, Role.KEY), SEX, Column("area", NAME, Role.OTHER))
    original = table(columns, zip=zips, sex=rng.choice(["f", "m"], n), area=[each[0] for each in zips])
    released = original.select(["sex", "area"])
    score = KAnonymity().score(Evidence(original, Release.record_by_record(released)), RUN)
    assert score.value == original.frame.group_by("area", "sex").len()["len"].min()
    assert score.details[APPROACH] == "with `area` known by what implies it"


STAYS = {"who": [1, 2, 3, 4, 1, 2, 3, 4], "ward": list("AABBBCAC"), "ill": list("xyzxyzxy")}


@pytest.mark.parametrize("role", [Role.IDENTIFIER, Role.OTHER, Role.SENSITIVE])
def test_a_pseudonym_joins_whatever_its_role(role):
    columns = Column("who", NAME, role, pseudonym="patient"), Column("ward", NAME, Role.KEY)
    stays = table((*columns, Column("ill", NAME, Role.SENSITIVE)), **STAYS)
    score = KAnonymity().score(Evidence(stays, Release.unchanged(stays)), RUN)
    assert score.value == 1  # A and C, B and C
    assert score.by_record.tolist() == [2, 1, 2, 1, 2, 1, 2, 1]
    assert "`who` joins" in score.details[APPROACH]
    linkage = DistanceLinkage().score(Evidence(stays, Release.unchanged(stays)), RUN)
    assert (linkage.value, linkage.status) == (0.75, Status.OK)  # two are sure, two are alike
    blind = GlobalLinkage().score(Evidence(stays, Release.unchanged(stays)), RUN)
    assert blind.status is Status.APPROXIMATE


def test_each_group_is_judged_by_itself():
    """Pupils in classes and in clubs: everybody is like another in the class, but not in the club."""
    groups = [Column(name, NAME, Role.GROUP) for name in ("class", "club")]
    pupils = table(
        (*groups, Column("sex", NAME, Role.KEY)),
        **{"class": [1, 1, 2, 2, 3, 3, 4, 4], "club": [1, 2, 1, 2, 1, 2, 3, 3], "sex": list("fmfmfmfm")},
    )
    without = pupils.select(["class", "sex"])
    assert KAnonymity().score(Evidence(without, Release.unchanged(without)), RUN).value == 4
    score = KAnonymity().score(Evidence(pupils, Release.unchanged(pupils)), RUN)
    assert score.value == 1  # of three girls, of three boys, of one of each
    assert "`club` joins" in score.details[APPROACH]


def test_a_known_column_with_a_pseudonym_is_compared_not_joined():
    columns = Column("ward", NAME, Role.KEY, pseudonym="ward"), SEX
    stays = table(columns, ward=list("AABBAABB"), sex=list("ffmmffmm"))
    assert KAnonymity().score(Evidence(stays, Release.unchanged(stays)), RUN).value == 4


def test_exact_matches_look_at_what_is_told_too():
    """Everybody's region is hidden, and everybody's age is in the file."""
    original = survey()
    ages = Column("age", Kind.ORDINAL, Role.KEY)
    rng = np.random.default_rng(2)
    frame = original.frame.with_columns(pl.Series("age", rng.integers(0, 40, len(original))))
    original = Table(frame, Schema((*original.schema.columns, ages)))
    plain, told = (
        ExactMatch()
        .score(
            Evidence(
                each, Release.record_by_record(coarse(each)), Scenario(columns=("region", "sex", "age"))
            ),
            RUN,
        )
        .value
        for each in (original.select(["region", "sex", "age"]), original)
    )
    unique = original.frame.filter(pl.struct("region", "sex", "age").is_unique())
    assert plain == 0
    assert told == pytest.approx(len(unique) / len(original))


@pytest.mark.parametrize(
    ("ills", "l"),
    [
        (["x", "y", "y", "x"], 1),  # both have both: x and y are certain
        (["x", "y", "z", "w"], 2),  # in each of their records there are two
        (["x", "x", "z", "w"], 1),  # both are x in A
    ],
)
def test_diversity_of_those_whose_records_leave_together(ills, l):  # noqa: E741
    """Two persons with a record in A and one in B each."""
    columns = (
        Column("who", NAME, Role.PERSON),
        Column("ward", NAME, Role.KEY),
        Column("ill", NAME, Role.SENSITIVE),
    )
    stays = table(columns, who=[1, 2, 1, 2], ward=list("AABB"), ill=ills)
    score = LDiversity().score(Evidence(stays, Release.unchanged(stays)), RUN)
    assert (score.value, score.status) == (l, Status.OK)


def test_one_shift_for_all_dates_of_a_person_keeps_what_is_between_them():
    """Visits of forty persons, three each, moved by up to ten years for each person; the pseudonym stays."""
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(40), 3)
    days = rng.integers(0, 4000, len(who)).astype(float)
    columns = Column("who", NAME, Role.PERSON, pseudonym="p"), Column("came", Kind.CONTINUOUS, Role.KEY)
    visits = table(columns, who=who, came=days)
    moved = visits.with_values("came", pl.Series(days + rng.integers(-3650, 3650, 40)[who]))
    joined, apart = (
        DistanceLinkage().score(Evidence(visits, Release.record_by_record(moved.select(names))), RUN)
        for names in (["who", "came"], ["came"])
    )
    assert (joined.value, joined.status) == (1.0, Status.OK)
    assert apart.value < 0.3


def test_sets_among_the_known_columns_are_no_error_where_others_were_suppressed():
    """Who is alike is told by the single values: it was an error about plain values, of every risk."""
    columns = (
        ("basket", Kind.SET, Role.KEY),
        ("town", Kind.NOMINAL, Role.KEY),
        ("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
    frame = {"basket": [["a", "b"], ["a"], ["b"]] * 4, "town": ["x", "y"] * 6, "ill": ["flu", "cold"] * 6}
    table = Table(pl.DataFrame(frame), Schema(tuple(Column(*each) for each in columns)))
    released = Release.record_by_record(table.with_values("ill", pl.Series([None, *frame["ill"][1:]])))
    assert KmAnonymity().score(Evidence(table, released), Run(seed=1)).value == 4
