"""Differential privacy by sampling and k-anonymity: δ by plain sums, and what is released."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from effort import examples
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.private_recoding import PrivateRecoding, delta_of, smallest_class

pytest.importorskip("opendp")


def shown(m, k, chance):
    """The chances of what is shown of a class of m: nothing, or its count from k on."""
    chances = binom.pmf(np.arange(300), m, chance)
    return np.append(chances[:k].sum(), chances[k:])


def excess(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("part", [0.4, 1.0])
@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_delta_is_what_neighbours_differ_by(epsilon, part, k):
    chance = -math.expm1(-epsilon) * part
    pairs = [(shown(m, k, chance), shown(m - 1, k, chance)) for m in range(1, 280)]
    assert max(excess(*pair, epsilon) for pair in pairs) == pytest.approx(
        delta_of(k, epsilon, chance), rel=1e-5
    )
    assert max(excess(second, first, epsilon) for first, second in pairs) < 1e-12


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_the_theorem_of_li_qardaji_and_su_asks_for_no_less(epsilon):
    chance = -math.expm1(-epsilon)
    border = (math.exp(epsilon) - 1 + chance) / math.exp(epsilon)
    for k in (5, 20, 60):
        n = np.arange(math.ceil(k / border - 1), 3000)
        theirs = binom.sf(np.floor(border * n), n, chance).max()
        assert delta_of(k, epsilon, chance) <= theirs * (1 + 1e-5)


@examples(100)
@given(epsilon=st.floats(0.05, 50), delta=st.floats(1e-9, 0.05), part=st.floats(0.05, 1))
def test_k_is_the_smallest(epsilon, delta, part):
    chance = min(-math.expm1(-epsilon), 0.6) * part
    k = smallest_class(epsilon, delta, chance)
    assert delta_of(k, epsilon, chance) <= delta
    assert k == 1 or delta_of(k - 1, epsilon, chance) > delta
    assert delta_of(k, epsilon, chance) >= chance**k * (1 - 1e-6)  # a class of k, all of whom are drawn


def people(n=3000):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m", None], n, p=[0.5, 0.49, 0.01]).tolist(),
            "town": rng.choice(list("abcd"), n).tolist(),
        }
    )
    columns = (
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY, hierarchy="towns"),
    )
    towns = Hierarchy("towns", pl.DataFrame({"0": list("abcd"), "1": ["x", "x", "y", "y"], "2": ["*"] * 4}))
    return Table(frame, Schema(columns)).aimed_at(["sex", "town"]), {"towns": towns}


def test_only_large_classes_of_the_sample_are_shown():
    table, resources = people()
    method = PrivateRecoding(epsilon=1, levels={"town": 1, "sex": 0})
    release = method.apply(table, Run(seed=1, resources=resources))
    k = release.figures["k"]
    assert Classes.of(release.table, ("sex", "town")).members.min() >= k == 35
    assert 0.45 < len(release.table) / len(table) < 0.55
    rows = release.source_rows
    assert release.table.frame["sex"].equals(table.frame["sex"][rows.tolist()])
    assert not release.table.frame["sex"].null_count()  # about 15 were drawn
    total = release.budget.total()
    assert (total.epsilon, total.delta) == (1, 1e-6)
    assert release.budget.spent[0].neighbours == "add-remove"
    again = method.apply(table, Run(seed=1, resources=resources))
    assert not np.array_equal(again.source_rows, rows)  # no seed repeats it


def test_a_person_of_several_records_is_protected_with_a_part_of_the_budget():
    table, _ = people()
    one, three = (PrivateRecoding(epsilon=1, levels=0, records=c).apply(table, Run(seed=1)) for c in (1, 3))
    assert three.figures["chance"] == pytest.approx(1 - math.exp(-1 / 3), rel=1e-6)
    part = 1e-6 / sum(math.exp(i / 3) for i in range(3))
    assert three.figures["k"] == smallest_class(1 / 3, part, three.figures["chance"])
    assert one.budget.total() == three.budget.total()


def test_few_records_leave_nobody():
    table, _ = people(20)
    assert len(PrivateRecoding(levels=0).apply(table, Run(seed=1)).table) == 0


def test_what_is_refused():
    table, _ = people()
    with pytest.raises(RefusedError, match="hierarchies"):
        PrivateRecoding(levels=1).apply(table, Run(seed=1))
    with pytest.raises(RefusedError, match=r"at most 0\.63"):
        PrivateRecoding(levels=0, share=0.7).apply(table, Run(seed=1))
    built = PrivateRecoding(levels=1, domain="data").apply(table.aimed_at(["sex"]), Run(seed=1))
    assert not built.budget.spent[0].kept
