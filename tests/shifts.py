"""A method that adds a known number and measures that see just that: searches can be checked by hand."""

from sfumato.core.measure import Measure, Score
from sfumato.core.method import ColumnMethod, Randomness
from sfumato.core.params import param
from sfumato.data.schema import Kind

NUMBERS = frozenset({Kind.CONTINUOUS})


class Shift(ColumnMethod):
    """Add a known number: it protects by as much as it costs."""

    name = "toy-shift"
    title = "Shift"
    kinds = NUMBERS
    randomness = Randomness(stochastic=False)

    by: float = param(1.0, "How much.", ge=0, le=100, tune=(0, 100), drive=True)

    def shift(self, rng):
        return self.by

    def protect_column(self, column, rng):
        return column.values + self.shift(rng)


class Moved(Measure):
    """Mean change of the values."""

    name = "toy-moved"
    title = "Moved"
    aspect = "risk"
    better = "high"
    kinds = NUMBERS

    plus: float = param(0.0, "Added to the score.")

    def measure(self, evidence, run):
        gap = evidence.protected.numbers("x") - evidence.original.numbers("x")
        return Score(float(gap.mean()) + self.plus)


class Lost(Moved):
    name = "toy-lost"
    title = "Lost"
    aspect = "utility"
    better = "low"
