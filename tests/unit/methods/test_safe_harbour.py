"""Safe harbour masking on small tables whose answer is worked out."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.build import from_intervals, from_tree
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets.patients import patients
from sfumato.errors import DataError, RefusedError
from sfumato.front import protect
from sfumato.methods.safe_harbour import TABLE_S3, SafeHarbour

AGES = from_intervals(range(100), widths=[10, 50], name="age")


def table_of(**columns):
    kinds = {"age": Kind.CONTINUOUS, "born": Kind.DATE}
    facts = {"age": {"hierarchy": "ages"}, "person": {"role": Role.PERSON}}
    schema = Schema(
        tuple(Column(name, kinds.get(name, Kind.NOMINAL), **facts.get(name, {})) for name in columns)
    )
    return Table(pl.DataFrame(columns), schema)


def texts(table, name):
    """The cells of a column as a file would show them, node labels as they are."""
    series = table.frame[name]
    return (series.cast(pl.String) if name in table.nodes else to_text(series)).to_list()


def masked(table, method, columns=(), **resources):
    columns = columns or [name for name in table.names if table.schema[name].role is not Role.PERSON]
    return protect(table, method, columns=columns, resources={"ages": AGES, **resources})


def test_turns_are_taken_one_after_the_other_by_those_who_are_still_rare():
    """Two of 31 and 33 are alike after the first turn, two more after race, the rest only at the end."""
    table = table_of(age=[31, 33, 50, 50, 62, 67, 97], race=["a", "a", "b", "b", "a", "b", "c"])
    release = masked(table, SafeHarbour(order="age@1, race, age"))
    assert texts(release.table, "age") == ["[30;39]", "[30;39]", "50", "50", "[60;69]", "[60;69]", "*"]
    assert texts(release.table, "race") == ["a", "a", "b", "b", "*", "*", "*"]
    assert release.provenance[0].notes == ("1 record still in classes of fewer than 2 when the order ended",)


def test_a_column_may_climb_twice_before_it_is_suppressed():
    table = table_of(age=[12, 38, 55], race=["a", "a", "a"])
    release = masked(table, SafeHarbour(order="age@1, age@2, age"))
    assert texts(release.table, "age") == ["[0;49]", "[0;49]", "*"]


def test_what_is_rare_is_set_by_k():
    table = table_of(town=["x"] * 3 + ["y"] * 2 + ["z"])
    for k, shown in ((1, "xxxyyz"), (2, "xxxyy*"), (3, "xxx***"), (4, "******")):
        assert "".join(texts(masked(table, SafeHarbour(k=k, order="town")).table, "town")) == shown


def test_columns_outside_the_order_count_but_are_not_masked():
    table = table_of(town=["x", "x", "y", "y"], race=["a", "b", "a", "a"])
    release = masked(table, SafeHarbour(order="race"))
    assert texts(release.table, "race") == ["*", "*", "a", "a"]
    assert texts(release.table, "town") == ["x", "x", "y", "y"]
    alone = masked(table, SafeHarbour(order="race"), columns=["race"])
    assert texts(alone.table, "race") == ["a", "*", "a", "a"]


def test_without_an_order_the_column_of_most_values_goes_first():
    table = table_of(race=["a", "a", "b", "b", "a"], town=["x", "x", "y", "z", "u"])
    release = masked(table, SafeHarbour())
    assert texts(release.table, "town") == ["x", "x", "*", "*", "*"]
    assert texts(release.table, "race") == ["a", "a", "b", "b", "*"]


def test_table_s3_is_the_order_of_its_columns():
    table = patients(50)
    names = sorted({text.split("@")[0] for text in TABLE_S3.split(", ")})
    turns = SafeHarbour().turns(table.aimed_at(names))
    assert [(turn.column, turn.level) for turn in turns] == [
        ("age_yrs", 1), ("ethncty", None), ("race", None), ("sex", None), ("age_yrs", 2), ("age_yrs", None),
        ("adm_qtr", None), ("patzip", 1), ("patcnty", None), ("patzip", None),
    ]  # fmt: skip
    assert SafeHarbour(order=TABLE_S3).turns(table.aimed_at(names)) == turns
    fewer = SafeHarbour().turns(table.aimed_at(names[1:]))
    assert all(turn.level is None for turn in fewer)


def test_ranges_of_table_s3_nest_and_zip_codes_keep_three_digits():
    table = patients(600)
    release = protect(
        table, SafeHarbour(), columns=["age_yrs", "ethncty", "race", "sex", "adm_qtr", "patzip", "patcnty"]
    )
    ages = {text for text in texts(release.table, "age_yrs") if text.startswith("[")}
    fine = {f"[{i * 86 // 20};{(i + 1) * 86 // 20 - 1}]" for i in range(1, 19)} | {"[;3]", "[81;]"}
    coarse = {f"[{i * 86 // 5};{(i + 1) * 86 // 5 - 1}]" for i in range(1, 4)} | {"[;16]", "[68;]"}
    assert ages <= fine | coarse
    assert ages & fine
    assert ages & coarse
    codes = set(texts(release.table, "patzip"))
    assert any(code.endswith("**") and code[:3].isdecimal() for code in codes)


def test_missing_keys_stay_missing_until_they_are_suppressed():
    table = table_of(age=[31, None, None, 70], race=["a", "a", None, "c"])
    release = masked(table, SafeHarbour(order="age@1, race"))
    assert texts(release.table, "age") == ["[30;39]", None, None, "[70;79]"]
    assert texts(release.table, "race") == ["*", "*", "*", "*"]
    shown = masked(table, SafeHarbour(order="race, age", show="missing"))
    assert shown.table.frame["race"].to_list() == [None] * 4
    assert shown.table.frame["age"].to_list() == [None] * 4
    assert shown.table.frame["age"].dtype == table.frame["age"].dtype


def test_policies_for_missing_keys():
    table = table_of(town=["x", None, "y", "y"])
    shown = {
        policy: masked(table, SafeHarbour(order="town", missing=policy)).table
        for policy in ("category", "any", "worst")
    }
    assert texts(shown["category"], "town") == ["*", "*", "y", "y"]
    assert texts(shown["any"], "town") == ["x", None, "y", "y"]
    assert texts(shown["worst"], "town") == ["*", "*", "y", "y"]


def test_people_are_counted_not_records():
    table = table_of(person=[1, 1, 2, 3], town=["x", "x", "y", "y"])
    assert texts(masked(table, SafeHarbour(order="town")).table, "town") == ["*", "*", "y", "y"]


def test_labels_of_a_declared_hierarchy():
    tree = from_tree({"South": ["Ashford", "Dover"], "North": ["Barton"]}, name="towns")
    schema = Schema((Column("town", Kind.NOMINAL, Role.KEY, hierarchy="towns"),))
    table = Table(pl.DataFrame({"town": ["Ashford", "Dover", "Barton"]}), schema)
    release = masked(table, SafeHarbour(order="town@1, town"), towns=tree)
    assert texts(release.table, "town") == ["South", "South", "*"]
    assert release.table.schema == table.schema


def test_dates_climb_the_calendar():
    table = table_of(born=[date(1980, 5, 1), date(1980, 5, 9), date(1999, 1, 1)])
    release = masked(table, SafeHarbour(order="born@1"))
    assert texts(release.table, "born") == ["1980-05", "1980-05", "1999-01"]
    assert (
        release.provenance[0].notes[1] == "the hierarchy of `born` is not declared: proposed from its values"
    )


@pytest.mark.parametrize(
    "order", ["person", "age@0", "age@x", "age, age", "age, age@1", "age@2, age@1", ",", "@1"]
)
def test_orders_that_are_none(order):
    with pytest.raises(RefusedError, match="`order` of safe-harbour must list protected columns"):
        masked(table_of(age=[1, 2], race=["a", "b"]), SafeHarbour(order=order))


def test_a_level_that_is_not_there():
    with pytest.raises(DataError, match="must name a level from 1 to 3 of `age`, got: `7`"):
        masked(table_of(age=[1, 2]), SafeHarbour(order="age@7"))


def test_what_is_coarse_can_be_suppressed_but_not_climb():
    once = masked(table_of(age=[31, 33, 97]), SafeHarbour(order="age@1")).table
    assert texts(masked(once, SafeHarbour(order="age")).table, "age") == ["[30;39]", "[30;39]", "*"]
    with pytest.raises(RefusedError, match="must be given exact values, got: generalised ones in `age`"):
        masked(once, SafeHarbour(order="age@2"))


def test_names_with_an_at_sign_are_names():
    table = table_of(**{"a@1": ["x", "x", "y"]})
    assert texts(masked(table, SafeHarbour(order="a@1")).table, "a@1") == ["x", "x", "*"]


@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.NOMINAL])
def test_strata_of_which_only_one_is_masked_fit_together(kind):
    schema = Schema((Column("code", kind, Role.KEY), Column("stratum", Kind.NOMINAL)))
    table = Table(pl.DataFrame({"code": [7, 7, 1, 2], "stratum": ["a", "a", "b", "b"]}), schema)
    release = protect(table, SafeHarbour(order="code"), columns=["code"], within=["stratum"])
    assert texts(release.table, "code") == ["7", "7", "*", "*"]
