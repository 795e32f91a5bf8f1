"""Masking: what stays, what is never shown, and that measures see what is left."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError
from sfumato.methods.masking import Masking
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def masked(values, keep, dtype=None, **facts):
    column = Column("code", Kind.NOMINAL, Role.KEY, **facts)
    table = Table(pl.DataFrame({"code": pl.Series(values, dtype=dtype)}), Schema((column,)))
    return Recipe((Step(Masking(keep=keep), ("code",)),)).apply(table, Run(seed=1))


def texts(release):
    """As a file has them."""
    return to_text(release.table.frame["code"], release.table.nodes.get("code")).to_list()


def test_codes_of_one_length_have_a_star_for_each_character():
    assert texts(masked(["93721", None, "93722", "94110"], 2)) == ["93***", None, "93***", "94***"]
    assert texts(masked([93721, 93722, 94110], 3)) == ["937**", "937**", "941**"]


def test_others_have_one_star_and_what_would_be_shown_entirely_is_not():
    assert texts(masked(["Smith", "Smithson", "Li", "Lee"], 3)) == ["Smi*", "Smi*", "*", "Lee*"]
    assert texts(masked(["ab", "cd"], 2)) == ["*", "*"]
    assert texts(masked([None, None], 2, pl.String)) == [None, None]


def test_codes_for_missing_values_stay_missing():
    assert texts(masked(["93721", "-9", "93722"], 4, missing=("-9",))) == ["9372*", None, "9372*"]


def test_measures_read_what_a_beginning_stands_for():
    release = masked(["93721", "93722", "94110", "94111"], 2)
    assert sfumato.assess(release.table, measures=["k-anonymity"])["k-anonymity"].value == 2
    assert "masking is no protection by itself" in release.provenance[0].notes[0]


def test_stars_and_generalised_values_are_refused():
    with pytest.raises(DataError, match="values without stars, got: 1 record"):
        masked(["a*c", "abc"], 1)
    release = masked(["93721", "93722"], 2)
    with pytest.raises(RefusedError, match="generalised"):
        Recipe((Step(Masking(), ("code",)),)).apply(release.table, Run(seed=1))


@given(
    values=st.lists(st.none() | st.text(st.sampled_from("ab1Å.\\{|}[;] "), max_size=6), max_size=12),
    keep=st.integers(1, 6),
)
def test_no_more_than_the_first_characters_is_written(values, keep):
    release = masked(values, keep, pl.String)
    nodes = release.table.nodes.get("code")
    for value, text, label in zip(values, texts(release), release.table.frame["code"], strict=True):
        if value is None:
            assert text is None
            continue
        assert text == "*" or (text.rstrip("*") == value[:keep] and text.endswith("*"))
        assert value in nodes.members_of(nodes.labels.index_of(label)).to_list()
