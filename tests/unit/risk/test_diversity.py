"""Diversity by hand: the tables of the papers, and the corners of each kind."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.risk.diversity import (
    AlphaKAnonymity,
    GrassbergerDiversity,
    LDiversity,
    PSensitivity,
    RecursiveDiversity,
)

NAME = Kind.NOMINAL

#: The inpatients of Machanavajjhala et al. (2007), figures 1 to 3.
ZIP = [13053, 13068, 13068, 13053, 14853, 14853, 14850, 14850, 13053, 13053, 13068, 13068]
ILLNESS = ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral", *["cancer"] * 4]


def table_of(groups, values, **more):
    """One key, one sensitive column ``s``, and others as described."""
    columns = [Column("group", NAME, Role.KEY), Column("s", NAME, Role.SENSITIVE)]
    data = {"group": groups, "s": values}
    for name, (cells, role) in more.items():
        data[name] = cells
        columns.append(Column(name, NAME, role))
    return Table(pl.DataFrame(data, strict=False), Schema(tuple(columns)))


def of_counts(*counts):
    """Classes in which the values occur so often: ``of_counts((2, 2, 2), (5,))``."""
    groups = [g for g, each in enumerate(counts) for _ in range(sum(each))]
    values = [f"v{i}" for each in counts for i, count in enumerate(each) for _ in range(count)]
    return table_of(groups, values)


def score(measure, table, **more):
    return measure.score(Evidence(table, **more), Run(seed=1))


# ------------------------------------------------------------------------------------------------- the papers


def test_the_four_anonymous_table_of_the_paper_is_not_diverse():
    """Figure 2: everyone in the third class has cancer."""
    table = table_of(np.repeat([1, 2, 3], 4), ILLNESS)
    found = score(LDiversity(), table)
    assert found.value == 1
    assert found.by_record.tolist() == [2] * 4 + [3] * 4 + [1] * 4
    assert found.details["records_with_certain_value"] == 4
    assert score(AlphaKAnonymity(), table).value == 1


def test_the_three_diverse_table_of_the_paper():
    """Figure 3: classes of four with three illnesses each, of which one stands twice."""
    table = table_of([1, 3, 3, 1, 2, 2, 2, 2, 1, 1, 3, 3], ILLNESS)
    assert score(LDiversity(), table).value == 3
    assert score(PSensitivity(k=4), table).value == 3
    assert score(PSensitivity(k=4), table).details["feasible"] == "yes"
    assert score(PSensitivity(k=5), table).details["feasible"] == "no"
    assert score(AlphaKAnonymity(), table).value == 0.5
    entropy = score(LDiversity(kind="entropy"), table).value
    assert entropy == pytest.approx(2 * np.sqrt(2), rel=1e-14)  # shares ½, ¼, ¼: 1.5 bits
    assert score(LDiversity(kind="recursive", c=2), table).value == 2  # 2 < 2·(1 + 1), not 2 < 2·1
    assert score(LDiversity(kind="recursive", c=2.1), table).value == 3
    assert score(RecursiveDiversity(l=3), table).value == 2
    assert score(RecursiveDiversity(l=2), table).value == 1


# ------------------------------------------------------------------------------------------------ entropy


@pytest.mark.parametrize("m", range(1, 40))
@pytest.mark.parametrize("times", [1, 2, 3, 7])
def test_equal_shares_have_a_whole_number(m, times):
    found = score(LDiversity(kind="entropy"), of_counts((times,) * m))
    assert found.value == m
    assert Requirement.parse(f"l(kind=entropy) >= {m}").met_by(found)


def test_two_two_two_is_three():
    found = score(LDiversity(kind="entropy"), of_counts((2, 2, 2)))
    assert found.value == 3
    assert Requirement.parse("l-diversity(kind=entropy) >= 3").met_by(found)


def test_halves_and_eighths_are_four():
    """Unequal shares can make a whole number too: ½ and four times ⅛ are 2 bits."""
    assert score(LDiversity(kind="entropy"), of_counts((4, 1, 1, 1, 1))).value == 4


def test_nearly_three_is_not_three():
    found = score(LDiversity(kind="entropy"), of_counts((200, 200, 199)))
    assert 2.9999 < found.value < 3
    assert not Requirement.parse("l(kind=entropy) >= 3").met_by(found)


# ---------------------------------------------------------------------------------------------- recursive


def test_recursive_diversity_by_hand():
    """Counts 5, 3, 2: tails 10, 5, 2."""
    table = of_counts((2, 5, 3))
    for c, expected in ((0.5, 0), (0.51, 1), (1, 1), (1.01, 2), (2.5, 2), (2.51, 3), (100, 3)):
        assert score(LDiversity(kind="recursive", c=c), table).value == expected
    for least, expected in ((1, 0.5), (2, 1.0), (3, 2.5)):
        assert score(RecursiveDiversity(l=least), table).value == expected
    lacking = score(RecursiveDiversity(l=4), table)
    assert lacking.status is Status.NOT_ESTIMABLE
    assert "fewer than 4" in lacking.reason
    assert lacking.details["records_with_fewer_values"] == 10


def test_the_two_readings_agree():
    rng = np.random.default_rng(4)
    table = of_counts(*(tuple(rng.integers(1, 9, 4)) for _ in range(5)))
    for least in (1, 2, 3, 4):
        c = score(RecursiveDiversity(l=least), table).value
        assert score(LDiversity(kind="recursive", c=c * 1.0001), table).value >= least
        assert score(LDiversity(kind="recursive", c=c), table).value < least


# ------------------------------------------------------------------------------------------ missing, units, columns


def test_a_missing_sensitive_value():
    table = table_of([1, 1, 1, 1], ["a", "a", "b", None])
    assert score(LDiversity(), table).value == 3
    assert score(LDiversity(missing="worst"), table).value == 2
    assert score(AlphaKAnonymity(), table).value == 0.5
    assert score(AlphaKAnonymity(missing="worst"), table).value == 0.75
    nothing = table_of([1, 1], [None, None])
    assert score(LDiversity(missing="worst"), nothing).value == 1
    assert score(AlphaKAnonymity(missing="worst"), nothing).value == 1


def test_persons_are_counted_once():
    """One person with four records of one illness is no majority of three."""
    who = ([1, 1, 1, 1, 2, 3], Role.PERSON)
    table = table_of([1] * 6, ["a", "a", "a", "a", "b", "c"], who=who)
    assert score(AlphaKAnonymity(), table).value == pytest.approx(1 / 3)
    assert score(LDiversity(kind="entropy"), table).value == 3
    several = table_of([1] * 3, ["a", "b", "a"], who=([1, 1, 2], Role.PERSON))
    assert score(AlphaKAnonymity(), several).value == 1  # both have a


def joined(who, groups, values):
    """A release that still tells whose records belong together."""
    table = table_of(groups, values, who=(who, Role.PERSON))
    return table, {"release": Release.unchanged(table)}


def test_what_all_of_a_class_have_in_some_record_is_certain():
    """Both were in 1 and in 2, and both had the flu: nobody knows where."""
    table, more = joined([1, 1, 2, 2], [1, 2, 1, 2], ["flu", "cold", "cold", "flu"])
    assert score(LDiversity(), table).value == 2  # of records alone
    for kind in ("distinct", "entropy"):
        assert score(LDiversity(kind=kind), table, **more).value == 1


def test_of_records_that_leave_together_the_least_diverse_counts():
    """Of three people two had the flu; in group 1 there are two illnesses, in 2 three."""
    people = [1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 2], ["flu", "flu", "flu", "cold", "cold", "cough"]
    table, more = joined(*people)
    assert score(LDiversity(), table, **more).value == 2
    assert score(LDiversity(kind="entropy"), table, **more).value == 1.5
    apart, more = joined(*people[:2], ["flu", "gout", "flu", "cold", "flu", "cough"])
    assert score(LDiversity(), apart, **more).value == 1


@pytest.mark.parametrize(("kind", "c", "least"), [("distinct", 1, 1), ("entropy", 1, 1), ("recursive", 1, 0)])
def test_of_one_value_there_is_the_least_diversity(kind, c, least):
    measure = LDiversity(kind=kind, c=c)
    assert score(measure, table_of([1, 1], ["a", "a"])).value == measure.worst == least
    assert LDiversity(kind="recursive", c=1.5).worst == 1


def test_several_sensitive_columns():
    other = (["x", "x", "y", "z"], Role.SENSITIVE)
    table = table_of([1, 1, 2, 2], ["a", "b", "a", "b"], other=other)
    found = score(LDiversity(), table)
    assert found.value == 1
    assert found.by_column == {"s": 2, "other": 1}
    assert found.by_record.tolist() == [1, 1, 2, 2]
    assert score(LDiversity(sensitive=["s"]), table).value == 2
    assert score(LDiversity(sensitive=["s"]), table).by_column == {"s": 2}


def test_a_sensitive_column_is_no_key():
    """Even where a scenario says that everything is known: it could not be learnt."""
    table = table_of([1, 1, 2, 2], ["a", "b", "a", "b"])
    assert score(LDiversity(), table, scenario=Scenario(columns=("group", "s"))).value == 2
    only = score(LDiversity(), table, scenario=Scenario(columns=("s",)))
    assert only.status is Status.REFUSED
    assert "beside the sensitive columns" in only.reason


def test_refusals():
    table = table_of([1, 1], ["a", "b"]).select(["group"])
    assert "needs a sensitive column" in score(LDiversity(), table).reason
    sets = Table(
        pl.DataFrame({"group": [1], "s": [["a"]]}),
        Schema((Column("group", NAME, Role.KEY), Column("s", Kind.SET, Role.SENSITIVE))),
    )
    assert "`s` (set)" in score(LDiversity(), sets).reason
    assert score(LDiversity(), table_of([], [])).status is Status.NOT_ESTIMABLE


def test_numbers_can_be_sensitive():
    table = Table(
        pl.DataFrame({"group": [1, 1, 1], "s": [0.1 + 0.2, 0.3, float("nan")]}),
        Schema((Column("group", NAME, Role.KEY), Column("s", Kind.CONTINUOUS, Role.SENSITIVE))),
    )
    assert score(LDiversity(), table).value == 3


# --------------------------------------------------------------------------------------------- Grassberger


@pytest.mark.parametrize("counts", [(5, 1), (3, 3), (7, 2, 2, 1), (40, 30, 20, 9, 1), (1, 1), (6,), (1,)])
def test_grassbergers_estimator_by_its_recursion(counts):
    """G₁ = −γ − ln 2, G₂ = 2 − γ − ln 2, an odd one as the even one before it, and G₂ₙ₊₂ = G₂ₙ + 2/(2n + 1)."""
    start = -np.euler_gamma - np.log(2)
    g = [0.0, start, 2 + start]
    while len(g) <= max(counts):
        g.append(g[-1] if len(g) % 2 else g[-1] + 2 / (len(g) - 1))
    entropy = np.log(sum(counts)) - sum(n * g[n] for n in counts) / sum(counts)
    found = score(GrassbergerDiversity(), of_counts(counts)).value
    assert found == pytest.approx(np.clip(np.exp(entropy), 1, len(counts)), rel=1e-12)
    assert found >= score(LDiversity(kind="entropy"), of_counts(counts)).value - 1e-12


def test_grassbergers_estimator_has_less_bias_and_passes_no_gate():
    rng, shares = np.random.default_rng(2), np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    truth = np.exp(-(shares * np.log(shares)).sum())
    drawn = [tuple(n for n in rng.multinomial(25, shares) if n) for _ in range(200)]
    means = [
        np.mean([score(measure, of_counts(each)).value for each in drawn])
        for measure in (GrassbergerDiversity(), LDiversity(kind="entropy"))
    ]
    assert abs(means[0] - truth) < abs(means[1] - truth)
    with pytest.raises(PlanError, match="cannot be required"):
        Requirement.parse("grassberger-diversity >= 2")
