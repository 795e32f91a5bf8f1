"""Small work by numpy or Python instead of kernels that are not compiled: the same answer, to the last bit."""

import numpy as np
import pytest

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind
from sfumato.kernels import (
    box_distances,
    combinations,
    distributions,
    linking,
    ranks,
    special_uniques,
    suppression,
)
from sfumato.kernels.assignment import cover, covers, solve, verification
from sfumato.kernels.assignment.costs import NEVER, cost_of, costs_of_all, costs_of_pairs, frame
from sfumato.kernels.groups import farthest
from sfumato.kernels.mondrian import parts
from sfumato.kernels.threads import CompileAllowance
from sfumato.kernels.trees import codes, planting
from sfumato.testing import table_of

METRICS = ("euclidean", "manhattan", "chebyshev", "hamming")


@pytest.fixture
def by_numpy(monkeypatch):
    """Have work done by numpy."""

    def choose():
        monkeypatch.setattr(CompileAllowance, "granted", True)
        monkeypatch.setattr(linking, "_NUMPY_ALLOWANCE", CompileAllowance(10**12))
        monkeypatch.setattr(verification, "_NUMPY_ALLOWANCE", CompileAllowance(10**12))

    return choose


def mixed(n, rng):
    """Two numbers with ties, one without, two columns of codes."""
    return np.column_stack((rng.integers(0, 5, (n, 2)) / 3, rng.normal(size=n), rng.integers(0, 3, (n, 2))))


@pytest.mark.parametrize("cap", [None, 1])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_linking(metric, windowed, cap, by_numpy):
    rng = np.random.default_rng(3)
    points, others = mixed(300, rng), mixed(400, rng)
    groups, other_groups = rng.integers(-1, 250, 300), rng.integers(-1, 250, 400)
    middle = rng.normal(size=(300, 1))
    window = linking.Window(rng.normal(size=(400, 1)), middle - 1, middle + 1) if windowed else None
    told = {"metric": metric, "n_codes": 2, "weights": np.full(5 if metric == "hamming" else 2, 1 / 3)}
    given = (points, others, groups, other_groups)
    kernel = linking.closer_counts(*given, **told, window=window, cap=cap)
    by_numpy()
    small = linking.closer_counts(*given, **told, window=window, cap=cap)
    np.testing.assert_array_equal(small.references, kernel.references)
    np.testing.assert_array_equal(small.own, kernel.own)
    np.testing.assert_array_equal(small.nearer, kernel.nearer)
    counted = kernel.nearer < (np.inf if cap is None else cap)
    np.testing.assert_array_equal(small.tied[counted], kernel.tied[counted])
    np.testing.assert_array_equal(small.chances, kernel.chances)


@pytest.mark.parametrize("n_listed", [0, 50, 10**6])
@pytest.mark.parametrize("metric", METRICS)
def test_the_scan_of_all_pairs(metric, n_listed, by_numpy):
    rng = np.random.default_rng(4)
    rows, columns = mixed(250, rng), mixed(270, rng)
    framed = frame(rows, columns, metric, n_codes=2)
    found = solve(rows, columns, metric, n_codes=2)
    too_high = found.row_prices + rng.integers(0, 2, 250) * (2**20 if metric != "hamming" else 1)
    limits = np.where(rng.random(250) < 0.5, NEVER, found.row_prices.max())
    given = (framed, too_high, found.column_prices, limits)
    slack, violated, listed = verification.scan(*given, n_listed=n_listed)
    by_numpy()
    again, as_many, pairs = verification.scan(*given, n_listed=n_listed)
    assert (as_many, pairs is None) == (violated, listed is None)
    np.testing.assert_array_equal(again, slack)
    if listed is not None:
        np.testing.assert_array_equal(pairs, listed)
    assert (violated > 0) == bool((slack < 0).any())


@pytest.mark.parametrize("metric", METRICS)
def test_costs_are_those_of_the_loops(metric):
    rng = np.random.default_rng(5)
    space = frame(mixed(40, rng), mixed(50, rng), metric, n_codes=2).space
    expected = np.array([[cost_of(space, i, j) for j in range(50)] for i in range(40)])
    np.testing.assert_array_equal(costs_of_all(space), expected)
    rows, columns = rng.integers(0, 40, 99), rng.integers(0, 50, 99)
    np.testing.assert_array_equal(costs_of_pairs(space, rows, columns), expected[rows, columns])


ALLOWING = (
    ranks, parts, box_distances, codes, combinations, covers, distributions, farthest, suppression, planting,
    special_uniques,
)  # fmt: skip


def both_ways(monkeypatch, work):
    """What comes of work by kernels, and by Python."""
    found = []
    for granted in (False, True):
        monkeypatch.setattr(CompileAllowance, "granted", granted)
        for module in ALLOWING:
            monkeypatch.setattr(module, "_ALLOWANCE", CompileAllowance(10**12))
        found.append(work())
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 300])
@pytest.mark.parametrize(
    ("draw", "setting"),
    [("swap_partners", 0), ("swap_partners", 30), ("distant_partners", 7.5), ("bucket_partners", 10)],
)
def test_partners_and_what_is_drawn_next(draw, setting, n, monkeypatch):
    def work():
        rng = np.random.default_rng(6)
        return [*getattr(ranks, draw)(n, setting, rng), rng.random()]

    kernel, python = both_ways(monkeypatch, work)
    assert kernel == python


@pytest.mark.parametrize(("n", "n_ids", "n_codes"), [(0, 1, 1), (1, 1, 1), (300, 20, 7), (300, 290, 10**6)])
def test_combinations_and_their_persons(n, n_ids, n_codes, monkeypatch):
    def work():
        rng = np.random.default_rng(13)
        ids, codes = (rng.integers(0, size, n).astype(np.int32) for size in (n_ids, n_codes))
        refined, n_found = combinations.refine(ids, n_ids, codes, n_codes)
        persons = np.sort(rng.integers(0, 40, n))
        return refined, n_found, combinations.count_persons(refined, n_found, persons)

    kernel, python = both_ways(monkeypatch, work)
    assert kernel[1] == python[1]
    for place in (0, 2):
        np.testing.assert_array_equal(kernel[place], python[place], strict=True)


@pytest.mark.parametrize("scans", [1, 20_000])
def test_covers(scans, monkeypatch):
    def work():
        rng = np.random.default_rng(14)
        rows, columns = np.nonzero(rng.random((40, 50)) < 0.15)
        supplies, rooms = rng.integers(1, 4, 40), rng.integers(1, 4, 50)
        return cover(rows, columns, rng.integers(0, 9, len(rows)), supplies, rooms, 10**6)

    monkeypatch.setattr(covers, "_FEW_SCANS", scans)
    kernel, python = (vars(each) for each in both_ways(monkeypatch, work))
    for name, found in kernel.items():
        np.testing.assert_array_equal(found, python[name], strict=True)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (3, 1), (40, 40), (300, 200)])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_of_distributions(weighted, n, m, monkeypatch):
    def work():
        rng = np.random.default_rng(12)
        sides = []
        for size in (n, m):
            places = np.sort(np.append(rng.integers(-3, 3, size - size // 2) / 7, rng.normal(size=size // 2)))
            masses = rng.random(size) / max(size, 1)
            sums = np.append(0.0, np.cumsum(masses)) if weighted else np.empty(0)
            sides.append(distributions.LineMasses(places, sums, size + 1))
        return distributions.gap(*sides)

    kernel, python = both_ways(monkeypatch, work)
    assert kernel == python


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL])
def test_mondrian_and_who_is_near_its_boxes(kind, relaxed, monkeypatch):
    table = table_of(kind, 150, missing=0.1)

    def work():
        keys = ("a", "b")
        release = registry.method("mondrian")(k=3, relaxed=relaxed).apply(table.aimed_at(keys), Run(seed=1))
        evidence = Evidence(table, release, scenario=Scenario(columns=keys))
        return release.table.frame, registry.measure("dbrl")().score(evidence, Run(seed=1))

    (kernel, linked), (python, linked_by_python) = both_ways(monkeypatch, work)
    assert kernel.equals(python)
    np.testing.assert_array_equal(linked.by_record, linked_by_python.by_record)
    assert linked == linked_by_python


def places(n, n_columns, how):
    rng = np.random.default_rng(8)
    if how == "tied":
        return rng.integers(0, 3, (n, n_columns)) / 3
    return np.exp(rng.normal(size=(n, n_columns))) if how == "skewed" else np.ones((n, n_columns))


@pytest.mark.parametrize("how", ["tied", "skewed", "constant"])
@pytest.mark.parametrize(
    ("n", "n_columns", "k"), [(0, 2, 3), (7, 2, 3), (400, 1, 2), (400, 4, 7), (300, 20, 3)]
)
@pytest.mark.parametrize("grouping", ["mdav", "cbfs", "vmdav"])
def test_groups_around_the_farthest(grouping, n, n_columns, k, how, monkeypatch):  # noqa: PLR0917
    points = places(n, n_columns, how)
    told = {"gain": 0.5} if grouping == "vmdav" else {}
    kernel, small = both_ways(monkeypatch, lambda: getattr(farthest, grouping)(points, k, **told))
    np.testing.assert_array_equal(small, kernel)


@pytest.mark.parametrize("how", ["tied", "skewed", "constant"])
@pytest.mark.parametrize(("n", "n_columns"), [(0, 2), (1, 2), (33, 1), (400, 4), (50, 0)])
def test_planted_trees(n, n_columns, how, monkeypatch):
    points, units = places(n, n_columns, how), np.random.default_rng(15).random(n_columns)
    most = np.full(n_columns, 0.4)
    kernel, small = both_ways(monkeypatch, lambda: planting.plant(points, 8, units=units, most=most))
    for found, expected in zip(small, kernel, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("room", [1, 10**9])
@pytest.mark.parametrize("n", [1, 300])
def test_minimal_uniques(n, room, monkeypatch):
    monkeypatch.setattr(special_uniques, "_MAX_BYTES", room)
    rng = np.random.default_rng(16)
    keys = [rng.integers(0, 1 + place, n).astype(np.int32) for place in range(4)]
    given = keys, np.array([0.0, 1.0, 0.3, 0.1]), lambda _done, _total: None
    kernel, small = both_ways(monkeypatch, lambda: vars(special_uniques.minimal_uniques(*given)))
    for name, expected in kernel.items():
        np.testing.assert_array_equal(small[name], expected)


@pytest.mark.parametrize("n_numbers", [0, 2])
@pytest.mark.parametrize(("n", "k"), [(20, 2), (300, 3), (420, 7)])
def test_groups_of_categories_around_the_farthest(n, k, n_numbers, monkeypatch):
    monkeypatch.setattr(codes, "FEWEST_RECORDS", 1)
    rng = np.random.default_rng(10)
    blocks = [np.vstack((np.eye(size) * width, np.zeros(size))) for size, width in ((5, 1.0), (12, 0.7))]
    drawn = [block[rng.integers(0, len(block), n)] for block in blocks]
    points = np.hstack((*drawn, rng.integers(0, 4, (n, n_numbers)) / 3, drawn[0][::-1]))
    assert codes.encode(points) is not None
    kernel, small = both_ways(monkeypatch, lambda: farthest.mdav(points, k))
    np.testing.assert_array_equal(small, kernel)


@pytest.mark.parametrize("bid", [-1.0, 0.3, np.inf])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (60, 2), (300, 3)])
def test_who_is_safe_in_which_pattern(n, k, bid, monkeypatch):
    def work():
        rng = np.random.default_rng(9)
        cells = (rng.integers(0, 4, (n, 4)) + np.arange(4) * 4).astype(np.int32)
        missing = np.where(rng.random(n) < 0.2, rng.integers(0, 16, n), 0)
        persons = np.sort(rng.integers(0, max(n * 2 // 3, 1), n))
        records = suppression.KeyRecords(cells, suppression.marks_of(16), missing, persons)
        state = suppression.SafeRecords(
            np.full(n, -1),
            np.full(n, -1),
            np.zeros(2 * n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(2, np.int64),
        )
        terms = suppression.Terms(k, bid, rng.random(4))
        rows, found = np.arange(n), []
        for pattern in (15, 7, 14, 11, 3, 9, 4, 1, 0):
            rows = suppression.settle(records, state, rows, pattern, terms)
            found += [rows, *(each.copy() for each in state)]
        return found

    for kernel, small in zip(*both_ways(monkeypatch, work), strict=True):
        np.testing.assert_array_equal(small, kernel)


def test_who_asked_for_the_kernel_stays_with_it(monkeypatch):
    monkeypatch.setattr(CompileAllowance, "granted", True)
    allowance = CompileAllowance(100)
    assert allowance.takes(60)
    assert not allowance.takes(60)
    assert not allowance.takes(1)


def test_who_compiles_ahead_gets_the_kernel(monkeypatch):
    monkeypatch.setattr(CompileAllowance, "granted", False)
    assert not CompileAllowance(100).takes(1)
