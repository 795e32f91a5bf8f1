"""What was lost by column: worked-out shares and sizes, and the words for them."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.mondrian import Mondrian
from sfumato.study.losses import Loss, PublicSizes, losses, sentences


def table_of(**columns):
    """A table whose columns are (kind, values)."""
    schema = Schema(tuple(Column(name, kind, Role.KEY) for name, (kind, _) in columns.items()))
    return Table(pl.DataFrame({name: values for name, (_, values) in columns.items()}), schema)


def lost(original, **changed):
    frame = original.frame.with_columns(**{name: pl.Series(values) for name, values in changed.items()})
    release = replace(Release.unchanged(original), tables=Release.of(replace(original, frame=frame)).tables)
    return {loss.column: loss for loss in losses(original, release)}


def test_numbers_that_moved():
    original = table_of(pay=(Kind.CONTINUOUS, [10.0, 20.0, 30.0, None]), age=(Kind.CONTINUOUS, [1, 2, 3, 4]))
    found = lost(original, pay=[10.0, 24.0, 36.0, None])
    assert found["pay"].changed == pytest.approx(2 / 3)
    assert found["pay"].moved == pytest.approx(5)
    assert found["pay"].sentence() == "67 % of pay changed, by 5 on average"
    assert found["age"].fate == "untouched"


def test_suppressed_values_are_counted_among_those_that_were_there():
    original = table_of(sex=(Kind.NOMINAL, ["f", "m", None, "f"]))
    found = lost(original, sex=[None, "m", None, "f"])["sex"]
    assert (found.suppressed, found.changed) == (pytest.approx(1 / 3), 0)
    assert found.sentence() == "33 % of sex suppressed"


@pytest.mark.parametrize(
    ("days", "words"),
    [(1461, "within 4 years"), (92, "within 3 months"), (10, "within 10 days")],
)
def test_dates_in_their_own_unit(days, words):
    original = table_of(born=(Kind.DATE, [date(1980, 1, 1), date(1980, 1, 2)]))
    lows = pl.Series([date(1979, 12, 1)] * 2)
    shown = intervals(lows, lows.dt.offset_by(f"{days}d"))
    found = lost(original, born=shown)["born"]
    assert found.width == days
    assert found.sentence() == f"born {words}"


def test_groups_of_categories_and_what_leaves():
    n = 40
    rng = np.random.default_rng(1)
    original = table_of(
        plz=(Kind.NOMINAL, rng.choice(list("abcdefgh"), n)), age=(Kind.CONTINUOUS, rng.integers(0, 90, n))
    )
    release = Mondrian(k=5).apply(original.aimed_at(("plz", "age")), Run(seed=1))
    found = {loss.column: loss for loss in losses(original, release)}
    nodes = release.table.nodes["plz"]
    sizes = dict(zip(nodes.labels, nodes.sizes, strict=True))
    coarse = [sizes[label] for label in release.table.frame["plz"].cast(pl.String) if sizes.get(label, 1) > 1]
    assert found["plz"].size == np.median(coarse)
    assert found["plz"].coarser == pytest.approx(len(coarse) / n, abs=1e-9)
    gone = replace(release, tables=Release.of(release.table.select(["age"])).tables)
    assert losses(original, gone)[0].sentence() == "plz left out"


def test_words_for_all_columns_together():
    said = sentences(
        [
            Loss("name", "identifier", "left out"),
            Loss("plz", "key", "changed", coarser=0.86, size=3.0),
            Loss("income", "sensitive", "untouched"),
            Loss("ill", "sensitive", "untouched"),
            Loss("home", "household", "renamed"),
        ]
    )
    assert said == [
        "86 % of plz became groups of 3", "income and ill untouched", "home given new numbers", "name left out",
    ]  # fmt: skip


def test_no_more_digits_than_may_be_published():
    said = Loss("pay", "key", "changed", changed=0.12345, moved=1234.5).to_dict()
    assert (said["changed"], said["moved"]) == (0.12, 1200.0)


# What may be public ----------------------------------------------------------------------------------------


def public(original, **changed):
    return {name: loss.public_sentence() for name, loss in lost(original, **changed).items()}


def test_the_mean_of_changes_is_public_only_where_it_hides_each():
    values = [float(i) for i in range(40)]
    original = table_of(pay=(Kind.CONTINUOUS, values))
    even = [value + 13 * (place < 20) for place, value in enumerate(values)]
    assert public(original, pay=even)["pay"] == "about 50 % of pay changed, by about 10 on average"
    one = [value + (9000 if place == 5 else 13 * (place < 20)) for place, value in enumerate(values)]
    assert public(original, pay=one)["pay"] == "about 50 % of pay changed, typically by about 10"
    few = [value + 13 * (place < 9) for place, value in enumerate(values)]
    assert public(original, pay=few)["pay"] == "fewer than 10 values of pay changed"


def test_changes_of_fewer_than_ten_people_have_no_size():
    frame = pl.DataFrame({"who": [i // 4 for i in range(36)], "pay": [float(i) for i in range(36)]})
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("pay", Kind.CONTINUOUS, Role.KEY)))
    original = Table(frame, schema)
    assert public(original, pay=[i + 5.0 for i in range(36)])["pay"] == "over 95 % of pay changed"


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.002, "under 5 %"), (0.0499, "under 5 %"), (0.05, "about 5 %"), (0.29, "about 30 %"),
     (0.94, "about 95 %"), (0.96, "over 95 %"), (1.0, "over 95 %")],
)  # fmt: skip
def test_public_shares_are_in_steps_of_five(share, words):
    loss = Loss("job", "key", "changed", changed=share, public_sizes=PublicSizes(changed_cells=50))
    assert loss.public_sentence() == f"{words} of job changed"


def test_the_width_of_a_range_with_an_open_end_is_not_public():
    """Ended where the original ends, it is the largest value less a known number."""
    original = table_of(pay=(Kind.CONTINUOUS, [1.0, 5.0, 20.0, 8_133_777.0]))
    shown = intervals(pl.Series([0.0, 10.0, 10.0, 10.0]), pl.Series([10.0, None, None, None]))
    found = lost(original, pay=shown)["pay"]
    assert found.width == pytest.approx(8_133_767.0)
    assert found.public_sentence() == "pay in wide ranges"


def test_values_where_there_was_none_have_moved_nowhere():
    original = table_of(pay=(Kind.CONTINUOUS, [1.0, None, None]))
    found = lost(original, pay=[1.0, 2.0, 3.0])["pay"]
    assert found.moved is None
    assert found.sentence() == "100 % of pay changed"
