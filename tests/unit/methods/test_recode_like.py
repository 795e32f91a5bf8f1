"""Recoding like another release: fitted once, applied later."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato import kernels
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError, UnreachableError
from sfumato.front import protect
from sfumato.methods.recode_like import RecodeLike, learning

TOWNS = Nodes.of(
    {"Ely": ["Ely"], "Bath": ["Bath"], "north": ["Ely", "York"], "Bath or York": ["Bath", "York"]},
    leaves=["Bath", "Ely", "York"],
)


def schema_of(**kinds):
    return Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items()))


AGES, PLACES = schema_of(age=Kind.CONTINUOUS), schema_of(town=Kind.NOMINAL)


def ages_like(*ranges, missing=None):
    lo, hi = zip(*ranges, strict=True)
    return Table(pl.DataFrame([intervals(list(lo), list(hi), name="age", missing=missing)]), AGES)


def towns_like(*labels):
    return Table(pl.DataFrame([pl.Series("town", labels, dtype=TOWNS.dtype)]), PLACES, nodes={"town": TOWNS})


def recoded(table, like, **settings):
    return protect(table, RecodeLike(like="first", **settings), resources={"first": like})


def texts(release, name):
    table = release.table
    series = table.frame[name]
    return (series.cast(pl.String) if name in table.nodes else to_text(series)).to_list()


def test_the_narrowest_range_that_covers_a_value():
    like = ages_like((0, 99), (20, 39), (20, 29), (60, None))
    table = Table(pl.DataFrame({"age": [25, 35, 55, 61, 150, -1]}), AGES)
    release = recoded(table, like)
    # 60 and more ends with the column, at 99: narrower than 0 to 99.
    assert texts(release, "age") == ["[20;29]", "[20;39]", "[0;99]", "[60;]", "[60;]", "*"]
    assert release.classes.tolist() == [1, 2, 4, 3, 3, 0]
    assert release.provenance[0].notes == ("1 record that no box of `first` covers, suppressed in every key",)


def test_of_equally_narrow_ranges_the_first():
    table = Table(pl.DataFrame({"age": [30]}), AGES)
    assert texts(recoded(table, ages_like((30, 39), (21, 30))), "age") == ["[30;39]"]
    assert texts(recoded(table, ages_like((21, 30), (30, 39))), "age") == ["[21;30]"]


def test_labels_cover_their_values_also_with_gaps():
    table = Table(pl.DataFrame({"town": ["Ely", "York", "Bath", "Hull"]}), PLACES)
    assert texts(recoded(table, towns_like("north", "Ely", "Bath")), "town") == ["Ely", "north", "Bath", "*"]
    release = recoded(table, towns_like("Bath or York", "north"))
    assert texts(release, "town") == ["north", "Bath or York", "Bath or York", "*"]
    assert release.table.nodes["town"] == TOWNS


def test_a_combination_covers_in_every_key():
    both = schema_of(age=Kind.CONTINUOUS, town=Kind.NOMINAL)
    like = Table(
        pl.DataFrame(
            [
                intervals([20, 30, 20], [29, 39, 39], name="age"),
                pl.Series("town", ["north", "Bath", "*"], dtype=TOWNS.dtype),
            ]
        ),
        both,
        nodes={"town": TOWNS},
    )
    table = Table(
        pl.DataFrame({"age": [25, 25, 35, 35, 50], "town": ["York", "Bath", "Bath", "Ely", "Ely"]}), both
    )
    release = recoded(table, like)
    assert texts(release, "age") == ["[20;29]", "[20;39]", "[30;39]", "[20;39]", "*"]
    assert texts(release, "town") == ["north", "*", "Bath", "*", "*"]


def test_exact_columns_of_the_release_stay_exact():
    table = Table(pl.DataFrame({"town": ["Ely", "York", "Bath", None]}), PLACES)
    like = Table(pl.DataFrame({"town": ["York", "Ely", None]}), PLACES)
    release = recoded(table, like)
    assert texts(release, "town") == ["Ely", "York", "*", None]
    everyone = recoded(table.take(np.array([0, 1, 3])), like)
    assert everyone.table.frame["town"].to_list() == ["Ely", "York", None]
    assert not everyone.table.nodes


def test_missing_values_lie_where_the_key_is_missing_or_suppressed():
    table = Table(pl.DataFrame({"age": [25, None]}), AGES)
    like = ages_like((20, 29), (0, 0), missing=[False, True])
    assert texts(recoded(table, like), "age") == ["[20;29]", None]
    assert texts(recoded(table, ages_like((20, None))), "age") == ["[20;]", "*"]
    assert recoded(table, ages_like((None, None))).provenance[0].notes == ()


def test_missing_keys_of_a_release_by_local_suppression_may_be_any():
    first = Table(pl.DataFrame({"town": ["Ely", "Ely", "York"]}), PLACES)
    like = to_missing(first, "town", np.array([False, False, True]))
    table = Table(pl.DataFrame({"town": ["Ely", "Bath", None]}), PLACES)
    assert texts(recoded(table, like, missing="any"), "town") == ["Ely", None, None]
    assert texts(recoded(table, like), "town") == ["Ely", "*", None]


def test_dates_of_another_unit():
    when = schema_of(day=Kind.DATE)
    like = Table(pl.DataFrame([intervals([date(2020, 1, 1)], [date(2020, 12, 31)], name="day")]), when)
    instants = pl.Series("day", ["2020-12-31 12:00", "2021-01-01 00:00"]).str.to_datetime("%Y-%m-%d %H:%M")
    table = Table(pl.DataFrame([instants.cast(pl.Datetime("ms"))]), when)
    assert texts(recoded(table, like), "day") == ["[2020-01-01;2020-12-31]", "*"]


def test_whole_and_real_numbers_meet():
    table = Table(pl.DataFrame({"age": [25.5, 29.5]}), AGES)
    assert texts(recoded(table, ages_like((20, 29))), "age") == ["[20;29]", "*"]


def test_what_is_learnt_is_applied_by_its_release():
    release = learning(recoded(Table(pl.DataFrame({"age": [25]}), AGES), ages_like((20, 29))), ["age"])
    later = Table(pl.DataFrame({"age": [21, 70]}), AGES)
    again = protect(later, release.fitted, columns=["age"], resources=release.resources)
    assert texts(again, "age") == ["[20;29]", "*"]


def test_records_outside_may_stop_the_release():
    table = Table(pl.DataFrame({"age": [25, 70]}), AGES)
    with pytest.raises(UnreachableError, match="1 record fit no combination of keys"):
        recoded(table, ages_like((20, 29)), unseen="raise")
    assert texts(recoded(table, ages_like((20, 79)), unseen="raise"), "age") == ["[20;79]", "[20;79]"]


def test_an_empty_release_covers_nobody():
    table = Table(pl.DataFrame({"age": [25, 70]}), AGES)
    nobody = ages_like((20, 29)).take(np.arange(0))
    assert texts(recoded(table, nobody), "age") == ["*", "*"]


def test_refusals():
    table = Table(pl.DataFrame({"age": [25]}), AGES)
    with pytest.raises(PlanError, match="`like` of recode-like names a resource that is not declared"):
        protect(table, RecodeLike(), columns=["age"])
    with pytest.raises(RefusedError, match="`first` lacks keys that recode-like needs: `age`"):
        recoded(table, towns_like("Ely"))
    with pytest.raises(RefusedError, match="must name a resource that is a table"):
        recoded(table, "age")
    with pytest.raises(RefusedError, match="must be given exact values, got: generalised ones in `age`"):
        recoded(ages_like((1, 2)), ages_like((1, 2)))
    words = Table(pl.DataFrame({"age": ["old"]}), schema_of(age=Kind.NOMINAL))
    with pytest.raises(DataError, match="must hold numbers to lie in ranges"):
        recoded(words, ages_like((1, 2)))


def test_first_covering_box_of_many_is_that_of_a_full_search():
    rng = np.random.default_rng(3)
    points = rng.integers(0, 12, (400, 3)).astype(np.float64)
    lows = rng.integers(0, 12, (700, 3)).astype(np.float64)
    highs = lows + rng.integers(0, 4, (700, 3))
    lows[:40, 0], highs[:40, 0] = -np.inf, np.inf
    lists = np.where(rng.random((700, 3)) < 0.3, rng.integers(0, 5, (700, 3)), -1)
    members = (rng.random((5, 16)) < 0.6).astype(np.uint8)
    points[:5, 1] = np.inf
    lists[:40, 0] = -1
    found = kernels.trees.covering.first_covering(points, lows, highs, lists=lists, members=members)
    for point, box in zip(points, found, strict=True):
        inside = ((lows <= point) & (point <= highs)).all(axis=1)
        for column in range(3):
            value = int(min(point[column], 15))
            inside &= (lists[:, column] < 0) | (members[lists[:, column], value] == 1)
        assert box == (np.flatnonzero(inside)[0] if inside.any() else -1)
    assert 0 < (found >= 0).sum() < len(found)


def test_values_where_the_other_table_knew_none_lie_in_the_wildcard():
    nobody = Table(pl.DataFrame({"town": pl.Series([None], dtype=pl.String)}), PLACES)
    like = to_wildcard(nobody, "town", np.ones(1, dtype=np.bool_))
    release = recoded(Table(pl.DataFrame({"town": ["Ely", None]}), PLACES), like)
    assert release.table.frame["town"].to_list() == ["*", "*"]
    assert release.provenance[0].notes == ()
