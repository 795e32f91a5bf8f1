"""Suppressed cells in linkage, against all pairs by plain numpy: a value of its own, and any value; the worse counts."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import APPROACH, Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage
from toys import table_of

KEYS = {"x": (Kind.CONTINUOUS, Role.KEY), "c": (Kind.NOMINAL, Role.KEY), "d": (Kind.NOMINAL, Role.KEY)}
TYPES = {"x": pl.Float64, "c": pl.String, "d": pl.String}
RUN = Run(seed=1)


@st.composite
def releases(draw, *, most=8, exact=False, complete=False):
    """A table with missing values and ties, and its release: noise, other categories, cells suppressed."""
    n = draw(st.integers(2, most))
    hole = st.nothing() if complete else st.none()
    original = {
        "x": draw(st.lists(st.integers(0, 4) | hole, min_size=n, max_size=n)),
        "c": draw(st.lists(st.sampled_from("ab") | hole, min_size=n, max_size=n)),
        "d": draw(st.lists(st.sampled_from("pqr") | hole, min_size=n, max_size=n)),
    }
    released = {name: list(values) for name, values in original.items()}
    if not exact:
        moves = draw(st.lists(st.sampled_from([0, 0, 1, -2]), min_size=n, max_size=n))
        released["x"] = [
            None if x is None else x + move for x, move in zip(original["x"], moves, strict=True)
        ]
        released["c"] = [draw(st.sampled_from([c, c, "a"])) for c in original["c"]]
    gone = {name: draw(st.lists(st.booleans(), min_size=n, max_size=n)) for name in released}
    suppressed = {
        name: [None if g else v for g, v in zip(gone[name], values, strict=True)]
        for name, values in released.items()
    }
    return original, suppressed


def evidence_of(original, released):
    tables = [table_of(pl.DataFrame(each, schema=TYPES), **KEYS) for each in (original, released)]
    return Evidence(tables[0], Release.of(tables[1], source_rows=np.arange(len(tables[1]))))


def gaps(original, released, n_missing, *, far):
    """Differences of all pairs, column by column; ``n_missing`` is what a missing released cell counts for."""
    known = [None if x is None else float(x) for x in original["x"]]
    there = np.array([x for x in known if x is not None])
    shown = np.array([x for x in released["x"] if x is not None], dtype=float)
    both = np.concatenate((there, shown))
    unit = (there.std() if len(there) else 0) or (both.std() if len(both) else 0) or 1.0
    found = np.zeros((3, len(known), len(known)))
    for i, j in itertools.product(range(len(known)), repeat=2):
        for column, name in enumerate("xcd"):
            a, b = original[name][i], released[name][j]
            if b is None and n_missing == "own":
                gap = 0.0 if a is None else 1.0
                if name == "x" and a is not None:  # and it lies at the mean
                    gap = np.hypot(1.0, (a - there.mean()) / unit)
            elif b is None:
                gap = 0.0
                if far:
                    gap = 1.0 if name != "x" or a is None else max(a - both.min(), both.max() - a) / unit
            elif a is None:
                gap = 1.0
                if name == "x" and n_missing == "own":
                    gap = np.hypot(1.0, (b - there.mean()) / unit if len(there) else 0.0)
            else:
                gap = float(a != b) if name != "x" else abs(a - b) / unit
            found[column, i, j] = gap
    return np.sqrt((found**2).sum(axis=0))


def chances_of_its_own(original, released):
    """DBRL by the book: nearest, ties shared."""
    distances = gaps(original, released, "own", far=False)
    near = np.isclose(distances, distances.min(axis=1, keepdims=True), atol=1e-9)
    return np.where(np.diagonal(near), 1 / near.sum(axis=1), 0.0)


def chances_of_any(original, released):
    """A missing cell is at no distance; who shows less than the own is nearer only whatever it stands for."""
    near, far = (gaps(original, released, "any", far=far) for far in (False, True))
    losses = np.sum([[v is None for v in released[name]] for name in "xcd"], axis=0)
    found = np.zeros(len(losses))
    for i, own in enumerate(np.diagonal(near)):
        coarser = losses > losses[i]
        distances = np.where(coarser, far[i], near[i])
        same = np.isclose(distances, own, atol=1e-9)
        nearer = (distances < own) & ~same | same & (losses < losses[i])
        tied = same & (losses == losses[i])
        found[i] = 0.0 if nearer.any() else 1 / tied.sum()
    return found


def suppresses(original, released):
    return any(
        b is None and a is not None
        for name in "xcd"
        for a, b in zip(original[name], released[name], strict=True)
    )


@examples(150)
@given(releases())
def test_the_worse_of_both_readings_counts(tables):
    score = DistanceLinkage().score(evidence_of(*tables), RUN)
    own, any_value = chances_of_its_own(*tables).mean(), chances_of_any(*tables).mean()
    if not suppresses(*tables):
        assert score.value == pytest.approx(own)
        assert APPROACH not in score.details
        return
    assert score.status is Status.OK
    assert score.value == pytest.approx(max(own, any_value))


@examples(60)
@given(releases(most=5, exact=True, complete=True))
def test_global_linkage_is_judged_by_all_linkages_that_may_be_true(tables):
    """Of a release that only suppresses, every linkage in which all shown cells agree is possible."""
    original, released = tables
    score = GlobalLinkage().score(evidence_of(original, released), RUN)
    n = len(original["x"])
    if not suppresses(*tables) or APPROACH not in score.details:
        return
    fits = gaps(original, released, "any", far=False) == 0
    counts = [
        sum(i == j for i, j in enumerate(order)) / n
        for order in itertools.permutations(range(n))
        if all(fits[i, j] for i, j in enumerate(order))
    ]
    assert score.interval is not None
    assert score.interval[0] <= min(counts)
    assert score.interval[1] >= max(counts)
    assert score.proof.verify(evidence_of(original, released), RUN) is None


def test_one_suppressed_cell_hides_nobody():
    """The own agrees in all it shows; as a value of its own the cell is as far as another's other category."""
    original = {"x": [1, 1, 1, 1], "c": list("aabb"), "d": list("pqpq")}
    released = {**original, "c": [None, "a", "b", "b"]}
    score = DistanceLinkage().score(evidence_of(original, released), RUN)
    assert chances_of_its_own(original, released)[0] < 1
    assert score.by_record.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert "suppressed" in score.details[APPROACH]


def test_what_was_missing_before_is_no_suppressed_cell():
    original = {"x": [1, 2, 3, 4], "c": ["a", None, "a", None], "d": list("ppqq")}
    score = DistanceLinkage().score(evidence_of(original, original), RUN)
    assert score.value == 1
    assert APPROACH not in score.details


def test_a_measure_that_cannot_open_cells_is_an_estimate():
    original = {"x": [1, 2, 3, 4], "c": list("aabb"), "d": list("pqpq")}
    released = {**original, "c": [None, "a", "b", "b"]}
    score = DistanceLinkage(metric="chebyshev").score(evidence_of(original, released), RUN)
    assert score.status is Status.APPROXIMATE
    assert "suppressed" in score.reason
