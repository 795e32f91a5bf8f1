"""Values as far apart as the lowest label that covers both is high: in points, and in microaggregation."""

import numpy as np
import polars as pl
import pytest

from pairs import table
from sfumato.core.run import Run
from sfumato.data import points
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.points import places_in, points_of
from sfumato.data.schema import Kind
from sfumato.errors import PlanError
from sfumato.methods.microaggregation import Mdav

JOBS = Hierarchy.from_levels(
    pl.DataFrame(
        {
            "job": ["cook", "baker", "nurse", "doctor", "smith"],
            "field": ["food", "food", "health", "health", "metal"],
            "sector": ["service", "service", "service", "service", "industry"],
        }
    ),
    name="jobs",
)
HEIGHTS = {  # of the lowest common label, by hand
    ("cook", "baker"): 1, ("cook", "nurse"): 2, ("cook", "doctor"): 2, ("cook", "smith"): 3,
    ("baker", "nurse"): 2, ("nurse", "doctor"): 1, ("doctor", "smith"): 3,
}  # fmt: skip


def jobs(values, **more):
    kinds = {"job": Kind.NOMINAL} | dict.fromkeys(more, Kind.CONTINUOUS)
    return table({"job": values, **more}, kinds, job={"hierarchy": "jobs"})


@pytest.mark.parametrize("scale", ["deviation", "range"])
def test_squared_distances_are_heights(scale):
    values = ["cook", "baker", "nurse", "doctor", "smith", "cook", None]
    found = points_of(jobs(values), scale=scale, nominal="hierarchy", hierarchies={"job": JOBS})
    squares = ((found[:, None] - found[None]) ** 2).sum(axis=2)
    unit = squares[0, 4] / 3  # cook and smith
    for (one, other), height in HEIGHTS.items():
        assert squares[values.index(one), values.index(other)] == pytest.approx(height * unit)
    assert squares[0, 5] == 0
    np.testing.assert_allclose(found[:6].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found[6], 0, atol=1e-12)
    if scale == "range":
        assert unit == pytest.approx(1 / 3)
    else:
        assert (found[:6] ** 2).sum() / 6 == pytest.approx(1)


def test_levels_of_too_many_labels_do_not_count(monkeypatch):
    monkeypatch.setattr(points, "MAX_LABELS", 3)
    labels = np.array([[0, 0], [1, 0], [2, 1], [3, 1]])
    found = places_in(labels, np.full(4, 0.25), scale="range")
    np.testing.assert_allclose(found[0], found[1])
    assert ((found[0] - found[2]) ** 2).sum() == pytest.approx(1)
    monkeypatch.setattr(points, "MAX_LABELS", 1)
    assert not places_in(labels, np.full(4, 0.25), scale="range").any()


@pytest.mark.parametrize("values", [["cook"] * 3, [None] * 3])
def test_a_constant_tells_nobody_apart(values):
    found = points_of(jobs(values), scale="deviation", nominal="hierarchy", hierarchies={"job": JOBS})
    assert not found.any()


def test_semantic_microaggregation_groups_what_is_alike():
    values = ["cook", "nurse", "baker", "doctor", "cook", "nurse"]
    release = Mdav(k=3, nominal="hierarchy").apply(jobs(values), Run(seed=1, resources={"jobs": JOBS}))
    assert release.table.frame["job"].to_list() == ["cook", "nurse", "cook", "nurse", "cook", "nurse"]


@pytest.mark.parametrize(
    ("resources", "values", "got"),
    [
        ({}, ["cook", "cook"], "`job` has no hierarchy"),
        ({"jobs": JOBS}, ["cook", "piper"], "not among its 5"),
    ],
)
def test_values_without_a_hierarchy_are_refused(resources, values, got):
    with pytest.raises(
        PlanError, match="nominal=hierarchy must be given a hierarchy of each nominal column"
    ) as raised:
        Mdav(k=2, nominal="hierarchy").apply(jobs(values), Run(seed=1, resources=resources))
    assert got in str(raised.value)
    assert "piper" not in str(raised.value)


def test_columns_that_name_no_hierarchy_are_refused_before_any_work():
    """So no search tries it there."""
    bare = table({"job": ["cook", "nurse"]}, Kind.NOMINAL)
    assert "`job` without one" in Mdav(k=2, nominal="hierarchy").refuses(bare)
    assert "no nominal column" in Mdav(k=2, nominal="hierarchy").refuses(table({"x": [1.0, 2.0]}))
    assert Mdav(k=2, nominal="hierarchy").refuses(jobs(["cook", "nurse"])) is None
