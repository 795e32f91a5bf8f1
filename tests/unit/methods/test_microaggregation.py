"""Microaggregation through the table shell; the groups are checked against brute force with the kernels."""

from collections import Counter
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import kernels
from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.data.points import points_of, standardise
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import NoteWarning, ParameterError, RefusedError
from sfumato.methods.microaggregation import Cbfs, Mdav, SequentialMicroaggregation, VMdav
from sfumato.methods.scalable_microaggregation import (
    MdavInParts,
    ProjectionMicroaggregation,
    first_component,
)
from sfumato.methods.univariate_microaggregation import IndividualRanking
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

METHODS = [Mdav, VMdav, Cbfs, SequentialMicroaggregation, MdavInParts, ProjectionMicroaggregation]
by_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def table_of(values):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))


def protect(method, table):
    return method.apply(table, Run(seed=1))


def people():
    """Two groups of three that no method can miss: the young in the north, the old in the south."""
    frame = pl.DataFrame(
        {
            "age": [21.0, 80.0, 22.0, 81.0, 26.0, 88.0],
            "area": ["north", "south", "north", "south", "east", "south"],
            "born": [date(2000, 1, d) if d < 20 else date(1940, 1, d) for d in (1, 21, 4, 22, 19, 31)],
            "grade": ["low", "high", "low", "middle", "middle", "high"],
        }
    )
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("born", Kind.DATE, Role.KEY),
        Column("grade", Kind.ORDINAL, Role.KEY, order=("low", "middle", "high")),
    )
    return Table(frame, Schema(columns))


@by_method
def test_a_mixed_table_by_hand(method):
    """Mean of the ages, the lower median of dates and grades, the most frequent area."""
    release = protect(method(k=3), people())
    assert release.table.frame.rows() == [
        (23.0, "north", date(2000, 1, 4), "low"),
        (83.0, "south", date(1940, 1, 22), "high"),
        (23.0, "north", date(2000, 1, 4), "low"),
        (83.0, "south", date(1940, 1, 22), "high"),
        (23.0, "north", date(2000, 1, 4), "low"),
        (83.0, "south", date(1940, 1, 22), "high"),
    ]
    assert release.table.frame.dtypes == people().frame.dtypes
    assert len(set(release.classes[::2])) == len(set(release.classes[1::2])) == 1


def test_centres_are_weighted_and_weighted_totals_are_kept():
    """Weights 1, 2 and 5: the third young record decides area, date and grade, and pulls the mean."""
    table = people()
    weights = pl.Series("weight", [1.0, 1.0, 2.0, 1.0, 5.0, 2.0])
    schema = Schema((*table.schema.columns, Column("weight", Kind.CONTINUOUS, Role.WEIGHT)))
    weighted = Table(table.frame.with_columns(weights), schema).aimed_at(table.names)
    after = protect(Mdav(k=3), weighted).table.frame
    assert after.row(0) == ((21 + 44 + 130) / 8, "east", date(2000, 1, 19), "middle", 1.0)
    assert after.row(1) == ((80 + 81 + 176) / 4, "south", date(1940, 1, 22), "high", 1.0)
    assert (after["age"] * weights).sum() == (table.frame["age"] * weights).sum()
    assert after["weight"].to_list() == weights.to_list()


@by_method
def test_weighted_means_are_kept_within_strata(method):
    rng = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "x": rng.lognormal(8, 1, 90),
            "y": rng.normal(1e8, 1, 90),
            "region": ["n", "s", "e"] * 30,
            "weight": rng.uniform(0.5, 20, 90),
        }
    )
    schema = Schema(
        (
            Column("x", Kind.CONTINUOUS, Role.KEY),
            Column("y", Kind.CONTINUOUS, Role.KEY),
            Column("region", Kind.NOMINAL, Role.OTHER),
            Column("weight", Kind.CONTINUOUS, Role.WEIGHT),
        )
    )
    step = Step(method(k=4), ("x", "y"), within=("region",))
    after = Recipe((step,)).apply(Table(frame, schema), Run(seed=1)).table.frame
    for region in "nse":
        here = pl.col("region") == region
        for name in ("x", "y"):
            totals = [each.filter(here).select(pl.col(name).dot("weight")).item() for each in (frame, after)]
            assert totals[0] == pytest.approx(totals[1], rel=1e-13)


def test_missing_values_stay_missing_and_classes_are_not_vouched_for():
    values = np.array([[1.0, 5.0], [2.0, np.nan], [10.0, 6.0], [11.0, 7.0]])
    release = protect(Mdav(k=2), table_of(values))
    after = release.table.frame.to_numpy()
    # Groups {0, 1} and {2, 3}: the mean of column 1 in the first is over the one value it has.
    np.testing.assert_allclose(after, [[1.5, 5.0], [1.5, np.nan], [10.5, 6.5], [10.5, 6.5]])
    assert release.classes is None


def test_missing_words_stay_missing_and_the_mode_is_of_the_others():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 50.0, 51.0, 52.0], "area": ["b", None, "b", None, None, None]})
    table = Table(frame, Schema((Column("x", Kind.CONTINUOUS), Column("area", Kind.NOMINAL))))
    release = protect(Mdav(k=3), table)
    assert release.table.frame["area"].to_list() == ["b", None, "b", None, None, None]
    assert release.table.frame["x"].to_list() == [2.0] * 3 + [51.0] * 3
    assert release.classes is None


@pytest.mark.parametrize(
    ("centre", "shown"), [("auto", 30.0), ("mean", 30.0), ("median", 15.0), ("mode", 10.0)]
)
def test_centres_of_a_continuous_column(centre, shown):
    """Of 10, 10, 20, 80 the mean is 30, the median 15, the mode 10."""
    values = np.array([[10.0], [20.0], [80.0], [10.0]])
    assert protect(Mdav(k=4, centre=centre), table_of(values)).table.frame["c0"].to_list() == [shown] * 4


def test_amounts_that_differ_have_no_mode_that_is_somebodys_own():
    """Of 10, 20 and 80 the smallest is no mode: all would move down, and one person's amount would stand."""
    values = np.array([[10.0], [20.0], [80.0], [50.0]])
    assert protect(Mdav(k=4, centre="mode"), table_of(values)).table.frame["c0"].to_list() == [40.0] * 4
    pairs = np.array([[1.0], [1.0], [2.0], [100.0], [101.0], [103.0]])
    shown = protect(Mdav(k=3, centre="mode"), table_of(pairs)).table.frame["c0"].to_list()
    assert shown == [1.0] * 3 + [101.33333] * 3  # the mean, where the median is one person's


def test_means_are_rounded_to_be_read_and_totals_stay():
    rng = np.random.default_rng(7)
    for size, decimals, most in ((4000.0, 2, 3), (40.0, 0, 5), (75_000.0, 0, 2), (3.0, 4, 6), (1e9, 1, 2)):
        values = np.round(rng.gamma(2.0, size / 2, (200, 2)), decimals)
        for method in (Mdav(k=7), IndividualRanking(k=7), Mdav(k=7, centre="median")):
            shown = protect(method, table_of(values)).table.frame["c0"].to_numpy()
            assert max(len(repr(value).partition(".")[2]) for value in shown.tolist()) <= most + 1
            assert min(Counter(shown.tolist()).values()) >= 7
            if method.centre["c0"] == "auto":
                assert shown.sum() == pytest.approx(values[:, 0].sum(), rel=5e-7)
    sevenths = rng.normal(size=(60, 1))  # more decimals than anyone reads: nothing to round to
    exact = protect(Mdav(k=7), table_of(sevenths))
    assert exact.table.frame["c0"].mean() == pytest.approx(sevenths.mean(), abs=1e-14)


@pytest.mark.parametrize(
    "values", [[0.0, 0.0, 0.0], [1e300, -1e300, 5e300], [1e-300, 2e-300, 0.0], [2.0**60, 1, 5]]
)
def test_what_cannot_be_rounded_stays(values):
    column = np.array([values]).T
    shown = protect(Mdav(k=3), table_of(column)).table.frame["c0"].to_list()
    assert shown == [kernels.groups.centres.means(column[:, 0], np.zeros(3, dtype=np.int64), 1)[0]] * 3


def test_a_release_says_which_columns_show_values_of_people():
    days = pl.DataFrame(
        {"day": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 6)], "pay": [1.0, 2.0, 9.0]}
    )
    table = Table(days, Schema((Column("day", Kind.DATE), Column("pay", Kind.CONTINUOUS))))
    for method in (Mdav, IndividualRanking):
        said = {
            centre: method(k=3, centre=centre).apply(table, Run(seed=1)).notes
            for centre in ("auto", "mean", "median")
        }
        assert said["mean"] == ()
        assert said["auto"][0].startswith("groups of `day` show no mean")
        assert said["median"][0].startswith("groups of `day`, `pay` show")


def test_centres_by_column():
    values = np.column_stack([[10.0, 20, 80, 10], [1.0, 2, 9, 0]])
    after = protect(Mdav(k=4, centre={"c1": "median"}), table_of(values)).table.frame
    assert after.row(0) == (30.0, 1.5)
    assert Mdav(k=4, centre={"c1": "median"}).to_dict()["centre"] == {"default": "auto", "c1": "median"}


@pytest.mark.parametrize(
    ("centre", "wrong"),
    [
        ("mean", "`mean` for `area` (nominal), `mean` for `grade` (ordinal)"),
        ("median", "`median` for `area` (nominal)"),
    ],
)
def test_a_centre_the_column_cannot_have_is_refused(centre, wrong):
    with pytest.raises(RefusedError) as caught:
        protect(Mdav(k=3, centre=centre), people())
    assert caught.value.message.endswith(f"got: {wrong}")
    assert protect(Mdav(k=3, centre="mode"), people()).table.frame["area"][4] == "north"


def test_the_mean_of_dates_is_rounded_to_the_day_and_to_the_nanosecond():
    days = pl.DataFrame({"day": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 6)]})
    table = Table(days, Schema((Column("day", Kind.DATE),)))
    assert protect(Mdav(k=3, centre="mean"), table).table.frame["day"].to_list() == [date(2020, 1, 3)] * 3
    start = pl.Series([datetime(2020, 1, 1)] * 3).dt.cast_time_unit("ns").to_physical()  # noqa: DTZ001
    instants = (start + pl.Series([1, 2, 6])).cast(pl.Datetime("ns"))
    table = Table(pl.DataFrame({"at": instants}), Schema((Column("at", Kind.DATE),)))
    for centre, moved in (("mean", 3), ("median", 2), ("mode", 3)):  # no instant occurs twice
        after = protect(Mdav(k=3, centre=centre), table).table.frame["at"]
        assert (after.to_physical() - start).to_list() == [moved] * 3


def test_dates_as_text_and_declared_missing_dates():
    frame = pl.DataFrame({"day": ["2020-01-01", "2020-01-03", "1900-01-01", "2020-01-09"]})
    table = Table(frame, Schema((Column("day", Kind.DATE, missing=("1900-01-01",)),)))
    after = protect(Mdav(k=4), table).table.frame["day"]
    assert after.to_list() == ["2020-01-03", "2020-01-03", "1900-01-01", "2020-01-03"]
    with pytest.raises(RefusedError, match="`mean` for `day`"):  # the mean might be the missing date
        protect(Mdav(k=4, centre="mean"), table)


def test_a_centre_that_would_read_as_missing_gives_way_to_a_value_that_occurs():
    """The mean of −10 and −8 is −9, which stands for missing: both must still show the same value."""
    frame = pl.DataFrame({"x": [-10, -8, 5, -9, 7, 6]})
    table = Table(frame, Schema((Column("x", Kind.CONTINUOUS, missing=(-9,), integer=True),)))
    after = protect(Mdav(k=2, scale="none"), table).table.frame["x"]
    assert after.to_list()[:2] == [-10, -10]
    assert after[3] == -9
    spread = Table(
        pl.DataFrame({"x": [-98.0, -90.0, 1.0, 2.0]}),
        Schema((Column("x", Kind.CONTINUOUS, missing_range=(-97.0, -91.0)),)),
    )
    release = protect(Mdav(k=2), spread)
    assert release.table.frame["x"].to_list() == [-98.0, -98.0, 1.5, 1.5]
    assert release.classes is not None


def test_declared_whole_numbers_and_ranges_stay_alike_in_a_group():
    frame = pl.DataFrame({"x": [0, 1, 1, 7, 8, 10]})
    table = Table(frame, Schema((Column("x", Kind.CONTINUOUS, integer=True, lower=0, upper=8),)))
    release = protect(Mdav(k=3), table)
    assert release.table.frame["x"].to_list() == [1, 1, 1, 8, 8, 8]
    assert release.table.frame["x"].dtype == pl.Int64


def test_a_rare_word_binds_by_frequency_and_a_number_when_all_words_are_alike():
    """Two records share a rare word (x = ∓1.1); between them and their neighbours in x lies only the word.

    Squared distances: by x 4.7 between the two, 0.01 to a neighbour; by word (10 + 1/0.45)/2 = 6.1 by frequency
    and 2/(1 − 0.415) = 3.4 when all words are alike.
    """
    words = ["rare", "rare", *["a"] * 9, *["b"] * 9]
    frame = pl.DataFrame({"word": words, "x": [-1.1, 1.1, *[-1.0, 1.0] * 9]})
    table = Table(frame, Schema((Column("word", Kind.NOMINAL), Column("x", Kind.CONTINUOUS))))
    rare = {
        nominal: protect(Mdav(k=2, nominal=nominal), table).classes[:2] for nominal in ("frequency", "equal")
    }
    assert rare["frequency"][0] == rare["frequency"][1]
    assert rare["equal"][0] != rare["equal"][1]


def test_scales_decide_who_is_near():
    """By deviation both columns count alike; raw, the wide one decides alone."""
    values = np.array([[0.0, 0.0], [1.0, 1000.0], [0.0, 1000.0], [1.0, 0.0], [0.0, 10.0], [1.0, 990.0]])
    raw = protect(Mdav(k=3, scale="none"), table_of(values)).classes
    assert {frozenset(np.flatnonzero(raw == g)) for g in range(2)} == {
        frozenset({0, 3, 4}),
        frozenset({1, 2, 5}),
    }


def test_a_constant_column_does_not_divide_by_zero():
    values = np.column_stack([np.full(6, 3.0), np.arange(6.0)])
    after = protect(Mdav(k=3), table_of(values)).table.frame.to_numpy()
    np.testing.assert_array_equal(after[:, 0], 3.0)


@by_method
def test_within_strata_no_group_crosses(method):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"x": rng.normal(size=60), "region": ["n", "s", "e"] * 20})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("region", Kind.NOMINAL, Role.OTHER)))
    release = Recipe((Step(method(k=4), ("x",), within=("region",)),)).apply(
        Table(frame, schema), Run(seed=1)
    )
    grouped = release.table.frame.with_columns(group=pl.Series(release.classes))
    sizes = grouped.group_by("group").agg(pl.col("region").n_unique(), pl.col("x").n_unique(), pl.len())
    assert sizes["region"].to_list() == [1] * len(sizes)
    assert sizes["x"].to_list() == [1] * len(sizes)
    assert sizes["len"].is_between(4, 7).all()
    assert release.table.frame["region"].to_list() == frame["region"].to_list()


def test_too_small_a_stratum_is_said_without_naming_it():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "region": ["Zanzibarquux", "s", "s", "s"]})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("region", Kind.NOMINAL, Role.OTHER)))
    with pytest.raises(ParameterError) as caught:
        Recipe((Step(Mdav(k=2), ("x",), within=("region",)),)).apply(Table(frame, schema), Run(seed=1))
    assert "got: `2`" in str(caught.value)
    assert "Zanzibarquux" not in str(caught.value)


@by_method
def test_k_above_the_number_of_records_is_an_error_and_bounds_the_search(method):
    table = people()
    with pytest.raises(
        ParameterError, match=f"`k` of {method.name} must be at most the number of records, 6"
    ):
        protect(method(k=7), table)
    assert method().drive_range(table) == (2, 6)
    assert method().drive_range(table.take(np.arange(1))) == (1, 1)
    assert protect(method(k=3), table.take(np.arange(0))).table.frame.height == 0


@by_method
def test_groups_of_one_change_nothing(method):
    assert protect(method(k=1), people()).table.frame.equals(people().frame)


def test_a_gain_lets_groups_grow_and_none_does_not():
    """Clusters of three on a line, at k = 2: with a gain the third joins its two neighbours."""
    values = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0], [50.0], [51.0], [52.0]])
    grown = np.bincount(protect(VMdav(k=2, gain=1.1), table_of(values)).classes)
    assert sorted(grown) == [3, 3, 3]
    fixed = np.bincount(protect(VMdav(k=2, gain=0), table_of(values)).classes)
    assert sorted(fixed) == [2, 2, 2, 3]


def test_another_seed_gives_another_partition_of_scattered_records():
    table = table_of(np.random.default_rng(6).normal(size=(80, 3)))
    one, other = (SequentialMicroaggregation(k=3).apply(table, Run(seed=seed)).classes for seed in (1, 2))
    assert not np.array_equal(one[:, None] == one, other[:, None] == other)


def test_parts_as_large_as_the_table_are_mdav_itself():
    table = table_of(np.random.default_rng(7).normal(size=(200, 2)))
    whole = protect(Mdav(k=4), table)
    assert protect(MdavInParts(k=4), table).table.frame.equals(whole.table.frame)
    cut = protect(MdavInParts(k=4, part=50), table)
    assert not cut.table.frame.equals(whole.table.frame)
    assert np.bincount(cut.classes).min() >= 4
    assert MdavInParts().part == kernels.groups.PART_RECORDS


def test_first_component_by_hand_and_its_sign():
    """Points on the line y = −2x: the component is (−1, 2)/√5, as its greatest loading is positive."""
    points = np.outer(np.array([-1.0, 0.0, 1.0, 3.0]), [1.0, -2.0])
    np.testing.assert_allclose(first_component(points), np.array([-1, 2]) / np.sqrt(5), atol=1e-15)
    alike = first_component(np.outer(np.arange(-2.0, 3.0), [-1.0, 1.0]))
    np.testing.assert_allclose(alike, np.array([1, -1]) / np.sqrt(2), atol=1e-15)


def test_projection_groups_by_rank_along_the_line():
    """Two columns that rise together: the order is that of either, and the last group takes the rest."""
    values = np.column_stack([[5.0, 1, 4, 2, 3, 9, 7], [50.0, 10, 40, 20, 30, 90, 70]])
    for line in ("component", "sum"):
        classes = protect(ProjectionMicroaggregation(k=2, line=line), table_of(values)).classes
        assert classes.tolist() == [2, 0, 1, 0, 1, 2, 2]


def test_projection_does_not_sum_up_words():
    with pytest.raises(RefusedError, match="needs ordered columns for the sum, got: `area`"):
        protect(ProjectionMicroaggregation(k=3, line="sum"), people())
    assert protect(ProjectionMicroaggregation(k=3, line="sum"), people().aimed_at(("age", "grade")))


def test_equal_records_stay_in_their_order_along_the_line():
    """Nine records, three of each: a matrix product may round equal ones apart."""
    rng = np.random.default_rng(9)
    values = np.repeat(rng.normal(size=(3, 7)), 3, axis=0)
    classes = protect(ProjectionMicroaggregation(k=3), table_of(values)).classes
    assert [len(set(part)) for part in np.split(classes, 3)] == [1, 1, 1]


@pytest.mark.parametrize(("name", "published"), [("census", 9.088), ("tarragona", 22.462)])
def test_loss_on_the_reference_files(name, published, reference_data):
    """MDAV's share of the sum of squares lost at k = 5, as published, and that of the others beside it."""
    values = np.loadtxt(reference_data(f"{name}.csv"), delimiter=",", skiprows=1)
    points = np.column_stack([standardise(column, "deviation") for column in values.T])

    def lost(method):
        after = protect(method, table_of(values)).table
        moved = (after.matrix(after.names) - values) / values.std(axis=0)
        found = 100 * (moved**2).sum() / (points**2).sum()
        share = kernels.groups.centres.sse_ratio(points, protect(method, table_of(values)).classes)
        assert found == pytest.approx(100 * share, rel=1e-9)
        return found

    mdav = lost(Mdav())
    assert mdav == pytest.approx(published, abs=0.0005)
    assert lost(VMdav()) == pytest.approx(mdav, rel=0.03)
    assert lost(Cbfs()) == pytest.approx(mdav, rel=0.03)
    assert lost(SequentialMicroaggregation()) < 0.95 * mdav
    assert lost(ProjectionMicroaggregation()) > 1.4 * mdav


# Records that a missing value tells from the others -------------------------------------------------------

GROUPING = [
    "mdav",
    "v-mdav",
    "cbfs",
    "sequential-microaggregation",
    "projection-microaggregation",
    "mdav-in-parts",
]


@pytest.mark.parametrize("name", [*GROUPING, "individual-ranking", "optimal-microaggregation"])
def test_records_that_missing_values_leave_alone_are_counted(name):
    rng = np.random.default_rng(7)
    values = {"a": [*rng.normal(size=20), None, -9.0], "b": [*rng.normal(size=21), None], "c": ["x"] * 22}
    frame = pl.DataFrame(values, strict=False)
    columns = (
        Column("a", Kind.CONTINUOUS, missing=(-9,)),
        Column("b", Kind.CONTINUOUS),
        Column("c", Kind.NOMINAL),
    )
    step = Step(registry.method(name)(k=3), ("a", "b"))
    release = step.apply(Table(frame, Schema(columns)), Run(seed=1))
    counts = Counter(release.table.frame.select("a", "b").iter_rows())
    below = sum(count for count in counts.values() if count < 3) if name in GROUPING else 3
    assert below > 0
    (note,) = release.provenance[0].notes
    assert note.startswith(f"in a class of fewer than k, because of missing values: {below} records;")


def test_where_none_is_missing_or_enough_are_there_is_nothing_to_say():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [None, None, 1.0, 1.0]})
    schema = Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.CONTINUOUS)))
    for columns, k in (("a",), 2), (("b",), 2), (("a", "b"), 1):
        for name in ("mdav", "individual-ranking"):
            step = Step(registry.method(name)(k=k), columns)
            assert step.apply(Table(frame, schema), Run(seed=1)).provenance[0].notes == ()


def test_in_python_it_is_a_warning():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0, None], "b": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    with pytest.warns(NoteWarning, match=r"in a class of fewer than k, .*: 3 records;"):
        sfumato.protect(frame, "mdav(k=3)", columns=["a", "b"])


# ------------------------------------------------------------------------------------- robust and clustered


def test_robust_distances_are_those_of_mahalanobis_and_outliers_do_not_move_them():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(200, 1)) * [1, 2, 0.5] + rng.normal(size=(200, 3)) * [0.2, 1, 3]
    table = table_of(values)
    points = points_of(table, scale="robust", nominal="frequency")
    middle = kernels.outlyingness.RobustCentre.of(values)
    covariance = middle.correlation * np.outer(middle.scale, middle.scale)
    for one, other in rng.integers(0, 200, (50, 2)):
        apart = values[one] - values[other]
        expected = apart @ np.linalg.solve(covariance, apart)
        assert ((points[one] - points[other]) ** 2).sum() == pytest.approx(expected)
    spoilt = values.copy()
    spoilt[:8] += 1e4
    far = points_of(table_of(spoilt), scale="robust", nominal="frequency")
    usual = points_of(table_of(spoilt), scale="deviation", nominal="frequency")
    assert far[8:].std(axis=0).min() > 0.5  # the others are as far from each other as they were
    assert usual[8:].std(axis=0).max() < 0.01


def test_robust_order_takes_the_outliers_first():
    """Two that break the correlation are ordinary in each column: only the robust distance puts them together."""
    line = np.linspace(-3, 3, 22)
    values = np.vstack([np.column_stack([line, line + 0.05 * np.sin(9 * line)]), [[-2, 2], [2.0, -2]]])
    groups = protect(Mdav(k=2, scale="robust"), table_of(values)).classes
    assert groups[22] != groups[23]
    assert set(groups[22:]) <= {0, 1}


def test_clusters_are_never_mixed():
    values = np.concatenate([np.arange(7.0), 1000 + np.arange(8.0)])[:, None]
    plain, apart = (protect(Cbfs(k=5, clusters=n), table_of(values)).classes for n in (0, 2))
    assert set(plain[:7]) & set(plain[7:])
    assert not set(apart[:7]) & set(apart[7:])
    assert sorted(np.bincount(apart)) == [7, 8]


def test_trimmed_centres_leave_out_the_ends_and_say_so():
    table = table_of(np.array([[1.0], [2], [3], [100], [1000], [1001], [1002], [1003]]))
    release = protect(Mdav(k=4, centre="trimmed"), table)
    assert release.table.frame["c0"].to_list() == [2.5] * 4 + [1001.5] * 4
    assert "show no mean" in release.byproducts.notes[0]
    days = pl.DataFrame({"c0": [date(2020, 1, d) for d in (1, 3, 5, 30)]})
    dates = Table(days, Schema((Column("c0", Kind.DATE),)))
    assert protect(Mdav(k=4, centre="trimmed"), dates).table.frame["c0"].to_list() == [date(2020, 1, 4)] * 4
    with pytest.raises(RefusedError, match="`trimmed` for `area`"):
        protect(Mdav(k=3, centre="trimmed"), people())
