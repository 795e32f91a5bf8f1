"""Quantiles against quantiles, class sizes and mosaics: what they count, how coarse they are, how they are drawn."""

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

from sfumato.core.release import Release
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.microaggregation import Mdav
from sfumato.recipes.step import Step
from sfumato.report import render, twin
from sfumato.report.charts import charts
from sfumato.report.class_sizes import class_sizes, size_group
from sfumato.report.column_charts import against_original, class_bars, class_steps
from sfumato.report.distributions import distributions
from sfumato.report.mosaics import association, mosaics, residuals
from sfumato.report.pair_charts import mosaic
from sfumato.report.values import OTHERS
from sfumato.risk.ranks import PermutationDistance
from sfumato.study.compare import MethodAtLevel, ReplicateMean, Study
from sfumato.study.level import LevelResult, LevelStatus, Target
from sfumato.utility.transport import EarthMoversDistance

METHOD = {"key": "m0", "label": "A method", "color": "#0072B2", "shape": "circle", "dash": [1, 0]}


def table(kind: Kind = Kind.NOMINAL, **columns) -> Table:
    frame = pl.DataFrame({name: pl.Series(values, strict=False) for name, values in columns.items()})
    return Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name in columns)))


def crossed(cells, names=(("a", "b", "c", "d"), ("x", "y", "z"))) -> Table:
    """Records with these counts of each two values."""
    pairs = [
        (names[0][i], names[1][j])
        for i, row in enumerate(cells)
        for j, count in enumerate(row)
        for _ in range(count)
    ]
    return table(first=[one for one, _ in pairs], second=[other for _, other in pairs])


# Quantiles against quantiles ---------------------------------------------------------------------------


def against(original, release, *, public=False) -> dict:
    kind = Kind.CONTINUOUS
    found = distributions(table(kind, x=original), {"m0": table(kind, x=release)}, ["x"], public=public)[0]
    return against_original(found, [METHOD])


def test_a_release_like_the_original_lies_on_the_diagonal():
    values = np.random.default_rng(1).normal(50, 9, 300)
    diagonal, lines = against(values, values[::-1])["layer"]
    rows = lines["data"]["values"]
    assert len(rows) == 99
    assert all(row["m0"] == row["original"] for row in rows)
    # grey from the lowest to the highest quantile
    assert [row["value"] for row in diagonal["data"]["values"]] == [rows[0]["original"], rows[-1]["original"]]


def test_the_quantiles_of_a_wider_release_are_steeper():
    values = np.arange(1, 1000.0)
    diagonal, lines = against(values, 2 * values)["layer"]
    rows = lines["data"]["values"]
    # quantiles are told to a tenth here
    assert [row["m0"] for row in rows] == pytest.approx([2 * row["original"] for row in rows], abs=0.15)
    assert [row["value"] for row in diagonal["data"]["values"]] == [rows[0]["original"], rows[-1]["m0"]]


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    values = np.logspace(0.01, 5.99, 600)
    release = values.copy()
    release[:100] = 0
    lines = against(values, release)["layer"][1]
    assert lines["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"
    assert [row["m0"] for row in lines["data"]["values"]][:16] == [None] * 16
    assert min(row["m0"] for row in lines["data"]["values"][16:]) > 0


def test_the_public_form_has_the_public_quantiles():
    values = np.random.default_rng(2).normal(size=1000)
    lines = against(values, values, public=True)["layer"][1]
    assert len(lines["data"]["values"]) == 19
    assert not set(values) & {row["original"] for row in lines["data"]["values"]}


# Class sizes -------------------------------------------------------------------------------------------


def test_records_are_counted_by_the_size_of_their_class():
    # one alone, a pair, and five alike: 1, 2 and 5 of 8 records
    original = table(x=["a", "b", "b", "c", "c", "c", "c", "c"], y=[1] * 8)
    found = class_sizes(original, {}, Scenario(), public=False)
    assert found["columns"] == ["x", "y"]
    assert found["groups"] == [[1, 1], [2, 2], [3, 4], [5, 9]]
    assert found["shares"] == {"original": [0.125, 0.25, 0.0, 0.625]}


def test_class_sizes_agree_with_counting_one_by_one():
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, top, 500) for name, top in (("x", 30), ("y", 3))}
    found = class_sizes(table(**columns), {}, Scenario(), public=False)
    sizes = Counter(zip(columns["x"].tolist(), columns["y"].tolist(), strict=True)).values()
    assert [first for first, _ in found["groups"]] == [1, 2, 3, 5, 10]
    for (first, last), share in zip(found["groups"], found["shares"]["original"], strict=True):
        assert share == pytest.approx(sum(size for size in sizes if first <= size <= last) / 500, abs=1e-4)


def test_groups_of_sizes_grow_with_the_largest_class():
    found = class_sizes(table(x=["a"] * 70 + ["b"]), {}, Scenario(), public=False)
    assert [size_group(group) for group in found["groups"]] == [
        "1",
        "2",
        "3–4",
        "5–9",
        "10–19",
        "20–49",
        "50–99",
    ]
    assert size_group([1000, 1999]) == "1,000–1,999"


def test_the_scenario_says_which_columns_make_a_class():
    original = table(x=["a"] * 5 + ["b"] * 5, y=list(range(10)))
    found = class_sizes(original, {}, Scenario(columns=("x",)), public=False)
    assert found["columns"] == ["x"]
    assert found["shares"]["original"] == [0, 0, 0, 1]


def test_a_missing_value_is_a_value_of_its_own():
    found = class_sizes(table(x=["a", "a", None, None, None]), {}, Scenario(), public=False)
    assert found["shares"]["original"] == [0, 0.4, 0.6, 0]


def test_a_column_that_was_dropped_tells_nobody_apart():
    original = table(x=["a"] * 10, y=list(range(10)))
    found = class_sizes(original, {"m0": original.select(["x"])}, Scenario(), public=False)
    assert found["shares"]["original"][0] == 1
    assert found["shares"]["m0"] == [0, 0, 0, 0, 1]


def test_small_groups_of_sizes_are_merged_in_public():
    # 3 alone, 8 in pairs, 40 in tens: 11 records in classes of 1–2
    values = [f"u{i}" for i in range(3)] + [f"p{i}" for i in range(4) for _ in range(2)]
    original = table(x=values + [f"t{i}" for i in range(4) for _ in range(10)])
    found = class_sizes(original, {}, Scenario(), public=True)
    assert found["groups"] == [[1, 2], [3, 4], [5, 9], [10, 19]]
    # 11 and 40, to fives: 10 and 40 of 50
    assert found["shares"]["original"] == [0.2, 0, 0, 0.8]


def test_a_few_large_ones_join_those_before_in_public():
    original = table(x=list(range(50)) + [99] * 5)
    found = class_sizes(original, {}, Scenario(), public=True)
    assert found["note"].startswith("Suppressed")
    assert found["shares"] == {}
    assert class_charts(found) == {}


def class_charts(found) -> dict:
    told = {"outcomes": [METHOD], "map": [], "distributions": [], "mosaics": None, "correlations": None}
    return charts({**told, "outcomes": [{**METHOD, "ranked": None}], "class_sizes": found})


def test_a_release_that_would_hide_all_is_suppressed():
    original = table(x=list(range(50)))
    odd = table(x=list(range(45)) + [99] * 5)  # five in a class of five
    fine = table(x=[i // 10 for i in range(50)])
    found = class_sizes(original, {"m0": odd, "m1": fine}, Scenario(), public=True)
    assert found["suppressed"] == ["m0"]
    assert found["shares"] == {"original": [1, 0, 0, 0, 0], "m1": [0, 0, 0, 0, 1]}


def test_an_empty_table_has_no_classes():
    assert class_sizes(table(x=pl.Series([], dtype=pl.String)), {}, Scenario(), public=False) is None


def test_the_steps_add_up_the_bars():
    found = {"groups": [[1, 1], [2, 4], [5, 9]], "shares": {"original": [0.5, 0.25, 0.25], "m0": [0, 0, 1.0]}}
    assert class_bars(found, [METHOD])["layer"][0]["encoding"]["y"]["sort"] == ["1", "2–4", "5–9"]
    rows = class_steps(found, [METHOD])["data"]["values"]
    assert [(row["k"], row["original"], row["m0"]) for row in rows] == [(2, 0.5, 0), (5, 0.75, 0), (10, 1, 1)]


# Mosaics -----------------------------------------------------------------------------------------------


def told_of(original, *releases, public=True, columns=("first", "second"), about=("first",)) -> dict:
    named = {f"m{place}": release for place, release in enumerate(releases)}
    return mosaics(original, named, columns, about=about, public=public)


def test_a_mosaic_holds_shares_differences_and_residuals():
    # the example: 30 10 / 10 30 against all 20
    original, release = crossed([[30, 10], [10, 30]]), crossed([[20, 20], [20, 20]])
    (found,) = told_of(original, release)["pairs"]
    assert found["columns"] == ["first", "second"]
    assert found["categories"] == [["a", "b"], ["x", "y"]]
    assert found["shares"] == {
        "original": [[0.375, 0.125], [0.125, 0.375]], "m0": [[0.25, 0.25], [0.25, 0.25]]
    }  # fmt: skip
    assert found["differences"] == {"m0": [[-0.125, 0.125], [0.125, -0.125]]}
    # (30 − 20) / √20
    assert found["residuals"]["original"] == [[2.24, -2.24], [-2.24, 2.24]]
    assert found["residuals"]["m0"] == [[0, 0], [0, 0]]
    assert (found["suppressed"], found["unchanged"], found["absent"]) == ([], [], [])


def test_the_association_is_that_of_bergsma():
    # φ² = 20 / 80, less 1 / 79 by chance, of 2 − 1 / 79 − 1
    assert association(np.array([[30, 10], [10, 30]])) == pytest.approx(
        np.sqrt((0.25 - 1 / 79) / (1 - 1 / 79))
    )
    assert association(np.array([[50, 0], [0, 50]])) == pytest.approx(1)
    assert association(np.array([[10, 20], [20, 40]])) == 0
    assert association(np.array([[10, 20], [0, 0]])) == 0
    assert association(np.zeros((2, 2), dtype=np.int64)) == 0


def test_residuals_square_to_chi_squared():
    stats = pytest.importorskip("scipy.stats")
    counts = np.random.default_rng(4).integers(1, 60, (3, 4))
    expected = stats.chi2_contingency(counts, correction=False).statistic
    assert (residuals(counts) ** 2).sum() == pytest.approx(expected)


def test_the_strongest_pairs_come_first_and_only_of_protected_columns():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, 600)
    noisy = np.where(rng.random(600) < 0.3, rng.integers(0, 3, 600), x)
    columns = {"x": x, "noisy": noisy, "free": rng.integers(0, 2, 600), "more": (x + noisy) % 3}
    found = told_of(table(**columns), public=False, columns=tuple(columns), about=("x", "free"))
    pairs = [set(pair["columns"]) for pair in found["pairs"]]
    # five of the six pairs have x or free in them, and free has nothing to do with the others
    assert len(pairs) == 5
    assert {"noisy", "more"} not in pairs
    assert {"x", "free"} not in pairs[:2]
    strengths = [pair["association"]["original"] for pair in found["pairs"]]
    assert strengths == sorted(strengths, reverse=True)
    assert found["left_out"] == 0


def test_six_pairs_are_shown_and_the_rest_is_counted():
    rng = np.random.default_rng(6)
    columns = {f"c{i}": rng.integers(0, 2, 300) for i in range(5)}
    found = told_of(table(**columns), public=False, columns=tuple(columns), about=tuple(columns))
    assert (len(found["pairs"]), found["left_out"], found["suppressed"]) == (6, 4, 0)


@pytest.mark.parametrize(
    "second", [["only"] * 60, list(range(60)), [None] * 60], ids=["constant", "many values", "missing"]
)
def test_columns_without_a_few_categories_make_no_pair(second):
    assert told_of(table(first=["a", "b"] * 30, second=second), public=False) is None


def test_numbers_make_no_pair():
    numbers = Column("second", Kind.CONTINUOUS, Role.KEY)
    frame = pl.DataFrame({"first": ["a", "b"] * 30, "second": [1.0, 2.0] * 30})
    given = Table(frame, Schema((Column("first", Kind.NOMINAL, Role.KEY), numbers)))
    assert told_of(given, public=False) is None


def test_records_without_both_values_are_left_out():
    original = table(first=["a"] * 20 + ["b"] * 20 + [None] * 10, second=["x", "y"] * 20 + ["x"] * 10)
    (found,) = told_of(original, public=False)["pairs"]
    assert found["shares"]["original"] == [[0.25, 0.25], [0.25, 0.25]]


def test_the_column_with_fewer_categories_stands_below():
    (found,) = told_of(crossed([[20, 30], [30, 20], [20, 20]]))["pairs"]
    assert found["columns"] == ["second", "first"]
    assert [len(names) for names in found["categories"]] == [2, 3]
    assert np.array(found["shares"]["original"]).shape == (2, 3)


def test_ordinal_categories_stand_in_their_order():
    column = Column("first", Kind.ORDINAL, Role.KEY, order=("low", "mid", "high"))
    frame = pl.DataFrame({"first": ["high", "high", "low", "mid"] * 20, "second": ["x"] * 40 + ["y"] * 40})
    given = Table(frame, Schema((column, Column("second", Kind.NOMINAL, Role.KEY))))
    (found,) = told_of(given, public=False)["pairs"]
    assert found["categories"][1] == ["low", "mid", "high"]


def test_many_categories_are_cut_to_the_most_frequent():
    values = [f"v{i}" for i in range(9) for _ in range(60 - 5 * i)]
    (found,) = told_of(table(first=values, second=["x", "y"] * (len(values) // 2)))["pairs"]
    assert found["categories"][1] == ["v0", "v1", "v2", "v3", "v4", OTHERS]


def test_small_cells_are_put_together_in_public():
    # c has 3 of x: it joins the next smaller, which is d
    cells = [[60, 40], [30, 50], [3, 30], [22, 15]]
    (found,) = told_of(crossed(cells))["pairs"]
    assert found["columns"] == ["second", "first"]
    assert found["categories"] == [["y", "x"], ["a", "b", OTHERS]]
    # 45 and 25 of 250
    assert [row[2] for row in found["shares"]["original"]] == [0.18, 0.1]
    assert told_of(crossed(cells), public=False)["pairs"][0]["categories"][1] == ["a", "b", "d", "c"]


def test_a_table_of_small_cells_is_suppressed_in_public():
    found = told_of(crossed([[60, 4], [30, 50]]))
    assert (found["pairs"], found["suppressed"]) == ([], 1)


def test_who_knows_one_value_does_not_learn_the_other_in_public():
    # all of c have y: nobody may be shown that
    cells = [[60, 40], [30, 50], [0, 30]]
    (found,) = told_of(crossed(cells))["pairs"]
    assert found["categories"] == [["a", OTHERS], ["y", "x"]]
    assert told_of(crossed([[50, 0], [0, 50]]))["pairs"] == []


def test_a_release_that_would_hide_all_is_suppressed_and_a_better_one_is_not():
    original = crossed([[60, 40], [30, 50]])
    small = crossed([[60, 40], [3, 77]])
    found = told_of(original, crossed([[50, 50], [30, 50]]), small)
    (pair,) = found["pairs"]
    assert list(pair["shares"]) == ["original", "m0"]
    assert pair["suppressed"] == ["m1"]
    assert found["releases"] == ["m0"]


def test_releases_without_the_columns_or_without_a_change_are_said_to_be():
    original = crossed([[60, 40], [30, 50]])
    found = told_of(original, original.select(["first"]), original, public=False)
    assert found["pairs"][0]["absent"] == ["m0"]
    assert found["pairs"][0]["unchanged"] == ["m1"]
    assert (found["releases"], found["unchanged"]) == ([], ["m1"])


def test_values_that_only_a_release_has_are_others():
    original, release = crossed([[60, 40], [30, 50]]), crossed([[60, 40], [0, 0], [30, 50]])
    (found,) = told_of(original, release)["pairs"]
    assert OTHERS in found["categories"][1]
    assert "c" not in json.dumps(found["categories"])


# The tiles ---------------------------------------------------------------------------------------------


def pair_of(cells, changed) -> dict:
    return told_of(crossed(cells), crossed(changed), public=False)["pairs"][0]


def test_the_tiles_fill_the_square_each_with_its_share():
    entry = pair_of([[30, 10, 5], [12, 30, 13]], [[20, 20, 5], [22, 20, 13]])
    for part, key in (("original", "original"), ("release", "m0")):
        tiles = mosaic(entry, part, first="m0")["layer"][0]["data"]["values"]
        assert {tile["key"] for tile in tiles} == {key}
        for tile in tiles:
            area = (tile["x2"] - tile["x"]) * (tile["y2"] - tile["y"])
            assert area == pytest.approx(entry["shares"][key][tile["a"]][tile["b"]], abs=2e-4)
        assert sum((t["x2"] - t["x"]) * (t["y2"] - t["y"]) for t in tiles) == pytest.approx(1, abs=1e-3)
        assert max(t["x2"] for t in tiles) == max(t["y2"] for t in tiles) == 1


def test_an_empty_cell_has_no_tile_but_a_difference():
    entry = pair_of([[30, 10], [0, 30]], [[30, 10], [10, 20]])
    assert len(mosaic(entry, "original", first="m0")["layer"][0]["data"]["values"]) == 3
    rows = mosaic(entry, "difference", first="m0")["data"]["values"]
    assert {row["text"] for row in rows} == {"0", "+14.3", "−14.3"}


def test_names_of_categories_are_data_and_never_expressions():
    evil = "'] + alert(1) + ['"
    given = crossed([[30, 10], [10, 30]], names=((evil, "b"), ("x", "y")))
    entry = told_of(given, crossed([[20, 20], [20, 20]]), public=False)["pairs"][0]
    for part in ("original", "release", "difference"):
        for text in expressions_in(mosaic(entry, part, first="m0")):
            assert "alert" not in text


def expressions_in(said) -> list[str]:
    if isinstance(said, dict):
        own = [
            str(value) for key, value in said.items() if key in {"filter", "calculate", "test", "field", "as"}
        ]
        return own + [text for value in said.values() for text in expressions_in(value)]
    return [text for each in said for text in expressions_in(each)] if isinstance(said, list) else []


# In a report -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> Study:
    rng = np.random.default_rng(7)
    n = 400
    sex = rng.choice(["f", "m"], n)
    frame = pl.DataFrame({
        "age": rng.integers(18, 90, n).astype(float),
        "sex": sex,
        "work": ["Rare-Sentinel"] * 3 + np.where(rng.random(n - 3) < 0.4, "none", sex[3:] + "-work").tolist(),
    })  # fmt: skip
    kinds = {"age": Kind.CONTINUOUS, "sex": Kind.NOMINAL, "work": Kind.NOMINAL}
    original = Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())))
    release = original.with_values("work", pl.Series(rng.permutation(frame["work"].to_numpy())))
    step = Step(Mdav(), ("age", "sex", "work"))
    outcomes = tuple(
        MethodAtLevel(
            LevelResult(step, "k", 3.0, 0.05, LevelStatus.WITHIN), ReplicateMean(0.05, 0, 1), ReplicateMean(0.01, 0, 1), rank,
            example=Release.of(given),
        )
        for rank, given in enumerate((release, original), start=1)
    )  # fmt: skip
    return Study(original, Target(PermutationDistance(), 0.05), EarthMoversDistance(), outcomes)


@pytest.mark.parametrize("public", [False, True])
def test_a_report_has_all_the_pictures(compared, public):
    specs = charts(twin(compared, public=public))
    assert {"against-0", "classes-sizes", "classes-below", "mosaic-0-original"} <= set(specs)
    assert {"mosaic-0-release", "mosaic-0-difference"} <= set(specs)
    html = render(compared, public=public)
    assert all(f'id="chart-{name}"' in html for name in specs)
    assert "Same counts as the original in every pair: Microaggregation (MDAV) (2)." in html


def test_the_public_pictures_hold_no_rare_value_and_no_small_count(compared):
    told = twin(compared, public=True)
    pictures = [told["class_sizes"], told["mosaics"], charts(told)]
    assert "Rare-Sentinel" not in json.dumps(pictures)
    assert "Rare-Sentinel" in json.dumps(twin(compared, public=False)["mosaics"])
    records = told["records"]
    for entry in (told["class_sizes"], *told["mosaics"]["pairs"]):
        for key, shares in entry["shares"].items():
            counts = np.array(shares) * records
            # ten records rounded to ten, of a total that rounding moves by some per cent
            assert ((counts == 0) | (counts > 9)).all(), key


def test_colour_and_shape_together_are_a_methods_own(compared):
    many = Study(
        compared.original, compared.target, compared.ranked_by, tuple(compared.outcomes[0] for _ in range(30))
    )
    told = twin(many, public=True)["outcomes"]
    assert len({(outcome["color"], outcome["shape"]) for outcome in told}) == 30
