"""Tables that are counted in their database have the scores of those that are read."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import io
from sfumato.core import registry
from sfumato.core.measure import Status
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import DataError, NoteWarning, ParameterError, UnknownNameError
from sfumato.io import frames

N = 500
SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-9,)),
        Column("size", Kind.CONTINUOUS, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY),
        Column("born", Kind.DATE, Role.KEY),
        Column("flag", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
        Column("who", Kind.NOMINAL, Role.OTHER),
        Column("share", Kind.CONTINUOUS, Role.OTHER),
        Column("remark", Kind.NOMINAL, Role.OTHER),
    )
)
POLICIES = ("category", "any", "worst")
SETTINGS = {
    "l-diversity": ("", "kind=entropy", "kind=recursive"),
    "t-closeness": ("", "distance=kind"),
    "k-map": ("population=everyone",),
    "journalist-risk": ("population=everyone",),
    "marketer-risk": ("", "population=everyone"),
}
#: All that are declared to need no more than classes, under each policy for missing keys.
MEASURES = [
    f"{name}(missing={policy}{given and ', '}{given})"
    for name, cls in registry.measures().items()
    for given in (SETTINGS.get(name, ("",)) if cls.counts.classes_only else ())
    for policy in (("category", "worst") if "population" in given else POLICIES)
]
FEW = ["k", "uniqueness(missing=worst)", "l(kind=entropy)", "t(distance=kind)", "marketer-risk(missing=any)"]


def people() -> pl.DataFrame:
    """Records of which many are equal, with all that may be missing, and texts that differ by a hair."""
    rng = np.random.default_rng(36)
    draw = rng.integers
    columns = {
        "age": pl.Series(draw(20, 22, N)).set(pl.Series(rng.random(N) < 0.1), None),
        "size": pl.Series(rng.choice([1.5, 0.0, -0.0, np.nan], N)),
        "town": pl.Series(rng.choice(["Ulm", "ulm", "Ulm ", ""], N)).set(
            pl.Series(rng.random(N) < 0.1), None
        ),
        "born": pl.Series([dt.date(1990, 1, int(day)) for day in draw(1, 3, N)]),
        "flag": pl.Series(rng.random(N) < 0.5).set(pl.Series(rng.random(N) < 0.1), None),
        "ill": pl.Series(rng.choice(["flu", "Flu", "cold"], N)).set(pl.Series(rng.random(N) < 0.1), None),
        "pay": pl.Series(draw(1, 5, N)).cast(pl.Float64),
        "who": pl.Series(draw(0, 150, N)).set(pl.Series(rng.random(N) < 0.1), None),
        "share": pl.Series(draw(1, 4, N) / 2),
        "remark": pl.Series([f"unique {number}" for number in range(N)]),
    }
    frame = pl.DataFrame(columns)
    return frame.with_columns(age=pl.when(pl.col("born").dt.day() == 2).then("age").otherwise(-9))


def with_role(schema, **roles):
    return schema.replace(*(replace(schema[name], role=role) for name, role in roles.items()))


def both(source, schema, measures, **how):
    """Scores of what is read and of what is counted."""
    whole = sfumato.assess(source, None, measures, schema=schema, **how)
    return whole, sfumato.assess(source, None, measures, schema=schema, in_database=True, **how)


def rounded(part):
    """Without the last digits of sums: a database does not keep the order in which values first appear."""
    if isinstance(part, dict):
        return {name: rounded(value) for name, value in part.items()}
    return float(f"{part:.12g}") if isinstance(part, float) else part


def assert_equal_scores(whole, counted):
    for name, score in whole.items():
        assert rounded(counted[name].to_dict()) == rounded(score.to_dict()), name
        assert counted[name].by_record is None


ROLES = {
    "records": {},
    "weights": {"share": Role.WEIGHT},
    "persons and weights": {"who": Role.PERSON, "share": Role.WEIGHT},
}


@pytest.mark.parametrize("roles", ROLES)
def test_every_measure_of_classes_has_the_same_score(roles):
    schema = with_role(SCHEMA, **ROLES[roles])
    everyone = {"everyone": sfumato.read(pl.concat([people()] * 2), schema=schema)}
    whole, counted = both(people().lazy(), schema, MEASURES, resources=everyone)
    assert_equal_scores(whole, counted)
    statuses = {name: score.status for name, score in whole.items()}
    assert sum(status in {Status.OK, Status.APPROXIMATE} for status in statuses.values()) > len(MEASURES) / 2


def test_equal_records_of_nobody_are_of_several():
    frame = pl.LazyFrame({"a": [1] * 6, "who": [None, None, None, 7, 7, 8]})
    schema = Schema((Column("a", Kind.NOMINAL, Role.KEY), Column("who", Kind.NOMINAL, Role.PERSON)))
    whole, counted = both(frame, schema, ["k", "marketer-risk", "uniqueness"])
    assert_equal_scores(whole, counted)
    assert counted["k"].value == 5


def test_databases_give_the_same_scores(address):
    io.write(people(), address("people"))
    assert_equal_scores(*both(address("people"), SCHEMA, FEW))
    assert_equal_scores(*both(address("people"), None, FEW[:2]))  # guessed from the first, who are all
    named = {"scenario": Scenario(columns=("town", "pay"))}
    assert_equal_scores(*both(address("people"), with_role(SCHEMA, who=Role.PERSON), ["k", "l"], **named))
    io.write(people().clear(), address("nobody"))
    assert_equal_scores(*both(address("nobody"), SCHEMA, FEW[:2]))


def test_names_that_nobody_expects(address):
    names = ["n0", "N0", 'a"b; DROP TABLE x;--', "select", "<b>", "=1+1"]
    names = names[1:] if address("x").startswith("sqlite") else names  # which does not tell n0 from N0
    frame = pl.DataFrame({name: [1, 1, 2] for name in names})
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in names))
    io.write(frame, address("x"))
    assert_equal_scores(*both(address("x"), schema, ["k", "uniqueness"]))


def test_collations_of_sqlite_do_not_merge_texts(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE x (a TEXT COLLATE NOCASE, b TEXT COLLATE RTRIM, c)")
        rows = [("a", "x", 1), ("A", "x", 1.0), ("a", "x ", "1"), ("a", "x", 1), ("a", None, b"1")]
        connection.executemany("INSERT INTO x VALUES (?, ?, ?)", rows)
        connection.commit()
    place = f"sqlite:{tmp_path}/x.db?table=x"
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "abc"))
    whole, counted = both(place, schema, ["k", "uniqueness"])
    assert_equal_scores(whole, counted)
    assert counted["k"].details["classes"] == 4


def test_odd_types_of_postgres_are_counted_as_they_are_read(server, sql):
    sql(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TABLE x (a text COLLATE loose, b numeric, c date, d char(3), e float4, f interval)",
        "INSERT INTO x VALUES ('a', 1.0, 'infinity', 'x', 'NaN', '1 day'), ('A', 1.00, NULL, 'x ', 0.1, NULL),"
        " ('á', 2, '2020-01-01', 'X', -0.0, '1 day'), ('a', 1, 'infinity', 'x', 'NaN', '24:00:00'),"
        " ('a', 1, 'infinity', 'x', 'NaN', '1 day')",
    )
    place = f"postgresql://admin@{server}/postgres?table=x"
    kinds = {"b": Kind.CONTINUOUS, "e": Kind.CONTINUOUS}
    schema = Schema(tuple(Column(name, kinds.get(name, Kind.NOMINAL), Role.KEY) for name in "abcdef"))
    for measure in ("k", "uniqueness(missing=any)"):
        whole, counted = both(place, schema, [measure])
        assert_equal_scores(whole, counted)
    alone = {"scenario": Scenario(columns=("a",))}
    assert both(place, schema, ["k"], **alone)[1]["k"].details["classes"] == 3
    with pytest.raises(UnknownNameError):
        sfumato.assess(place, None, ["k"], scenario=Scenario(columns=("z",)), in_database=True)


# Lazy frames ----------------------------------------------------------------------------------------------


def test_frames_of_duckdb_are_counted_there():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as connection:
        connection.register("people", people().to_arrow())
        query, how = connection.sql("SELECT * FROM people"), {"schema": SCHEMA, "seed": 1}
        assert_equal_scores(
            sfumato.assess(people(), None, FEW, **how), sfumato.assess(query, None, FEW, **how)
        )
        refused = sfumato.assess(query, None, ["suda", "individual-risk(fraction=0.1)"], **how)
        assert {score.status for score in refused.values()} == {Status.REFUSED}
        assert "collect the lazy frame" in refused["suda"].reason
        assert set(sfumato.assess(query, schema=SCHEMA)) == {"k-anonymity", "uniqueness"}
        connection.execute("CREATE TABLE towns (town VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO towns VALUES ('Ulm'), ('ulm')")
        with pytest.raises(DataError, match="takes different texts for equal in `town`"):
            sfumato.assess(connection.table("towns"), None, ["k"])


def test_what_is_guessed_of_a_large_table_is_said():
    frame = pl.concat([people()] * 24).lazy()
    with pytest.warns(NoteWarning, match="guessed from the first 10,000 records"):
        counted = sfumato.assess(frame, None, ["k"], in_database=True)
    assert counted["k"].details["records"] == 24 * N


def test_what_cannot_be_counted_is_refused(tmp_path):
    io.write(people(), tmp_path / "people.csv")
    for source in (tmp_path / "people.csv", people(), "builtin:fair"):
        with pytest.raises(ParameterError, match="needs the address of a table in a database"):
            sfumato.assess(source, None, ["k"], in_database=True)
    with pytest.raises(ParameterError, match="got: a release"):
        sfumato.assess(people().lazy(), people(), ["k"], in_database=True)
    nobody = Schema((Column("who", Kind.NOMINAL, Role.IDENTIFIER),))
    with pytest.raises(ParameterError, match="no column to count by"):
        sfumato.assess(people().lazy().select("who"), None, ["k"], schema=nobody, in_database=True)


def test_collations_are_told_by_what_they_take_for_equal():
    nw = pytest.importorskip("narwhals")
    texts = nw.from_native(pl.LazyFrame({"a": ["a", "A", None, "", "á", "a "]}))
    assert frames.count_lazy(texts, ["a"])["n0"].to_list() == [1] * 6
