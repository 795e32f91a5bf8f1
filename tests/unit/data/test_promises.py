"""What the schema promises of a column holds after every method that keeps to the original's values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.data.checks import violations
from sfumato.data.constraints import clip
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def column(**facts) -> Column:
    return Column("age", Kind.CONTINUOUS, **facts)


def kept(facts: dict, before: list[float], after: list[float]) -> list[float]:
    return clip(column(**facts), np.array(before, float), np.array(after, float)).tolist()


@pytest.mark.parametrize(
    ("facts", "before", "after", "promised"),
    [
        ({}, [1, 2], [1.5, -2.5], [1.5, -2.5]),
        ({"integer": True}, [1, 2, 3], [1.4, 2.5, -0.2], [1, 2, 0]),
        ({"integer": True}, [1, 2.5], [1.4, 2.6], [1.4, 2.6]),  # the original breaks the promise itself
        ({"lower": 0}, [1, 2], [-3, 5], [0, 5]),
        ({"lower": 0}, [-1, 2], [-3, 5], [-1, 5]),  # its least value is an end of the range
        ({"lower": 0, "upper": 10}, [1, 2], [-3, 50], [0, 10]),
        ({"integer": True, "lower": 0.5, "upper": 3.5}, [1, 2], [-3, 50], [1, 3]),
        ({"integer": True, "missing": (99,)}, [1, 120, 99.5], [99, 99, 98.6], [99, 99, 98.6]),
    ],
)
def test_rounded_and_brought_into_the_range(facts, before, after, promised):
    if facts.get("missing"):  # the last: fractions in the original, so a step is the smallest there is
        result = kept(facts, before, after)
        assert result[0] == np.nextafter(99, 1)
        assert result[1] == np.nextafter(99, 120)
        return
    assert kept(facts, before, after) == promised


def test_no_value_becomes_a_missing_code():
    """97, 98 and 99 mean "not known": what lands there goes back towards what it was."""
    facts = {"integer": True, "missing": (97, 98, 99, "refused")}
    assert kept(facts, [50, 120, 96, 100], [98.2, 97.6, 98, 97]) == [96, 100, 96, 100]
    ranged = {"integer": True, "missing_range": (-99, -1)}
    assert kept(ranged, [5, -200, 0], [-50.3, -50, -1]) == [0, -100, 0]
    assert kept({"missing_range": (-99.0, -1.0)}, [5], [-50])[0] == np.nextafter(-1.0, 5)


finite = st.floats(-1e6, 1e6)


@given(
    pair=hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 12)), elements=finite),
    integer=st.booleans(),
    lower=st.none() | finite,
    upper=st.none() | finite,
    codes=st.lists(st.integers(-5, 5), max_size=3, unique=True),
)
def test_promises_hold_and_values_that_keep_them_stay(pair, integer, lower, upper, codes):
    before, after = np.rint(pair[0]) if integer else pair[0], pair[1]
    assume(lower is None or upper is None or np.ceil(lower) <= np.floor(upper))
    assume(not np.isin(before, codes).any())
    facts = column(integer=integer, lower=lower, upper=upper, missing=tuple(codes))
    result = clip(facts, before, after)
    assert not np.isin(result, codes).any()
    if integer:
        assert np.array_equal(result, np.rint(result))
    if lower is not None:
        assert (result >= min(lower, before.min())).all()
    if upper is not None:
        assert (result <= max(upper, before.max())).all()
    assert np.array_equal(clip(facts, before, before), before)
    assert np.array_equal(clip(facts, before, result), result)


def numeric_methods() -> list[str]:
    """Methods whose protected numbers stay numbers."""
    return [
        name
        for name, cls in registry.methods().items()
        if Kind.CONTINUOUS in cls.kinds
        and not cls.gives.deassociated  # it changes no value
        and not any(declared.holds for declared in cls.parameters())  # they do as another table says
    ]


@pytest.mark.parametrize("name", numeric_methods())
def test_every_method_keeps_whole_numbers_and_ranges(name):
    rng = np.random.default_rng(3)
    count = 60
    children = rng.poisson(1.5, count)
    children[::7] = -9
    frame = pl.DataFrame(
        {
            "children": children,
            "share": np.clip(rng.normal(0.5, 0.3, count), 0, 1),
            "other": rng.normal(size=count),
        }
    )
    schema = Schema(
        (
            Column("children", Kind.CONTINUOUS, integer=True, lower=0, upper=8, missing=(-9, 9)),
            Column("share", Kind.CONTINUOUS, lower=0, upper=1),
            Column("other", Kind.CONTINUOUS),
        )
    )
    table = Table(frame, schema)
    step = Step(registry.method(name)(), ("children", "share"))
    release = Recipe((step,)).apply(table, Run(seed=4))
    assert violations(release.table) == ()
    after = release.table.frame["children"].dtype
    if is_interval(after):
        after = after.fields[0].dtype
    assert after.is_integer()
    if not step.method.gives.other_records:
        gone, before = release.table.missing("children"), table.missing("children")
        assert np.array_equal(gone, before) or step.method.gives.suppressed
        assert release.table.frame["other"].equals(frame["other"])
