"""Discernibility and average class size, by hand and against counting all pairs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairs import beside, score, table
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind, Role
from sfumato.utility.classes import AverageClassSize, Discernibility


def keys(*columns):
    return table({f"k{i}": column for i, column in enumerate(columns)}, Kind.NOMINAL)


SIX = keys(list("abcdef"))


def test_by_hand():
    """Classes of 1, 2 and 3: 1 + 4 + 9 of 36; three classes of six records."""
    y = keys(list("uvvwww"))
    found = score(Discernibility(), SIX, y)
    assert found.details["discernibility"] == 14
    assert found.value == pytest.approx(14 / 36)
    assert score(AverageClassSize(), SIX, y).value == 2.0


def test_classes_below_k_are_suppressed():
    """Bayardo and Agrawal: the record alone counts as alike to all six: 4 + 9 + 6."""
    y = keys(list("uvvwww"))
    found = score(Discernibility(k=2), SIX, y)
    assert found.details["discernibility"] == 19
    assert found.details["records_suppressed"] == 1
    assert score(AverageClassSize(k=2), SIX, y).value == 6 / (2 * 2)
    assert score(AverageClassSize(k=4), SIX, y).status is Status.NOT_ESTIMABLE


def test_records_left_out_are_suppressed():
    """Two of six left out: 1 + 9 + 2 · 6; classes 2 for 6 records."""
    y = keys(list("uwww"))
    found = score(Discernibility(), SIX, y, rows=[0, 3, 4, 5])
    assert found.details["discernibility"] == 1 + 9 + 12
    assert found.value == pytest.approx(22 / 36)
    assert score(AverageClassSize(), SIX, y, rows=[0, 3, 4, 5]).value == 3.0


def test_synthetic_records_have_their_own_number():
    y = keys(list("uw"))
    assert score(Discernibility(), SIX, y, rows=None).value == pytest.approx(2 / 4)
    assert score(AverageClassSize(), SIX, y, rows=None).value == 1.0


def test_noise_tells_nobody_apart():
    """Two alike who were moved apart are not better known: the original's own value stands."""
    x, y = keys(list("aab")), keys(list("xyz"))
    found = score(Discernibility(), x, y)
    assert found.value == pytest.approx(5 / 9)
    assert found.details["discernibility"] == 3
    assert score(AverageClassSize(), x, y).value == 1.5


def test_missing_keys_are_alike_whatever_stands_for_them():
    x = table({"k": [1.0, 2.0, 3.0, 4.0]}, k={"missing": (-9,)})
    y = table({"k": [None, -9.0, float("nan"), 4.0]}, k={"missing": (-9,)})
    assert score(Discernibility(), x, y).details["discernibility"] == 3 * 4 + 1  # suppressed, so alike to all


def test_ranges_are_values():
    x = table({"k": [1, 2, 3]})
    y = table({"k": intervals([1, 1, 3], [2, 2, 3])})
    assert score(Discernibility(), x, y).details["discernibility"] == 5


def test_only_the_keys_count():
    x = table({"k": list("ab"), "other": list("cd")}, Kind.NOMINAL)
    y = table({"k": list("ab"), "other": list("cc")}, Kind.NOMINAL)
    evidence = Evidence(x, y, scenario=Scenario(columns=("other",)))
    assert Discernibility().score(evidence, Run(seed=1)).value == 1.0
    assert Discernibility().score(beside(x, y), Run(seed=1)).value == 0.5


def test_a_set_among_the_keys_is_refused():
    x = table(
        {"k": list("ab"), "s": pl.Series([["u"], ["v"]])}, {"k": Kind.NOMINAL, "s": Kind.SET}, role=Role.KEY
    )
    found = score(Discernibility(), x, x)
    assert found.status is Status.REFUSED
    assert "`s` (set)" in found.reason


def test_sums_beyond_64_bits_are_exact():
    from sfumato.utility.classes import ClassSizes, _squares

    sizes = np.full(3, 3_000_000_000)
    assert _squares(ClassSizes(sizes, int(sizes.sum())), 1) == 27_000_000_000_000_000_000


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12))
def test_pairs_that_are_alike(rows):
    x, y = keys(range(len(rows))), keys(*zip(*rows, strict=True))
    x = table({name: np.arange(len(rows)) for name in y.names}, Kind.NOMINAL)
    alike = sum(one == other for one in rows for other in rows)
    assert score(Discernibility(), x, y).details["discernibility"] == alike
    assert score(Discernibility(), x, y).value == pytest.approx(alike / len(rows) ** 2)
    assert score(AverageClassSize(), x, y).value == pytest.approx(len(rows) / len(set(rows)))


def test_suppressed_and_dropped_records_count_alike():
    x = table({"k": list("aabbc")}, Kind.NOMINAL)
    suppressed = to_wildcard(x, "k", np.array([False, False, False, False, True]))
    dropped = x.take(np.arange(4))
    for y, rows, classes in ((suppressed, np.arange(5), 3), (dropped, np.arange(4), 2)):
        evidence = Evidence(x, y, source_rows=rows)
        assert Discernibility().score(evidence, Run(seed=1)).value == pytest.approx((4 + 4 + 5) / 25)
        # Those that are shown are one class, as in ARX.
        assert AverageClassSize().score(evidence, Run(seed=1)).value == pytest.approx(5 / classes)
