"""Local suppression that relies on others, against the cells that sdcMicro needs on its test data."""

import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.local_suppression import LocalSuppression


@pytest.mark.parametrize(("k", "sdcmicro"), [(2, 6), (3, 18), (5, 49)])
def test_combinations_of_three_keys_take_fewer_cells_than_sdcmicro(reference_data, k, sdcmicro):
    keys = ["urbrur", "roof", "walls", "water", "sex"]
    frame = pl.read_csv(reference_data("testdata.csv"), columns=keys)
    table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))
    method = LocalSuppression(k=k, combine=3, missing="any", rely_on_others=True)
    assert method.protect(table, Run(seed=1)).figures["cells_suppressed"] < sdcmicro
