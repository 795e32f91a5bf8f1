"""Laws of recipes: records are followed, strata are apart, households are one, order is no matter."""

import json

import numpy as np
import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from toys import CentredNoise, Draw, Mean, Pairs, Rounding, Sampling, Turned

SEEDS = st.integers(0, 2**128 - 1)
VALUES = st.one_of(st.none(), st.integers(-20, 20).map(float))
STRATUM = st.one_of(st.none(), st.sampled_from(["a", "b", "None", ""]))


@st.composite
def tables(draw, max_size=15):
    """Two numbers with holes, two strata with holes, a household number with holes, and the record's own number."""
    records = draw(
        st.lists(
            st.tuples(VALUES, VALUES, STRATUM, st.one_of(st.none(), st.integers(0, 1)), st.one_of(st.none(), st.integers(0, 4))),
            max_size=max_size,
        )
    )  # fmt: skip
    types = {"x": pl.Float64, "y": pl.Float64, "s": pl.String, "t": pl.Int64, "house": pl.Int64}
    frame = pl.DataFrame(records, schema=types, orient="row").with_row_index("own")
    return Table(
        frame,
        Schema(
            (
                Column("own", Kind.NOMINAL, Role.OTHER),
                Column("x", Kind.CONTINUOUS, Role.KEY),
                Column("y", Kind.CONTINUOUS, Role.KEY),
                Column("s", Kind.NOMINAL, Role.OTHER),
                Column("t", Kind.NOMINAL, Role.OTHER),
                Column("house", Kind.NOMINAL, Role.HOUSEHOLD),
            )
        ),
    )


COLUMNS = st.sampled_from([("x",), ("y",), ("x", "y"), ("@key",), ()])
WITHIN = st.sampled_from([(), ("s",), ("t",), ("s", "t")])
KEEPING = st.sampled_from(
    [Mean(), Draw(), Turned(), Rounding(base={"x": 3}), RankSwapping(window=100), CentredNoise()]
)
STEPS = st.lists(
    st.one_of(
        st.builds(Step, st.sampled_from([Draw(), RankSwapping(window=50), CentredNoise(), CorrelatedNoise(), Mean()]), COLUMNS, WITHIN),
        st.builds(Step, st.builds(Sampling, share=st.floats(0.3, 1)), COLUMNS, WITHIN),
    ),
    max_size=4,
)  # fmt: skip


def applied(recipe, table, run):
    """Follow a recipe; one that would leave a person alone in a stratum as it is refuses, and is no example."""
    try:
        return recipe.apply(table, run)
    except DataError as error:
        assume("alone in their stratum" not in error.message)
        raise


@given(table=tables(), steps=STEPS, seed=SEEDS)
def test_records_are_followed_through_every_step(table, steps, seed):
    """No step touches `own`: it is the record's number in the original, so it must be what is claimed."""
    release = applied(Recipe(tuple(steps)), table, Run(seed=seed))
    assert release.table.frame["own"].to_list() == release.source_rows.tolist()
    assert len(set(release.source_rows.tolist())) == len(release.table)
    kept = table.take(release.source_rows).frame
    assert_frame_equal(release.table.frame.select("s", "t", "house"), kept.select("s", "t", "house"))
    for name in ("x", "y"):  # nobody's missing value was filled, nobody's value lost
        assert release.table.frame[name].is_null().to_list() == kept[name].is_null().to_list()


@given(table=tables(), method=KEEPING, within=WITHIN, seed=SEEDS)
def test_methods_that_keep_records_keep_their_order(table, method, within, seed):
    columns = ("x",)
    release = applied(Recipe.of(Step(method, columns, within)), table, Run(seed=seed))
    assert release.source_rows.tolist() == list(range(len(table)))
    assert_frame_equal(release.table.frame.drop("x"), table.frame.drop("x"))


@given(
    table=tables(),
    within=st.sampled_from([("s",), ("t",), ("t", "s")]),
    method=st.sampled_from([Mean(), Turned(), Mdav(k=1)]),
)
def test_a_stratum_is_protected_as_if_it_were_alone(table, within, method):
    release = applied(Recipe.of(Step(method, ("x", "y"), within)), table, Run(seed=1))
    labels = table.frame.select(within).rows()
    for label in set(labels):
        rows = np.array([row for row, each in enumerate(labels) if each == label])
        alone = applied(Recipe.of(Step(method, ("x", "y"))), table.take(rows), Run(seed=1))
        assert_frame_equal(release.table.take(rows).frame, alone.table.frame)


@given(table=tables(), within=st.sampled_from([("s",), ("s", "t")]))
def test_classes_never_cross_strata(table, within):
    complete = table.take(np.flatnonzero(~table.missing("x")))
    release = applied(Recipe.of(Step(Pairs(), ("x",), within)), complete, Run(seed=1))
    labels = complete.frame.select(within).rows()
    by_class = {}
    for group, label in zip(release.classes.tolist(), labels, strict=True):
        by_class.setdefault(group, []).append(label)
    assert all(len(set(members)) == 1 for members in by_class.values())
    assert all(len(members) <= 2 for members in by_class.values())
    assert sum(len(members) == 1 for members in by_class.values()) <= len(set(labels))


@given(
    table=tables(),
    method=st.sampled_from([Draw(), Mean(), RankSwapping(window=100), CentredNoise()]),
    seed=SEEDS,
)
def test_households_are_one(table, method, seed):
    """Against brute force: one record per household, protected, and handed to every member."""
    house = table.frame["house"].to_list()
    head = {}
    for row, number in enumerate(house):
        head.setdefault(("alone", row) if number is None else number, row)
    heads = [head[("alone", row) if number is None else number] for row, number in enumerate(house)]
    table = table.with_values("x", table.frame["x"].gather(heads))  # the same for all of a household
    release = applied(Recipe.of(Step(method, ("x",), together="house")), table, Run(seed=seed))
    values = release.table.frame["x"].to_list()
    assert values == [values[row] for row in heads]
    assert release.source_rows.tolist() == list(range(len(table)))
    present = [row for row in sorted(set(heads)) if table.frame["x"][row] is not None]
    if isinstance(method, Mean) and present:
        expected = np.mean([table.frame["x"][row] for row in present])
        np.testing.assert_allclose([values[row] for row in present], expected)
    if isinstance(method, RankSwapping):  # each household's value is some household's value
        assert sorted(values[row] for row in present) == sorted(table.frame["x"][row] for row in present)


@given(table=tables(), steps=STEPS, seed=SEEDS, turn=st.randoms(use_true_random=False))
def test_the_order_of_columns_is_no_matter(table, steps, seed, turn):
    names = list(table.names)
    turn.shuffle(names)
    recipe = Recipe(tuple(steps))
    straight = applied(recipe, table, Run(seed=seed))
    turned = applied(recipe, table.select(names), Run(seed=seed))
    assert_frame_equal(straight.table.frame, turned.table.frame.select(straight.table.names))
    assert straight.source_rows.tolist() == turned.source_rows.tolist()


@given(
    steps=st.lists(
        st.builds(
            Step, st.builds(Mdav, k=st.integers(1, 99)), COLUMNS, WITHIN, st.sampled_from(["", "house"])
        ),
        max_size=4,
    )
)
def test_a_recipe_survives_json_and_its_digest_with_it(steps):
    recipe = Recipe(tuple(steps))
    again = Recipe.from_list(json.loads(json.dumps(recipe.to_list())))
    assert again == recipe
    assert again.digest == recipe.digest
    assert len(recipe.digest) == 64
    if steps:
        assert Recipe(recipe.steps[1:]).digest != recipe.digest
