"""Small tables that several files of unit tests look at."""

import polars as pl
import pytest

from sfumato.data.generalised.nodes import Nodes
from sfumato.data.hierarchy.tree import Hierarchy


@pytest.fixture
def counties():
    return Nodes.of(
        {"Kern": ["Kern"], "north": ["Kings", "Fresno", "Kings"], "south": ["Kern", "Tulare"]},
        leaves=["Kern", "Fresno", "Kings", "Tulare"],
    )


@pytest.fixture
def work():
    return Hierarchy.from_levels(
        pl.DataFrame(
            {
                "value": ["Private", "Self-emp", "Federal", "State", "Never"],
                "kind": ["Business", "Business", "Government", "Government", "None"],
            }
        ),
        name="work",
    )
