"""The checks of the contract catch what they are there for."""

from functools import partial
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import toys
from sfumato.core.block_method import BlockMethod
from sfumato.core.measure import Score
from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.release import Release
from sfumato.data.schema import Column, Kind
from sfumato.testing import MEASURE_CHECKS
from sfumato.testing import methods as checks
from sfumato.testing.measures import check_record_order_is_irrelevant


def _second(first, second):
    return second


class Offender(Method):
    """Break the contract."""

    name = "offender"
    title = "Offender"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = toys.CONTINUOUS
    randomness = Randomness(stochastic=False)


class Repeating(toys.Draw):
    """Repeat what must not be repeated."""

    randomness = Randomness(replay=False)


class NotRepeating(toys.Unrepeatable):
    """Draw without the seed, and say nothing of it."""

    randomness = Randomness(epsilon_parameter="epsilon")


class SendingItsRun(Offender):
    """Send the run along."""

    def protect(self, table, run):
        list(run.engine.map(partial(_second, run), [1]))
        return Release.unchanged(table)


class SendingTheSeed(Offender):
    """Send the seed along."""

    def protect(self, table, run):
        list(run.engine.map(abs, [run.randomness.seed]))
        return Release.unchanged(table)


class SendingTheTable(Offender):
    """Send all columns along."""

    def protect(self, table, run):
        list(run.engine.map(len, [table]))
        return Release.unchanged(table)


class SendingAClosure(Offender):
    """Send what no other process can know."""

    def protect(self, table, run):
        list(run.engine.map(lambda item: item, [1]))
        return Release.unchanged(table)


class CountingBlocks(BlockMethod):
    """Depend on what an engine did before, which another engine has not done."""

    name = "counting-blocks"
    title = "Counting blocks"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = toys.CONTINUOUS
    randomness = Randomness(stochastic=False)
    rounds = 0
    calls: ClassVar = [0]

    def protect_block(self, block, summaries, run):
        self.calls[0] += 1
        return block.values + self.calls[0]


class AddingAColumn(Offender):
    """Add a column, and say nothing of it."""

    def protect(self, table, run):
        more = table.with_values("more", pl.Series([0] * len(table)), column=Column("more", Kind.NOMINAL))
        return Release.of(more, source_rows=np.arange(len(table)))


class LosingAColumn(Offender):
    """Lose a column."""

    def protect(self, table, run):
        return Release.of(table.select(table.names[:-1]), source_rows=np.arange(len(table)))


class LosingARecord(Offender):
    """Lose a record, and say nothing of it."""

    def protect(self, table, run):
        rows = np.arange(len(table))[1:]
        return Release.of(table.take(rows), source_rows=rows)


class MixingUpRows(Offender):
    """Say that records come from others than they do."""

    gives = Gives(other_records=True)

    def protect(self, table, run):
        return Release.of(table, source_rows=np.arange(len(table))[::-1])


class Filling(Offender):
    """Fill missing cells, and say nothing of it."""

    def protect(self, table, run):
        filled = table.with_values("a", table.frame["a"].fill_null(0.0))
        return Release.of(filled, source_rows=np.arange(len(table)))


@pytest.mark.parametrize(
    ("cls", "check", "error", "message"),
    [
        (Repeating, checks.check_same_seed_same_release, AssertionError, "must never repeat"),
        (NotRepeating, checks.check_same_seed_same_release, AssertionError, "must repeat"),
        (SendingItsRun, checks.check_engines_agree, TypeError, "a run must stay in its process"),
        (SendingTheSeed, checks.check_engines_agree, AssertionError, "holds a secret"),
        (SendingTheTable, checks.check_engines_agree, AssertionError, "holds a secret"),
        (SendingAClosure, checks.check_engines_agree, Exception, "pickle"),
        (CountingBlocks, checks.check_engines_agree, AssertionError, "changes counting-blocks"),
        (AddingAColumn, checks.check_input_is_untouched, AssertionError, "must declare that it adds columns"),
        (LosingAColumn, checks.check_input_is_untouched, AssertionError, "must not get lost"),
        (LosingARecord, checks.check_input_is_untouched, AssertionError, None),
        (MixingUpRows, checks.check_input_is_untouched, AssertionError, None),
        (Filling, checks.check_input_is_untouched, AssertionError, "missing cells must stay missing"),
        (toys.Halves, checks.check_input_is_untouched, AssertionError, "how they belong together"),
    ],
)
def test_a_method_that_breaks_the_contract_is_caught(cls, check, error, message):
    with pytest.raises(error, match=message):
        check(cls)


# ----------------------------------------------------------------------------------------------- measures


@pytest.mark.parametrize("check", MEASURE_CHECKS, ids=lambda check: check.__name__)
def test_a_measure_whose_value_is_nought_but_for_rounding(check):
    """The means of permuted columns are the same up to the order of their sums."""
    check(toys.Shifted)


class LookingAtTheFirst(toys.Shifted):
    """Look at the first record, if only a little."""

    def measure(self, evidence, run):
        score = super().measure(evidence, run)
        return Score(score.value + 1e-9 * evidence.protected.numbers("a")[0])


def test_a_measure_that_depends_on_the_order_of_records_is_caught():
    with pytest.raises(AssertionError):
        check_record_order_is_irrelevant(LookingAtTheFirst)
