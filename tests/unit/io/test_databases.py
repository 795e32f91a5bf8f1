"""Tables of SQLite files and of a real PostgreSQL server, which the tests start on loopback."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, MissingDependencyError, ParameterError, ReadError, WriteError
from sfumato.io import addresses, databases

SECRET, PASSWORD = "Xanthippe", "pass-Diotima"
DAY, MOMENT = dt.date(1850, 11, 15), dt.datetime(1850, 11, 15, 1, 2, 3, 456789)  # noqa: DTZ001


@pytest.fixture
def lite(tmp_path):
    """Give a function that runs statements on a file of SQLite, and the file."""
    path = tmp_path / "people.db"

    def run(*statements, many=()):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                found = connection.executemany(statement, many) if many else connection.execute(statement)
                rows = found.fetchall()
            connection.commit()
        return rows

    run.path = path
    return run


def fails(kind, action, *given, **told):
    with pytest.raises(kind) as caught:
        action(*given, **told)
    error = caught.value
    assert error.exit_code == 3
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    for word in (SECRET, PASSWORD):
        assert word not in str(error)
    assert "\n" not in error.message
    return error


# Addresses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "schema", "table"),
    [
        ("sqlite:people.db?table=persons", "people.db", "", "persons"),
        ("sqlite:///data/people.db?table=persons", "/data/people.db", "", "persons"),
        ("sqlite:/data/a%20b%3F.db?table=a.b%26c+d", "/data/a b?.db", "", "a.b&c+d"),
        ("SQLite:People.db?table=x", "People.db", "", "x"),
        ("postgresql://u@h:5432/db?table=s.t", "postgresql://u@h:5432/db", "s", "t"),
        ("postgres://h/db?table=t", "postgres://h/db", "", "t"),
        ('POSTGRES:///db?table="a.b"."c""d"', "postgres:///db", "a.b", 'c"d'),
        ("postgresql://u@[::1]/db?sslmode=require&table=t%40u", "postgresql://u@[::1]/db", "", "t@u"),
    ],
)
def test_addresses(text, place, schema, table):
    assert addresses.is_address(text)
    address = addresses.parse(text)
    assert (address.place, address.schema, address.table) == (place, schema, table)


@pytest.mark.parametrize(
    "text", ["people.db", "data.csv", "/x/sqlite.csv", "builtin:rand", "C:/sqlite:x.csv"]
)
def test_what_is_no_address(text):
    assert not addresses.is_address(text)
    assert not addresses.is_address(Path(text))


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:people.db",
        "sqlite:?table=x",
        "sqlite::memory:?table=x",
        "sqlite://host/people.db?table=x",
        "sqlite:people.db?table=x&mode=rwc",
        "postgresql://u@h/db",
        "postgresql://u@h/db?tabel=x",
        "postgresql://u@h/db?table=a.b.c",
        'postgresql://u@h/db?table="a',
        Path("postgresql://u@h/db?table=x"),  # which has lost a slash
        "postgresql:u@h?table=x",
    ],
)
def test_addresses_that_are_none(text):
    fails(ReadError, io.read, text)
    error = fails(WriteError, io.write, pl.DataFrame({"a": [1]}), text)
    assert error.hint.startswith("write ")


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://u:{PASSWORD}@h/db?table=t",
        f"postgres://u:{PASSWORD}/x?y#z@h/db?table=t",
        f"postgresql://u/v:{PASSWORD}@h/db?table=t",
        f"postgresql:/u:{PASSWORD}@h/db?table=t",
        f"POSTGRESQL://:{PASSWORD}@h/db",
        f"postgresql://u@h/db?table=t&password={PASSWORD}",
        f"postgresql://u@h/db?pass%77ord={PASSWORD}&table=t",
        f"postgresql://u@h/db?PASSWORD={PASSWORD}&table=t",
        f"postgresql://u@h/db?sslpassword={PASSWORD}",
    ],
)
def test_a_password_is_refused_and_not_repeated(text):
    for error in (
        fails(ReadError, io.read_table, text),
        fails(WriteError, io.write, pl.DataFrame({"a": [1]}), text),
        fails(WriteError, io.check_writable, text),
        fails(ReadError, addresses.resolve_in_folder, text, Path()),
    ):
        assert "seems to hold a password" in error.message
        assert "PGPASSWORD" in error.hint
        assert ".pgpass" in error.hint
    with pytest.raises(ParameterError) as caught:
        io.write(pl.DataFrame({"a": [1]}), text, guard=True)
    assert PASSWORD not in str(caught.value)


def test_a_relative_file_is_taken_from_a_folder(tmp_path, monkeypatch):
    place = addresses.resolve_in_folder("sqlite:a%3Fb.db?table=x%26y", tmp_path)
    assert addresses.parse(place) == addresses.Address("sqlite", str(tmp_path / "a?b.db"), "x&y")
    assert addresses.resolve_in_folder("sqlite:/a.db?table=x", tmp_path) == "sqlite:/a.db?table=x"
    server = "postgresql://u@h/db?table=s.t"
    assert addresses.resolve_in_folder(server, tmp_path) == server
    monkeypatch.chdir(tmp_path)
    io.write(pl.DataFrame({"a": [1]}), "sqlite:a%3Fb.db?table=x%26y")
    assert (tmp_path / "a?b.db").is_file()
    assert io.read(place).rows() == [(1,)]


# Both systems ---------------------------------------------------------------------------------------------


def test_what_is_written_is_read(address):
    frame = pl.DataFrame(
        {
            "n": [1, None, -(2**63), 2**63 - 1],
            "x": [0.1, None, float("-inf"), 5e-324],
            "t": ["", None, "ünï 𝄞 'quoted' \"twice\"\r\n\t\\N", "007"],
            "flag": [True, None, False, True],
            "day": [DAY, None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
            "at": [MOMENT, None, MOMENT, MOMENT],
            "*": [1, 2, 3, 4],
            'a"b; DROP TABLE x;--': [1, 2, 3, 4],
            "Größe (cm)": [1.5, 2.5, 3.5, 4.5],
        }
    )
    io.write(frame, address("x"))
    assert_frame_equal(io.read(address("x")), frame, check_exact=True)
    assert_frame_equal(io.read(address("x"), rows=2), frame.head(2))
    assert io.read(address("x"), rows=0).height == 0


def test_other_types_become_those_that_there_are(address):
    frame = pl.DataFrame(
        {
            "small": pl.Series([1, None], dtype=pl.Int8),
            "large": pl.Series([1, None], dtype=pl.UInt64),
            "single": pl.Series([0.5, None], dtype=pl.Float32),
            "kind": pl.Series(["a", None], dtype=pl.Categorical),
            "grade": pl.Series(["lo", None], dtype=pl.Enum(["lo"])),
            "none": [None, None],
            "price": [Decimal("12.50"), None],
            "at": pl.Series([MOMENT, None], dtype=pl.Datetime("ns")),
        }
    )
    io.write(frame, address("x"))
    read = io.read(address("x"))
    assert read.rows() == [(1, 1, 0.5, "a", "lo", None, 12.5, MOMENT), (None,) * 8]
    assert read.dtypes == [*[pl.Int64] * 2, pl.Float64, *[pl.String] * 3, pl.Float64, pl.Datetime("us")]


def test_empty_tables(address):
    schema = {"n": pl.Int64, "x": pl.Float64, "t": pl.String, "b": pl.Boolean, "d": pl.Date}
    io.write(pl.DataFrame(schema=schema), address("x"))
    assert io.read(address("x")).schema == schema


def test_generalised_values_go_through_text(address):
    schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY),))
    ages = intervals([20, 30, None], [29, 30, None], missing=[False, False, True], name="age")
    io.write(Table(pl.DataFrame({"age": ages}), schema), address("x"))
    assert io.read(address("x"))["age"].to_list() == ["[20;29]", "30", None]
    assert io.read_table(address("x"), schema).frame["age"].equals(ages, null_equal=True)


@pytest.mark.parametrize("name", ["a'b", "x; DROP TABLE y", "select", "Ünï", "a%20b", "Robert'); --", "%25"])
def test_names_of_tables_are_names_only(address, name):
    from urllib.parse import quote

    frame = pl.DataFrame({"a": [1], "select": ["x"]})
    io.write(frame, address("y"))
    io.write(frame, address(quote(name)))
    assert_frame_equal(io.read(address(quote(name))), frame)
    assert_frame_equal(io.read(address("y")), frame)


def test_an_unknown_table_suggests_near_ones(address):
    io.write(pl.DataFrame({"a": [1]}), address("persons"))
    error = fails(ReadError, io.read, address("person"))
    assert error.message.startswith("there is no table `person` in `")
    assert error.hint == "did you mean `persons`?"
    assert "persons" in fails(ReadError, io.read, address("zzz")).hint


def test_a_table_is_replaced_only_if_allowed(address):
    old, new = pl.DataFrame({"a": [1]}), pl.DataFrame({"b": ["x"]})
    io.write(old, address("x"))
    error = fails(WriteError, io.write, new, address("x"))
    assert "exists already" in error.message
    assert error.hint == "choose another name, or replace it: --overwrite (in Python overwrite=True)"
    assert_frame_equal(io.read(address("x")), old)
    io.write(new, address("x"), overwrite=True)
    assert_frame_equal(io.read(address("x")), new)


@pytest.mark.parametrize("when", ["CREATE TABLE", "DROP TABLE", "ALTER TABLE"])
@pytest.mark.parametrize("fault", [OSError("disk is full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_table(address, monkeypatch, when, fault):
    old = pl.DataFrame({"a": [1]})
    io.write(old, address("x"))
    ask = databases._ask

    def stumbling(connection, statement, *values):
        found = ask(connection, statement, *values)
        if statement.startswith(when):
            raise fault
        return found

    with monkeypatch.context() as patch:
        patch.setattr(databases, "_ask", stumbling)
        with pytest.raises((WriteError, KeyboardInterrupt)):
            io.write(pl.DataFrame({"b": [SECRET]}), address("x"), overwrite=True)
    assert_frame_equal(io.read(address("x")), old)
    assert fails(ReadError, io.read, address("none")).hint == "there is only `x`"  # and nothing else


def test_originals_are_never_replaced(address):
    frame = pl.DataFrame({"a": [1]})
    io.write(frame, address("x"))
    for action in (lambda *to, **how: io.write(frame, *to, **how), io.check_writable):
        error = fails(
            WriteError, action, address("x"), originals=[address("y"), address("x")], overwrite=True
        )
        assert "is an original" in error.message
    io.write(frame, address("z"), originals=[address("x")])
    io.write(frame, address("z"), originals=[address("x"), "people.csv"], overwrite=True)


def test_whether_a_table_could_be_written(address):
    io.check_writable(address("x"))
    fails(ReadError, io.read, address("x"))
    io.write(pl.DataFrame({"a": [1]}), address("x"))
    fails(WriteError, io.check_writable, address("x"))
    io.check_writable(address("x"), overwrite=True)
    assert io.read(address("x")).rows() == [(1,)]


@pytest.mark.parametrize(
    ("column", "got"),
    [
        ([[SECRET]], "values of type List"),
        ([b"x"], "values of type Binary"),
        ([dt.timedelta(1)], "values of type Duration"),
        (pl.Series([2**63], dtype=pl.UInt64), "numbers that are too large"),
    ],
)
def test_what_a_database_cannot_hold_is_refused(address, column, got):
    error = fails(WriteError, io.write, pl.DataFrame({"ok": [1], "a": column}), address("x"))
    assert error.message == f"the database cannot store the column `a`: it has {got}"
    fails(WriteError, io.write, pl.DataFrame(), address("x"))
    fails(WriteError, io.write, pl.DataFrame({"a\0b": [1]}), address("x"))


def test_views_are_read_and_not_written(address, request):
    io.write(pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}), address("x"))
    text = "CREATE VIEW v AS SELECT a + 1 AS more, b FROM x"
    request.getfixturevalue("lite" if address("").startswith("sqlite") else "sql")(text)
    assert io.read(address("v")).rows() == [(2, "x"), (3, "y")]
    error = fails(WriteError, io.write, pl.DataFrame({"a": [1]}), address("v"), overwrite=True)
    assert error.message.endswith("exists already, as a view")
    # Replacing the table would change what the view shows.
    fails(
        WriteError, io.write, pl.DataFrame({"a": [1]}), address("x"), overwrite=True, originals=[address("v")]
    )
    assert io.read(address("v")).height == 2


def test_options_of_text_are_refused(address):
    with pytest.raises(ParameterError, match="`delimiter` does not apply to databases"):
        io.read(address("x"), delimiter=",")
    with pytest.raises(ParameterError, match="`rows` must be a whole number of at least 0"):
        io.read(address("x"), rows=-1)


@pytest.mark.parametrize("system", ["sqlite", "postgresql"])
def test_missing_packages_say_what_to_install(monkeypatch, tmp_path, system):
    monkeypatch.setitem(sys.modules, f"adbc_driver_{system}.dbapi", None)
    with pytest.raises(MissingDependencyError) as caught:
        io.read(f"{system}://{tmp_path}/x?table=a")
    assert caught.value.message.endswith(f"needs the package `adbc-driver-{system}`")
    assert caught.value.hint == "pip install 'sfumato[databases]'"


# SQLite ---------------------------------------------------------------------------------------------------


def test_every_cell_of_sqlite_has_its_own_type(lite):
    lite("CREATE TABLE x (late, mixed, numbers, whole INTEGER, bytes, all_null, text_in_whole INTEGER, half)")
    many = [(None, 1, 1, 1, b"\x01", None, 1, None)] * 3000  # more than the driver looks at
    many += [
        (SECRET, 2.5, 2.5, None, None, None, "many", b"\xff"),
        (7, "word", 3, 2**62, b"", None, None, "t"),
    ]
    lite("INSERT INTO x VALUES (?, ?, ?, ?, ?, ?, ?, ?)", many=many)
    read = io.read(f"sqlite:{lite.path}?table=x")
    assert read.tail(2).rows() == [
        (SECRET, "2.5", 2.5, None, None, None, "many", "FF"),
        ("7", "word", 3.0, 2**62, b"", None, None, "t"),
    ]
    assert read.head(1).rows() == [(None, "1", 1.0, 1, b"\x01", None, "1", None)]
    types = [pl.String, pl.String, pl.Float64, pl.Int64, pl.Binary, pl.String, pl.String, pl.String]
    assert read.dtypes == types
    assert io.read(f"sqlite:{lite.path}?table=x", rows=5).schema["mixed"] == pl.Int64


def test_declared_types_of_sqlite(lite):
    lite(
        "CREATE TABLE x (b BOOLEAN, odd BOOL, d DATE, dt DATETIME, unclear DATE, word DATE, zip TEXT, n NUMERIC(9, 2),"
        " twice INTEGER GENERATED ALWAYS AS (b * 2))",
        "INSERT INTO x (b, odd, d, dt, unclear, word, zip, n) VALUES"
        " (1, 2, '2026-01-02', '2026-01-02 03:04:05', '01/02/2026', 'soon', '01234', 1.5),"
        " (0, 1, NULL, NULL, NULL, '2026-01-02', NULL, 2)",
    )
    read = io.read(f"sqlite:{lite.path}?table=x")
    moment = dt.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
    assert read.rows() == [
        (True, 2, dt.date(2026, 1, 2), moment, "01/02/2026", "soon", "01234", 1.5, 2),
        (False, 1, None, None, None, "2026-01-02", None, 2.0, 0),
    ]


def test_sqlite_does_not_tell_capitals(lite):
    lite("CREATE TABLE Persons (a)", "INSERT INTO Persons VALUES (1)")
    assert io.read(f"sqlite:{lite.path}?table=persons").rows() == [(1,)]
    original = [f"sqlite:{lite.path}?table=PERSONS"]
    fails(
        WriteError,
        io.write,
        pl.DataFrame({"a": [2]}),
        f"sqlite:{lite.path}?table=persons",
        originals=original,
    )
    fails(WriteError, io.write, pl.DataFrame({"a": [1], "A": [2]}), f"sqlite:{lite.path}?table=x")
    io.write(pl.DataFrame({"a": [2]}), f"sqlite:{lite.path}?table=persons", overwrite=True)
    assert lite("SELECT name FROM sqlite_master") == [("persons",)]


def test_originals_of_sqlite_by_other_names(lite, tmp_path, monkeypatch):
    lite("CREATE TABLE x (a)")
    (tmp_path / "link.db").symlink_to(lite.path)
    monkeypatch.chdir(tmp_path)
    for original in (
        "sqlite:people.db?table=x",
        f"sqlite://{tmp_path}/link.db?table=X",
        tmp_path / "people.db",
    ):
        error = fails(
            WriteError, io.write, pl.DataFrame({"a": [1]}), f"sqlite:{lite.path}?table=x", originals=[original],
            overwrite=True,
        )  # fmt: skip
        assert "is an original" in error.message
    other = ["sqlite:none.db?table=x", "postgresql://u@h/db?table=x", "data.csv"]
    io.write(pl.DataFrame({"a": [1]}), f"sqlite:{lite.path}?table=x", originals=other, overwrite=True)


def test_a_view_survives_its_table(lite):
    lite("CREATE TABLE x (a)", "CREATE VIEW v AS SELECT a FROM x")
    io.write(pl.DataFrame({"a": [5]}), f"sqlite:{lite.path}?table=x", overwrite=True)
    assert io.read(f"sqlite:{lite.path}?table=v").rows() == [(5,)]


def test_files_that_are_not_there(tmp_path):
    error = fails(ReadError, io.read, f"sqlite:{tmp_path}/none.db?table=x")
    assert error.message.startswith("File not found: ")
    error = fails(WriteError, io.write, pl.DataFrame({"a": [1]}), f"sqlite:{tmp_path}/no/none.db?table=x")
    assert error.message.startswith("Folder not found: ")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    assert fails(ReadError, io.read, f"sqlite:{tmp_path}/empty.db?table=x").hint == "it has no tables"


def test_files_that_are_no_databases(tmp_path):
    (tmp_path / "data.csv").write_text(f"a\n{SECRET}\n" * 200)
    for kind, action in ((ReadError, io.read), (WriteError, io.check_writable)):
        error = fails(kind, action, f"sqlite:{tmp_path}/data.csv?table=x")
        assert "the file is not an SQLite database" in error.message
        assert "cannot be opened" in fails(kind, action, f"sqlite:{tmp_path}?table=x").message


def test_nothing_is_left_of_a_file_that_failed(tmp_path, monkeypatch):
    def stumble(*_):
        raise OSError(SECRET)

    monkeypatch.setattr(databases, "_store", stumble)
    fails(WriteError, io.write, pl.DataFrame({"a": [1]}), f"sqlite:{tmp_path}/new.db?table=x")
    assert list(tmp_path.iterdir()) == []


def test_a_locked_database(lite):
    lite("CREATE TABLE x (a)")
    # Another process: in one and the same, two copies of SQLite do not see each other's locks.
    hold = f"import sqlite3; c = sqlite3.connect({str(lite.path)!r}, isolation_level=None); "
    hold += "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        for kind, action in ((ReadError, io.read), (WriteError, io.check_writable)):
            assert "has locked it" in fails(kind, action, f"sqlite:{lite.path}?table=x").message
        other.communicate("\n")
    assert io.read(f"sqlite:{lite.path}?table=x").height == 0


def test_text_that_is_not_utf8(lite):
    lite("CREATE TABLE x (a)", f"INSERT INTO x VALUES (CAST(x'{SECRET.encode().hex()}ff' AS TEXT))")
    assert "text that is not in UTF-8" in fails(ReadError, io.read, f"sqlite:{lite.path}?table=x").message


def test_reading_changes_no_file(lite):
    lite("CREATE TABLE x (a)", "INSERT INTO x VALUES (1)")
    before = lite.path.read_bytes(), lite.path.stat().st_mtime_ns
    io.read(f"sqlite:{lite.path}?table=x")
    assert (lite.path.read_bytes(), lite.path.stat().st_mtime_ns) == before
    assert [path.name for path in lite.path.parent.iterdir()] == ["people.db"]


# PostgreSQL -----------------------------------------------------------------------------------------------


def test_types_of_postgresql(server, sql):
    sql(
        "CREATE TYPE grade AS ENUM ('low', 'high')",
        "CREATE DOMAIN positive AS int4 CHECK (value > 0)",
        """CREATE TABLE x AS SELECT 1::int2 AS small, 2::int4 AS middle, 3::int8 AS large, 4::positive AS domain,
             0.5::float4 AS single, 'a'::varchar(5) AS vary, 'b'::char(4) AS padded, 'low'::grade AS grade,
             '01:02:03.5'::time AS clock, '2026-01-02 03:04:05+02'::timestamptz AS zoned,
             '6c1f3c5e-0000-4000-8000-000000000000'::uuid AS id, '{"a": [1]}'::jsonb AS doc, array[1, 2] AS list,
             '1 day'::interval AS span, '10.0.0.1'::inet AS ip, '\\x00ff'::bytea AS bytes, true AS flag""",
    )
    [record] = io.read(f"postgresql://admin@{server}/postgres?table=x").iter_rows(named=True)
    numbers = {"small": 1, "middle": 2, "large": 3, "domain": 4, "single": 0.5}
    words = {"vary": "a", "padded": "b", "grade": "low", "id": "6c1f3c5e-0000-4000-8000-000000000000"}
    texts = {"doc": '{"a": [1]}', "list": "{1,2}", "span": "1 day", "ip": "10.0.0.1/32", "bytes": "\\x00ff"}
    times = {"clock": dt.time(1, 2, 3, 500000), "zoned": dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC)}
    assert record == numbers | words | texts | times | {"flag": True}


def test_decimals_of_postgresql(server, sql):
    sql(
        "CREATE TABLE x (price numeric(9, 2), whole numeric(5), account numeric(20), odd numeric, none numeric)",
        "INSERT INTO x VALUES (1.50, 7, 12345678901234567890, 'NaN', NULL), (NULL, -8, 1, 0.001, NULL)",
    )
    read = io.read(f"postgresql://admin@{server}/postgres?table=x")
    assert read["price"].to_list() == [1.5, None]
    assert read["whole"].to_list() == [7, -8]
    assert read["account"].to_list() == ["12345678901234567890", "1"]  # a float would change its digits
    assert read["odd"].fill_nan(None).to_list() == [None, 0.001]
    assert read["none"].null_count() == 2


def test_dates_without_end(server, sql):
    sql(
        "CREATE TABLE x AS SELECT d::date, d::timestamp AS at FROM (VALUES ('infinity'), ('2026-01-02')) v (d)"
    )
    read = io.read(f"postgresql://admin@{server}/postgres?table=x")
    assert read.rows() == [("infinity", "infinity"), ("2026-01-02", "2026-01-02 00:00:00")]


def test_records_come_in_the_order_of_the_key(server, sql):
    sql(
        "CREATE TABLE x (b text, a int, PRIMARY KEY (a, b))",
        "INSERT INTO x VALUES ('z', 2), ('y', 1), ('x', 2)",
    )
    sql("UPDATE x SET a = 1 WHERE b = 'y'")  # which moves the record to the end
    read = io.read(f"postgresql://admin@{server}/postgres?table=x")
    assert read.rows() == [("x", 2), ("y", 1), ("z", 2)]
    assert io.read(f"postgresql://admin@{server}/postgres?table=x", rows=1).rows() == [("x", 2)]


def test_schemas_of_postgresql(server, sql):
    sql("CREATE SCHEMA other", "CREATE TABLE other.x (a int)", "INSERT INTO other.x VALUES (1)")
    place = f"postgres://admin@{server}/postgres"
    assert io.read(f"{place}?table=other.x").rows() == [(1,)]
    assert fails(ReadError, io.read, f"{place}?table=x").hint == "did you mean `x`?"
    assert fails(ReadError, io.read, f"{place}?table=other.y").hint == "did you mean `other.x`?"
    io.write(pl.DataFrame({"a": [2]}), f"{place}?table=x", originals=[f"{place}?table=other.x"])
    assert io.read(f"{place}?table=public.x").rows() == [(2,)]
    io.write(pl.DataFrame({"a": [3]}), f"{place}?table=other.z")
    assert sql("SELECT a FROM other.z") == [(3,)]
    assert (
        "no schema"
        in fails(WriteError, io.write, pl.DataFrame({"a": [3]}), f"{place}?table=nowhere.z").message
    )


def test_originals_of_postgresql_by_other_names(server, sql):
    sql("CREATE TABLE x (a int)")
    place = f"postgresql://admin@{server}/postgres"
    port = server.partition(":")[2]
    for original in (
        f"{place}?table=public.x",
        f"postgres://admin@localhost:{port}/postgres?table=x",
        f"postgresql://guest@/postgres?host=127.0.0.1&port={port}&table=x",
    ):
        told = {"originals": [original], "overwrite": True}
        error = fails(WriteError, io.write, pl.DataFrame({"a": [1]}), f"{place}?table=x", **told)
        assert "is an original" in error.message
    silent = ["postgresql://u@127.0.0.1:1/db?table=x"]  # it cannot be told whether it is the same
    fails(
        WriteError, io.write, pl.DataFrame({"a": [1]}), f"{place}?table=x", originals=silent, overwrite=True
    )


def test_parts_of_larger_tables_are_not_replaced(server, sql):
    sql(
        "CREATE TABLE whole (a int) PARTITION BY LIST (a)",
        "CREATE TABLE part PARTITION OF whole FOR VALUES IN (1)",
    )
    sql("INSERT INTO whole VALUES (1)", "CREATE MATERIALIZED VIEW m AS SELECT * FROM whole")
    place = f"postgresql://admin@{server}/postgres"
    for table in ("whole", "part", "m"):
        assert io.read(f"{place}?table={table}").rows() == [(1,)]
        fails(WriteError, io.write, pl.DataFrame({"a": [2]}), f"{place}?table={table}", overwrite=True)
    assert io.read(f"{place}?table=whole").rows() == [(1,)]


def test_what_only_postgresql_cannot_hold(server, sql):
    place = f"postgresql://admin@{server}/postgres?table=x"
    error = fails(WriteError, io.write, pl.DataFrame({"a": [SECRET + "\0"]}), place)
    assert error.message.endswith("it has texts with a zero byte")
    error = fails(WriteError, io.write, pl.DataFrame({"ä" * 32: [1]}), place)
    assert error.message == "a name is longer than 63 bytes, the most that PostgreSQL takes"
    error = fails(WriteError, io.write, pl.DataFrame({"ctid": [1]}), place)  # a name the system has taken
    assert "error code 42701" in error.message


def test_the_password_comes_from_the_environment(server, sql, monkeypatch, tmp_path):
    sql("GRANT ALL ON SCHEMA public TO locked")
    place = f"postgresql://locked@{server}/postgres?table=x"
    frame = pl.DataFrame({"a": [1]})
    for wrong in ("", "wrong" + PASSWORD):
        monkeypatch.setenv("PGPASSWORD", wrong)
        for error in (fails(ReadError, io.read, place), fails(WriteError, io.write, frame, place)):
            assert error.message.endswith(": the password is wrong or missing")
            assert "PGPASSWORD" in error.hint
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    io.write(frame, place)
    assert_frame_equal(io.read(place), frame)
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text(f"*:*:*:locked:{PASSWORD}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert_frame_equal(io.read(place), frame)


def test_permissions(server, sql):
    sql("CREATE TABLE x (a text)", f"INSERT INTO x VALUES ('{SECRET}')")
    place, frame = f"postgresql://guest@{server}/postgres?table=x", pl.DataFrame({"a": [1]})
    assert fails(ReadError, io.read, place).message.startswith("there is no table `x`")  # nor that it exists
    sql("GRANT USAGE ON SCHEMA public TO guest")
    assert fails(ReadError, io.read, place).message.endswith(": no permission")
    assert fails(WriteError, io.write, frame, place, overwrite=True).message.endswith(": no permission")
    assert fails(WriteError, io.write, frame, place.replace("=x", "=y")).message.endswith(": no permission")
    sql("GRANT SELECT ON x TO guest")
    assert io.read(place).rows() == [(SECRET,)]


def test_a_table_that_others_hold(server, sql, monkeypatch):
    sql("CREATE TABLE x (a int)", "BEGIN", "LOCK TABLE x")
    monkeypatch.setattr(databases, "TIMEOUT", "1")
    place = f"postgresql://admin@{server}/postgres?table=x"
    assert "has locked it" in fails(ReadError, io.read, place).message
    assert "has locked it" in fails(WriteError, io.check_writable, place, overwrite=True).message
    sql("ROLLBACK")
    assert io.read(place).height == 0


@pytest.mark.parametrize(
    ("place", "got"),
    [
        ("postgresql://u@127.0.0.1:1/db?table=x", "the server does not answer"),
        ("postgresql://u@no.such.host.invalid/db?table=x", "the server does not answer"),
        ("postgresql:///db?host=/nowhere&table=x", "the server does not answer"),
        ("postgresql://u@127.0.0.1:1/db?table=x&bogus=1", "unknown settings"),
    ],
)
def test_servers_that_are_not_there(place, got):
    for kind, action in ((ReadError, io.read), (WriteError, io.check_writable)):
        assert fails(kind, action, place).message.endswith(f": {got}")


def test_users_and_databases_that_are_not_there(server):
    for user, database, got in (
        ("nobody", "postgres", "does not admit this user"),
        ("admin", "no", "no database of that name"),
    ):
        assert got in fails(ReadError, io.read, f"postgresql://{user}@{server}/{database}?table=x").message


def test_nothing_of_a_fault_is_shown(server, sql):
    # A view that stumbles over a value, which PostgreSQL quotes in its message.
    sql(
        "CREATE TABLE x (t text)",
        f"INSERT INTO x VALUES ('{SECRET}')",
        "CREATE VIEW v AS SELECT t::int AS n FROM x",
    )
    error = fails(ReadError, io.read, f"postgresql://admin@{server}/postgres?table=v")
    assert "error code 22P02" in error.message
    assert isinstance(error, DataError)
