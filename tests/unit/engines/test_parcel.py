"""What travels: data in a file, secrets apart from it."""

import gc
import pickle
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.column_store import ColumnStore
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.engines.parcel import Parcel, Secret


def test_secrets_are_in_no_file(tmp_path):
    key = Run(seed=7).random_key("noise")
    parcel = Parcel.pack((key, np.arange(5), [key]), tmp_path)
    content = (tmp_path / parcel.path).read_bytes()
    assert bytes(key.key) not in content
    assert oct((tmp_path / parcel.path).stat().st_mode)[-3:] == "600"
    again, numbers, (other,) = parcel.open()
    assert again.rng().random() == key.rng().random()
    assert isinstance(other.key, Secret)
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert repr(parcel.secrets[0]) not in repr(parcel)
    parcel.remove()
    parcel.remove()
    assert not list(tmp_path.iterdir())


def test_a_secret_is_not_shown_and_travels_in_messages():
    secret = Secret(b"abc")
    assert "abc" not in repr(secret)
    assert pickle.loads(pickle.dumps(secret)) == b"abc"


def test_large_columns_of_a_table_lie_in_files_of_their_own_that_are_mapped(tmp_path):
    kinds = {"age": Kind.CONTINUOUS, "name": Kind.NOMINAL, "job": Kind.NOMINAL, "range": Kind.CONTINUOUS}
    schema = Schema(tuple(Column(name, kind) for name, kind in kinds.items()))
    frame = pl.DataFrame({
        "age": [1.5, None, 3.0] * 4,
        "name": ["é", None, "a long name that is kept beside"] * 4,
        "job": pl.Series(["b", "a", None] * 4, dtype=pl.Enum(["b", "a"])),
        "range": intervals([1, 2, None] * 4, [3, 2, None] * 4),
    })  # fmt: skip
    with ColumnStore(tmp_path, min_records=3).active():
        table = Table(frame, schema)
        first = Parcel.pack(("a", table), tmp_path, tables := WeakKeyDictionary())
        second = Parcel.pack(("b", table), tmp_path, tables)
        n_files = len(list(tmp_path.iterdir()))
        assert n_files == 2 + 1 + len(kinds)  # parcels, the table, its columns
        assert all(oct(each.stat().st_mode)[-3:] == "600" for each in tmp_path.iterdir())
        (_, one), (_, two) = first.open(), second.open()
        assert one.frame.equals(frame)
        assert one.frame.schema == frame.schema
        assert len(list(tmp_path.iterdir())) == n_files  # nothing was copied
        assert two.frame["age"].to_list() == frame["age"].to_list()
        del table, one, two
        gc.collect()
        assert {each.suffix for each in tmp_path.iterdir()} == {".parcel"}
