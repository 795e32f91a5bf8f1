"""Masking: what stays, what is never shown, and that measures see what is left."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import KnownValues, parse_nodes, to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError
from sfumato.methods.masking import Masking
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.read_release import read_release


def masked(values, keep, dtype=None, end="first", **facts):
    column = Column("code", Kind.NOMINAL, Role.KEY, **facts)
    table = Table(pl.DataFrame({"code": pl.Series(values, dtype=dtype)}), Schema((column,)))
    return Recipe((Step(Masking(keep=keep, end=end), ("code",)),)).apply(table, Run(seed=1))


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


def test_the_last_characters_may_stay():
    assert texts(masked(["93721", None, "93722", "94121"], 2, end="last")) == [
        "***21", None, "***22", "***21"
    ]  # fmt: skip
    assert texts(masked(["Smith", "Goldsmith", "Li", "ith"], 3, end="last")) == ["*ith", "*ith", "*", "*ith"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "codes", [["93721", "94121", "93722", "00021"], ["AB-117", "X-117", "AB-118", "X17"]]
)
def test_ends_are_read_back_as_all_values_that_end_so(tmp_path, codes, ending):
    """A label covers the same values of the original in memory and in its file, and measures agree."""
    column = Column("code", Kind.NOMINAL, Role.KEY)
    table = Table(pl.DataFrame({"code": [*codes, None, codes[0]]}), Schema((column,)))
    released = Masking(keep=2, end="last").apply(table.select(["code"]), Run(seed=1))
    sfumato.io.write(released.table, tmp_path / f"out.{ending}")
    again = read_release(table, tmp_path / f"out.{ending}", aligned=True)
    for each in (released, again):
        nodes, labels = each.table.nodes["code"], each.table.frame["code"]
        for label, value in zip(labels, table.frame["code"], strict=True):
            if value is not None:
                covered = set(nodes.members_of(nodes.labels.index_of(label))) & set(codes)
                assert covered == {code for code in codes if code.endswith(value[-2:])}
    for name in ("k-anonymity", "uniqueness", "exact-match", "dbrl", "non-uniform-entropy"):
        measure = registry.measure(name)()
        before, after = (measure.score(Evidence(table, each), Run(seed=1)) for each in (released, again))
        assert (before.status, before.value) == (after.status, pytest.approx(after.value)), name


def test_without_the_original_an_end_stands_for_what_nobody_can_list(tmp_path):
    sfumato.io.write(masked(["117-AB", "17-AB", "118-X"], 2, end="last").table, tmp_path / "out.csv")
    column, nodes = parse_nodes(pl.read_csv(tmp_path / "out.csv")["code"])
    assert nodes.members_of(nodes.labels.index_of(column[0])).to_list() == ["...AB"]
    digits = masked(["93721", "94121", "93722"], 2, end="last")
    sfumato.io.write(digits.table, tmp_path / "digits.csv")
    column, nodes = parse_nodes(pl.read_csv(tmp_path / "digits.csv")["code"])
    members = nodes.members_of(nodes.labels.index_of("***21")).to_list()
    assert members == [f"{begin:03d}21" for begin in range(1000)]


def test_codes_for_missing_values_stay_missing():
    assert texts(masked(["93721", "-9", "93722"], 4, missing=("-9",))) == ["9372*", None, "9372*"]


def test_measures_read_what_a_beginning_stands_for():
    release = masked(["93721", "93722", "94110", "94111"], 2)
    assert sfumato.assess(release.table, measures=["k-anonymity"])["k-anonymity"].value == 2
    assert "masking is no protection by itself" in release.provenance[0].notes[0]


def test_stars_and_generalised_values_are_refused():
    for wrong in ("a*c", "\\ac"):
        with pytest.raises(DataError, match="values without stars, or a backslash in front, got: 1 record"):
            masked([wrong, "abc"], 1)
    release = masked(["93721", "93722"], 2)
    with pytest.raises(RefusedError, match="generalised"):
        Recipe((Step(Masking(), ("code",)),)).apply(release.table, Run(seed=1))


@given(
    values=st.lists(
        st.none() | st.from_regex(r"([ab1Å.{|}\[;\] ][ab1Å.\\{|}\[;\] ]{0,5})?", fullmatch=True), max_size=12
    ),
    keep=st.integers(1, 6),
    end=st.sampled_from(["first", "last"]),
)
def test_no_more_than_what_stays_is_written(values, keep, end):
    release = masked(values, keep, pl.String, end=end)
    first, written = end == "first", pl.Series(texts(release), dtype=pl.String)
    again, known = parse_nodes(written, known=KnownValues({each for each in values if each is not None}, ()))
    nodes = release.table.nodes.get("code")
    for value, text, label in zip(values, texts(release), release.table.frame["code"], strict=True):
        if value is None:
            assert text is None
            continue
        kept = text.rstrip("*") if first else text.lstrip("*")
        assert text == "*" or (text != kept == (value[:keep] if first else value[-keep:]))
        assert value in nodes.members_of(nodes.labels.index_of(label)).to_list()
    for value, label in zip(values, again, strict=True):
        assert value is None or value in known.members_of(known.labels.index_of(label)).to_list()
