"""Probabilistic linkage: by hand, against the naive computation and splink's own weights, and by its laws."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Progress, Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError, UnknownNameError
from sfumato.risk import _agreement as agreement
from sfumato.risk import probabilistic
from sfumato.risk._agreement import ColumnComparison, cells_of, compare_pairs, comparisons_of, nearest_pairs
from sfumato.risk._spaces import space_of
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.probabilistic import LinkageModel, ProbabilisticLinkage, _falling, _Links, estimate

RUN = Run(seed=1)
SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("income", Kind.CONTINUOUS, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY),
    )
)


def people(size, *, missing=0.0, seed=1):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, size).astype(float),
            "income": rng.lognormal(8, 1, size),
            "town": rng.choice(["Ulm", "Bonn", "Kiel", "Jena"], size),
        }
    )
    if missing:
        frame = frame.select(
            pl.when(pl.Series(rng.random(size) >= missing)).then(pl.col(name)).alias(name)
            for name in frame.columns
        )
    return frame


def noisy(frame, share, *, seed=2):
    rng = np.random.default_rng(seed)
    return frame.with_columns(
        pl.col(name) + share * (frame[name].std() or 0.0) * pl.Series(rng.normal(size=len(frame)))
        for name in ("age", "income")
    )


def evidence_of(original, protected, *, schema=SCHEMA, rows=None, **scenario):
    release = Release.of(
        Table(protected, schema), source_rows=np.arange(len(protected)) if rows is None else np.array(rows)
    )
    return Evidence(Table(original, schema), release, scenario=Scenario(**scenario))


def parts_of(evidence, *, most=10**9, differences="values", blocked=()):
    """What the measure makes on its way: the space, the comparisons, the pairs."""
    names = ProbabilisticLinkage().columns(evidence)
    space = space_of(evidence, (), RUN, metric="hamming", scale="range")
    comparisons = comparisons_of(evidence.known_table, evidence.protected, names, space.rows, differences)
    cells = cells_of(comparisons, list(blocked))
    if agreement.n_pairs(cells) > most:
        return space, comparisons, cells, nearest_pairs(comparisons, cells, most, RUN)
    return space, comparisons, cells, compare_pairs(comparisons, cells, RUN, "")


def level_of(comparison, mine, theirs):
    """The level of one pair, as the docstring of `ColumnComparison` says it."""
    if np.isnan(mine) and np.isnan(theirs):
        return 0
    if np.isnan(mine) or np.isnan(theirs):
        return comparison.n_levels - 1
    return 1 + sum(abs(mine - theirs) > cut for cut in comparison.cuts)


def all_levels(comparisons):
    return np.array(
        [[[level_of(each, x, y) for y in each.released] for x in each.known] for each in comparisons]
    )


# Levels


def test_levels_of_a_number_and_of_a_category_by_hand():
    age = ColumnComparison(
        np.array([30.0, np.nan]), np.array([30.0, 31.0, 39.0, 60.0, np.nan]), np.array([0, 5, 10.0]), True
    )
    pairs = compare_pairs([age], (np.zeros(2, dtype=np.int64), np.zeros(5, dtype=np.int64)), RUN, "")
    assert pairs.known_rows.tolist() == [0] * 5 + [1] * 5
    assert pairs.released_rows.tolist() == [*range(5), *range(5)]
    assert pairs.levels[0].tolist() == [1, 2, 3, 4, 5, 5, 5, 5, 5, 0]
    np.testing.assert_allclose(age.shares(), np.array([1, 1, 1, 1, 1, 5]) / 10)


@pytest.mark.parametrize("differences", ["values", "ranks"])
def test_levels_are_those_of_looking_at_every_pair(differences):
    original = people(40, missing=0.2)
    evidence = evidence_of(original, noisy(original, 0.1))
    _, comparisons, _, pairs = parts_of(evidence, differences=differences)
    assert max(each.n_levels for each in comparisons) >= 9
    levels = all_levels(comparisons)
    np.testing.assert_array_equal(pairs.levels, levels[:, pairs.known_rows, pairs.released_rows])
    for comparison, each in zip(comparisons, levels, strict=True):
        counts = np.bincount(each.ravel(), minlength=comparison.n_levels)
        np.testing.assert_allclose(comparison.shares(), counts / each.size, rtol=1e-12)


values = st.lists(st.one_of(st.none(), st.integers(-6, 6).map(lambda i: i / 10)), min_size=1, max_size=12)


@given(values, values)
def test_shares_of_levels_are_counted_right(mine, theirs):
    first, second = (np.array(each, dtype=np.float64) for each in (mine, theirs))
    comparison = ColumnComparison(first, second, agreement._cuts(first, second), True)
    counts = np.bincount(all_levels([comparison]).ravel(), minlength=comparison.n_levels)
    np.testing.assert_allclose(comparison.shares(), counts / (len(mine) * len(theirs)), rtol=1e-12)


def test_numbers_near_the_largest_do_not_overflow():
    original = pl.DataFrame(
        {"age": [1.7e308, -1.7e308, 3.0], "income": [1.0, 2.0, 3.0], "town": ["a", "b", "c"]}
    )
    assert ProbabilisticLinkage().score(evidence_of(original, original), RUN).value == 1


# Blocks


def test_pairs_are_those_that_share_a_cell_each_once():
    original = people(120)
    evidence = evidence_of(original, noisy(original, 0.05))
    _, _, (mine, theirs), pairs = parts_of(evidence, blocked=(2,))
    share = mine[:, None] == theirs[None, :]
    assert 0 < share.sum() < 120 * 120
    np.testing.assert_array_equal(
        np.argwhere(share), np.column_stack((pairs.known_rows, pairs.released_rows))
    )


def squares_of(comparisons, *, ranked):
    """Squared distances of all pairs: numbers in deviations, one unit for unequal categories."""
    squares = 0.0
    for each in comparisons:
        both = np.concatenate((each.known, each.released))
        if each.ordered:
            both = rankdata(both) if ranked else both
            both = (both - both.mean()) / both.std()
        mine, theirs = both[: len(each.known), None], both[None, len(each.known) :]
        squares = squares + ((mine - theirs) ** 2 if each.ordered else (mine != theirs))
    return squares


def test_of_too_many_pairs_the_nearest_are_compared():
    original = people(120)
    evidence = evidence_of(original, noisy(original, 0.05))
    _, comparisons, _, pairs = parts_of(evidence, most=3000)  # 25 of each: 13 by values, 12 by ranks
    must, may = np.zeros((120, 120), dtype=bool), np.zeros((120, 120), dtype=bool)
    for ranked, count in ((False, 13), (True, 12)):
        squares = squares_of(comparisons, ranked=ranked)
        last = np.sort(squares, axis=1)[:, count - 1, None]
        must |= squares < last - 1e-5
        may |= squares < last + 1e-5
    found = np.zeros((120, 120), dtype=bool)
    found[pairs.known_rows, pairs.released_rows] = True
    assert len(pairs.known_rows) == found.sum() <= 3000
    assert found[must].all()
    assert not found[~may].any()
    levels = all_levels(comparisons)
    np.testing.assert_array_equal(pairs.levels, levels[:, pairs.known_rows, pairs.released_rows])


def test_the_nearest_agree_in_a_named_block():
    original = people(200)
    evidence = evidence_of(original, noisy(original, 0.05))
    _, _, (mine, theirs), pairs = parts_of(evidence, most=2000, blocked=(2,))
    assert (mine[pairs.known_rows] == theirs[pairs.released_rows]).all()
    sizes = np.bincount(theirs)[mine]
    counts = np.bincount(pairs.known_rows, minlength=200)
    assert (counts[sizes <= 10] == sizes[sizes <= 10]).all()
    assert (counts[sizes > 10] >= 5).all()
    assert (counts <= 10).all()


def test_missing_values_have_levels_of_their_own_among_the_nearest():
    original = people(150, missing=0.2)
    _, comparisons, _, pairs = parts_of(evidence_of(original, noisy(original, 0.05)), most=3000)
    levels = all_levels(comparisons)
    np.testing.assert_array_equal(pairs.levels, levels[:, pairs.known_rows, pairs.released_rows])


def test_parts_of_the_pairs_are_all_the_pairs(monkeypatch):
    monkeypatch.setattr(agreement, "AT_A_TIME", 800)
    original = people(40)
    _, _, _, pairs = parts_of(evidence_of(original, original))
    np.testing.assert_array_equal(pairs.known_rows * 40 + pairs.released_rows, np.arange(1600))


def test_pairs_not_compared_make_a_score_approximate_and_are_told_of():
    original = people(120)
    evidence = evidence_of(original, noisy(original, 0.6))
    whole, part = (ProbabilisticLinkage(pairs=most).score(evidence, RUN) for most in (20_000, 1200))
    assert (whole.status, whole.details["true_pairs_compared"]) == (Status.OK, 1)
    assert whole.details["pairs"] == 120 * 120
    assert part.status is Status.APPROXIMATE
    _, _, _, pairs = parts_of(evidence, most=1200)
    share = (pairs.known_rows == pairs.released_rows).sum() / 120
    assert part.details["true_pairs_compared"] == pytest.approx(share)
    assert 0.5 < share < 1
    assert part.value <= share
    assert part.details["value_if_lost_pairs_were_found"] == pytest.approx(part.value + 1 - share)
    assert f"{100 * (1 - share):.3g} % of the true ones" in part.reason


def test_few_true_pairs_are_lost_where_not_all_are_compared(reference_data):
    """With one in twenty pairs compared, the linkage is as good as with all of them."""
    frame = pl.read_csv(reference_data("census.csv")).cast(pl.Float64)[:400]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns))
    rng = np.random.default_rng(15)
    moved = frame.select(
        pl.col(n) + 0.2 * frame[n].std() * pl.Series(rng.normal(size=400)) for n in frame.columns
    )
    evidence = evidence_of(frame, moved, schema=schema)
    whole, part = (ProbabilisticLinkage(pairs=most).score(evidence, RUN) for most in (200_000, 8000))
    assert part.details["true_pairs_compared"] > 0.97
    assert abs(part.value - whole.value) < 0.02


def test_a_named_block_must_agree():
    original = people(60)
    moved = original.with_columns(town=pl.Series(["Kiel", *original["town"][1:]]))
    assert original["town"][0] != "Kiel"
    evidence = evidence_of(original, moved)
    assert ProbabilisticLinkage().score(evidence, RUN).by_record[0] == 1
    blocked = ProbabilisticLinkage(block=("town",)).score(evidence, RUN)
    assert blocked.by_record.tolist() == [0] + [1] * 59
    assert blocked.status is Status.APPROXIMATE
    counts = [frame["town"].value_counts().sort("town")["count"].to_numpy() for frame in (original, moved)]
    assert blocked.details["pairs"] == counts[0] @ counts[1]


def test_missing_agrees_with_missing_in_a_block():
    original = people(20).with_columns(town=pl.Series([None] * 3 + ["Ulm"] * 17))
    score = ProbabilisticLinkage(block=("town",)).score(evidence_of(original, original), RUN)
    assert score.details["pairs"] == 3 * 3 + 17 * 17


def test_of_equal_records_no_more_are_found_than_by_guessing():
    original = pl.DataFrame({"age": [30.0] * 50, "income": [1.0] * 50, "town": ["Ulm"] * 50})
    score = ProbabilisticLinkage(pairs=1000).score(evidence_of(original, original), RUN)
    assert score.status is Status.APPROXIMATE
    assert score.value == pytest.approx(1 / 50)


def test_blocks_must_be_known():
    schema = Schema((*SCHEMA.columns, Column("note", Kind.NOMINAL, Role.OTHER)))
    original = people(5).with_columns(note=pl.lit("x"))
    evidence = evidence_of(original, original, schema=schema)
    score = ProbabilisticLinkage(block=("note",)).score(evidence, RUN)
    assert score.status is Status.REFUSED
    assert "`note`" in score.reason
    with pytest.raises(UnknownNameError):
        ProbabilisticLinkage(block=("nowhere",)).score(evidence, RUN)


# Estimate


def test_weights_by_hand():
    """A column weighs log2(0.8 / 0.1) = 3 bits where it agrees, and log2(0.2 / 0.8) = −2 where it does not."""
    model = LinkageModel([np.array([0.8, 0.2])] * 2, [np.array([0.1, 0.8])] * 2)
    levels = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], dtype=np.int8)
    pairs = agreement.Pairs(np.zeros(4, dtype=np.int64), np.arange(4), levels)
    assert model.weights(pairs).tolist() == pytest.approx([6, 1, 1, -4])


def test_a_falling_ratio_by_hand():
    """The ratios 1, 3, 2 are pooled to 2, 2, 2; the missing ones at both ends are left alone."""
    strangers = np.array([0.1, 0.2, 0.2, 0.2, 0.3])
    counts = strangers * np.array([9.0, 1, 3, 2, 7])
    expected = strangers * np.array([9.0, 2, 2, 2, 7])
    np.testing.assert_allclose(_falling(counts, strangers), expected / expected.sum(), rtol=1e-12)


@given(st.lists(st.tuples(st.floats(0.01, 50), st.floats(0.01, 1)), min_size=4, max_size=12))
def test_a_falling_ratio_is_the_nearest(levels):
    """Against pooling neighbours that violate the order until none is left."""
    counts, strangers = np.array(levels).T
    pools = [[c, s, 1] for c, s in zip(counts[1:-1], strangers[1:-1], strict=True)]
    i = 0
    while i < len(pools) - 1:
        if pools[i][0] / pools[i][1] < pools[i + 1][0] / pools[i + 1][1]:
            pools[i] = [a + b for a, b in zip(pools[i], pools.pop(i + 1), strict=True)]
            i = max(i - 1, 0)
        else:
            i += 1
    ratios = np.repeat([c / s for c, s, _ in pools], [size for *_, size in pools])
    expected = np.array([counts[0], *(ratios * strangers[1:-1]), counts[-1]])
    np.testing.assert_allclose(_falling(counts, strangers), expected / expected.sum(), rtol=1e-9)


def naive_model(comparisons):
    """Estimate with a full matrix, one pair and one level at a time where that is clearest."""
    levels = all_levels(comparisons)
    size = levels[0].size
    u = []
    for comparison, each in zip(comparisons, levels, strict=True):
        shares = np.maximum(np.bincount(each.ravel(), minlength=comparison.n_levels) / size, 1 / size)
        u.append(shares / shares.sum())
    m = []
    for each in u:
        start = each * 2.0 ** (-10 * (np.cumsum(each) - each / 2))
        m.append(start / start.sum())
    for _ in range(probabilistic.ROUNDS):
        odds = np.ones(levels[0].shape)
        for c, each in enumerate(levels):
            odds *= (m[c] / u[c])[each]
        chances = odds / odds.sum(axis=1, keepdims=True) * odds / odds.sum(axis=0, keepdims=True)
        new = []
        for c, each in enumerate(levels):
            counts = np.array([chances[each == level].sum() for level in range(len(u[c]))])
            new.append(_falling(counts + u[c], u[c]))
        moved = max(np.abs(a - b).max() for a, b in zip(new, m, strict=True))
        m = new
        if moved < probabilistic.SETTLED:
            break
    weights = sum(np.log2(m[c] / u[c])[each] for c, each in enumerate(levels))
    return m, u, weights


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_links_are_those_of_the_naive_computation(missing):
    original = people(50, missing=missing)
    evidence = evidence_of(original, noisy(original, 0.2))
    _, comparisons, _, pairs = parts_of(evidence)
    m, u, weights = naive_model(comparisons)
    model = estimate(comparisons, pairs, RUN)
    for mine, naive in ((model.m, m), (model.u, u)):
        for one, other in zip(mine, naive, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(model.weights(pairs), weights.ravel(), rtol=1e-9, atol=1e-9)
    best = np.round(weights, 9) == np.round(weights, 9).max(axis=1, keepdims=True)
    chances = np.diag(best) / best.sum(axis=1)
    score = ProbabilisticLinkage().score(evidence, RUN)
    np.testing.assert_allclose(score.by_record, chances)
    assert score.value == pytest.approx(chances.mean())
    assert 0.2 < score.value < 1  # the test is of some use


def test_weights_are_those_of_splink(monkeypatch):
    """Splink, given the same m and u, weighs the same pairs the same, but for the prior odds it adds."""
    original = people(30, missing=0.1)
    _, comparisons, cells, pairs = parts_of(evidence_of(original, noisy(original, 0.1)))
    model = estimate(comparisons, pairs, RUN)

    trained = {}
    for i, (comparison, m, u) in enumerate(zip(comparisons, model.m, model.u, strict=True)):
        trained[f"column{i}"] = said = agreement._settings(f"column{i}", comparison)
        for level, m_level, u_level in zip(said["comparison_levels"], m, u, strict=True):
            level |= {"m_probability": m_level, "u_probability": u_level}
    monkeypatch.setattr(agreement, "_settings", lambda name, _: trained[name])
    with agreement._linker(comparisons, cells) as (linker, database):
        table = linker.inference.predict(warning_mode="never").physical_name
        rows = database.execute(f"SELECT match_weight FROM {table} ORDER BY unique_id_l, unique_id_r")
        found = rows.fetchnumpy()["match_weight"]
    ours = model.weights(pairs)
    np.testing.assert_allclose(found - found[0], ours - ours[0], rtol=1e-9, atol=1e-9)


def test_agreement_never_weighs_less_than_disagreement():
    original = people(60, missing=0.1)
    for share in (0.0, 0.1, 3.0):
        _, comparisons, _, pairs = parts_of(evidence_of(original, noisy(original, share)))
        model = estimate(comparisons, pairs, RUN)
        for m, u in zip(model.m, model.u, strict=True):
            assert (np.diff(np.log2(m / u)[1:-1]) <= 1e-9).all()
            assert m.sum() == pytest.approx(1)


# Scores


@pytest.mark.parametrize("measure", [ProbabilisticLinkage(), ProbabilisticLinkage(differences="ranks")])
def test_the_file_itself_gives_all_who_are_alone_away(measure):
    original = pl.concat([people(40, missing=0.1), people(40, missing=0.1)[:5]])
    score = measure.score(evidence_of(original, original), RUN)
    assert score.by_record.tolist() == [0.5] * 5 + [1] * 35 + [0.5] * 5
    assert score.status is Status.OK
    assert score.details["ties_shared"] == 10
    assert score.baseline == pytest.approx(1 / 45)


def test_a_pattern_of_missing_values_gives_away():
    original = pl.DataFrame(
        {
            "age": [1.0, 1.0, None, None],
            "income": [None, 2.0, 2.0, None],
            "town": ["Ulm"] * 4,
        }
    )
    assert ProbabilisticLinkage().score(evidence_of(original, original), RUN).value == 1


def test_one_record_can_only_be_linked_to_the_one_there_is():
    alone = people(1)
    assert ProbabilisticLinkage().score(evidence_of(alone, noisy(people(2), 1)[:1]), RUN).value == 1


@pytest.mark.slow
def test_census_comes_near_to_linkage_by_distance(reference_data):
    """Paper 001's noise of 15 % on 400 records; with splink's own estimate of m it links 0.82 to our 0.96."""
    frame = pl.read_csv(reference_data("census.csv")).cast(pl.Float64)[:400]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns))
    rng = np.random.default_rng(15)
    moved = frame.select(
        pl.col(n) + 0.15 * frame[n].std() * pl.Series(rng.normal(size=400)) for n in frame.columns
    )
    evidence = evidence_of(frame, moved, schema=schema)
    by_distance = DistanceLinkage(scale="pooled").score(evidence, RUN).value
    local = ProbabilisticLinkage().score(evidence, RUN)
    assert local.value > by_distance - 0.04
    assert local.details["links_believed"] == pytest.approx(local.details["links_expected"], rel=0.1)
    assert ProbabilisticLinkage(one_to_one=True).score(evidence, RUN).value > local.value


def test_weak_columns_do_not_lead_the_estimate_astray():
    """Skewed independent columns, on which an estimate that starts elsewhere links 5 % of the records."""
    rng = np.random.default_rng(5)
    values = rng.lognormal(size=(300, 6))
    moved = values + rng.normal(size=values.shape) * values.std(axis=0) * 0.3
    names = list("abcdef")
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    evidence = evidence_of(
        pl.DataFrame(values, schema=names), pl.DataFrame(moved, schema=names), schema=schema
    )
    by_distance = DistanceLinkage().score(evidence, RUN).value
    assert by_distance > 0.4
    assert ProbabilisticLinkage().score(evidence, RUN).value > by_distance - 0.12


def test_who_must_be_sure_links_less():
    original = people(60)
    evidence = evidence_of(original, noisy(original, 0.3))
    always = ProbabilisticLinkage().score(evidence, RUN)
    sure = ProbabilisticLinkage(threshold=4).score(evidence, RUN)
    assert 0 < sure.value < always.value
    assert (sure.by_record <= always.by_record).all()
    for one_to_one in (False, True):
        assert ProbabilisticLinkage(threshold=900, one_to_one=one_to_one).score(evidence, RUN).value == 0


# One to one


def linked(original, protected, **more):
    space, comparisons, _, pairs = parts_of(evidence_of(original, protected, membership=False), **more)
    weights = np.round(estimate(comparisons, pairs, RUN).weights(pairs), probabilistic.DECIMALS)
    return _Links(space, comparisons, pairs, weights, -np.inf), pairs, weights


def test_one_to_one_has_the_greatest_total_and_uses_no_record_twice():
    original = people(60)
    links, _, weights = linked(original, noisy(original, 0.5)[:45].sample(45, seed=1, shuffle=True))
    found = links.match_one_to_one(np.random.default_rng(1))
    there = found[found >= 0]
    assert len(there) == 45 == len(set(there.tolist()))
    matrix = weights.reshape(60, 45)
    # Who has no link counts less than any who has; the least weight is theirs less one.
    rows, columns = linear_sum_assignment(
        np.hstack((matrix, np.full((60, 60), matrix.min() - 1))), maximize=True
    )
    best = np.hstack((matrix, np.full((60, 60), matrix.min() - 1)))[rows, columns].sum()
    total = matrix[np.flatnonzero(found >= 0), there].sum() + 15 * (matrix.min() - 1)
    assert total == pytest.approx(best, abs=1e-6)


def test_one_to_one_in_blocks_uses_their_pairs_only():
    original = people(120)
    links, pairs, _ = linked(original, noisy(original, 0.2), most=3000)
    found = links.match_one_to_one(np.random.default_rng(1))
    mine = np.flatnonzero(found >= 0)
    assert len(mine) > 60
    assert len(set(found[mine].tolist())) == len(mine)
    assert np.isin(mine * 120 + found[mine], pairs.known_rows * 120 + pairs.released_rows).all()


def test_one_to_one_finds_what_each_alone_does_not():
    original = people(150)
    evidence = evidence_of(original, noisy(original, 0.2))
    local, together = (ProbabilisticLinkage(one_to_one=x).score(evidence, RUN).value for x in (False, True))
    assert together > local


def test_one_to_one_shares_ties():
    """Of 5 pairs of twins any two may be exchanged: each is found with a chance of one half."""
    original = pl.concat([people(5)] * 2)
    score = ProbabilisticLinkage(one_to_one=True).score(evidence_of(original, original), RUN)
    assert score.by_record.tolist() == [0.5] * 10


# Persons, records, other files


def test_any_record_of_a_person_is_right_and_persons_are_counted():
    schema = Schema((*SCHEMA.columns, Column("who", Kind.NOMINAL, Role.PERSON)))
    original = people(30).with_columns(who=pl.Series([f"p{i // 3}" for i in range(30)]))
    turned = [i // 3 * 3 + (i + 1) % 3 for i in range(30)]  # each says what another record of the person says
    released = original.with_columns(original.select("age", "income", "town")[turned])
    score = ProbabilisticLinkage().score(evidence_of(original, released, schema=schema), RUN)
    assert score.value == 1
    assert score.details["persons"] == 10
    records_only = ProbabilisticLinkage().score(evidence_of(original.drop("who"), released.drop("who")), RUN)
    assert records_only.value == 0


def test_who_is_not_in_the_file_is_left_out_or_tried_in_vain():
    original = people(40)
    known, unknown = (
        ProbabilisticLinkage().score(
            evidence_of(original, original[:30], rows=range(30), membership=membership), RUN
        )
        for membership in (True, False)
    )
    assert known.value == 1
    assert np.isnan(known.by_record[30:]).all()
    assert unknown.value == pytest.approx(0.75)


def test_a_share_of_the_records_is_known():
    original = people(40)
    score = ProbabilisticLinkage().score(evidence_of(original, original, records=0.25), RUN)
    assert score.details["records"] == 10
    assert np.isnan(score.by_record).sum() == 30


def test_a_file_of_their_own():
    schema = Schema((*SCHEMA.columns, Column("who", Kind.NOMINAL, Role.IDENTIFIER)))
    original = people(30).with_columns(who=pl.Series([f"p{i}" for i in range(30)]))
    evidence = evidence_of(original, original, schema=schema, external="theirs")
    theirs = Table(noisy(original[10:20].reverse(), 0.001), schema)
    score = ProbabilisticLinkage().score(replace(evidence, resources={"theirs": theirs}), RUN)
    assert score.value == 1
    assert score.details["records"] == 10


# Repeatable, silent, optional


@pytest.mark.parametrize(
    "measure",
    [
        ProbabilisticLinkage(differences="ranks"),
        ProbabilisticLinkage(one_to_one=True),
        ProbabilisticLinkage(one_to_one=True, pairs=2000),
    ],
)
def test_neither_order_nor_repeating_changes_a_score(measure):
    original = people(70, missing=0.1).with_columns(pl.col("income") // 1000)
    protected = noisy(original, 0.2).with_columns(pl.col("income") // 1000, pl.col("age") // 10)
    first = measure.score(evidence_of(original, protected), RUN)
    again = measure.score(evidence_of(original, protected), RUN)
    order = np.random.default_rng(3).permutation(70)
    shuffled = measure.score(evidence_of(original, protected[order], rows=order), RUN)
    turned = Schema(tuple(reversed(SCHEMA.columns)))
    names = list(turned.names)
    other = measure.score(evidence_of(original.select(names), protected.select(names), schema=turned), RUN)
    for score in (again, shuffled, other):
        np.testing.assert_array_equal(score.by_record, first.by_record)
        assert (score.value, score.status) == (first.value, first.status)


def test_says_nothing_and_leaves_nothing(capfd, caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    original = people(30, missing=0.1).with_columns(town=pl.lit("Zanzibarquux"))
    before = logging.getLogger("splink").level
    ProbabilisticLinkage(one_to_one=True).score(evidence_of(original, noisy(original, 0.1)), RUN)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert logging.getLogger("splink").level == before
    assert list(tmp_path.iterdir()) == []


def test_tells_of_its_progress():
    heard = []
    original = people(20)
    ProbabilisticLinkage().score(
        evidence_of(original, original), Run(seed=1, progress=Progress(report=heard.append))
    )
    assert (heard[-1].done, heard[-1].total) == (1, 1)


@pytest.mark.parametrize("package", ["splink", "duckdb"])
def test_says_which_extra_is_missing(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    original = people(5)
    with pytest.raises(MissingDependencyError, match=r"sfumato\[linkage\]"):
        ProbabilisticLinkage().score(evidence_of(original, original), RUN)


@examples(8)
@given(st.integers(1, 25), st.floats(0, 2), st.booleans(), st.floats(0, 0.5))
def test_a_score_is_a_share(size, share, one_to_one, missing):
    original = people(size, missing=missing, seed=size)
    protected = noisy(original, share)
    score = ProbabilisticLinkage(one_to_one=one_to_one).score(evidence_of(original, protected), RUN)
    assert 0 <= score.value <= 1
    assert score.details["links_expected"] == pytest.approx(score.value * size)
