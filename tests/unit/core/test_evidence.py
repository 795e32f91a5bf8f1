"""Evidence: what the intruder knows of what was released."""

import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import UnknownNameError


def table(**columns):
    """One record; each column is given as its kind and role."""
    return Table(
        pl.DataFrame({name: [1.0] for name in columns}),
        Schema(tuple(Column(name, kind, role) for name, (kind, role) in columns.items())),
    )


NUMBER = Kind.CONTINUOUS
ORIGINAL = table(
    name=(Kind.NOMINAL, Role.IDENTIFIER),
    zip=(Kind.NOMINAL, Role.KEY),
    age=(NUMBER, Role.KEY),
    ill=(Kind.NOMINAL, Role.SENSITIVE),
    pay=(NUMBER, None),
    w=(NUMBER, Role.WEIGHT),
    house=(Kind.NOMINAL, Role.HOUSEHOLD),
    person=(Kind.NOMINAL, Role.PERSON),
)
NO_KEYS = table(
    b=(NUMBER, Role.OTHER), a=(NUMBER, None), w=(NUMBER, Role.WEIGHT), name=(Kind.NOMINAL, Role.IDENTIFIER)
)


def test_an_intruder_knows_the_keys_and_what_nobody_decided_on():
    assert Evidence(original=ORIGINAL).known_columns == ("age", "pay", "zip")


def test_without_keys_they_know_all_that_is_said_of_people():
    """The conservative reading: not an identifier, a weight or a household number, but all the rest."""
    assert Evidence(original=NO_KEYS).known_columns == ("a", "b")
    assert Evidence(original=ORIGINAL).shared_columns == ("age", "ill", "pay", "zip")


def test_a_scenario_says_what_they_know():
    scenario = Scenario(columns=("pay", "age"))
    assert Evidence(original=ORIGINAL, scenario=scenario).known_columns == ("age", "pay")
    with pytest.raises(UnknownNameError) as caught:
        _ = Evidence(original=ORIGINAL, scenario=Scenario(columns=("aeg",))).known_columns
    assert "`age`" in caught.value.hint


def test_what_was_not_released_cannot_be_used():
    kept = ORIGINAL.select(["pay", "age", "ill"])
    evidence = Release.of(kept).against(ORIGINAL, scenario=Scenario(columns=("zip", "age")))
    assert evidence.known_columns == ("age",)
    assert evidence.shared_columns == ("age", "ill", "pay")
    nothing = Release.of(ORIGINAL.select(["ill"])).against(ORIGINAL)
    assert nothing.known_columns == ()  # and not "everything, since no key is left"


def test_kinds_must_agree_in_both_tables():
    changed = ORIGINAL.with_values("age", pl.Series(["old"]), column=Column("age", Kind.ORDINAL, Role.KEY))
    evidence = Release.of(changed).against(ORIGINAL)
    assert evidence.of_kinds(("age", "pay"), frozenset({NUMBER})) == ("pay",)
    assert Evidence(original=ORIGINAL).of_kinds(("age", "pay"), frozenset({NUMBER})) == ("age", "pay")


def test_the_table_the_intruder_holds():
    other = ORIGINAL.select(["age"])
    assert Evidence(original=ORIGINAL).known_table is ORIGINAL
    held = Evidence(original=ORIGINAL, scenario=Scenario(external="register"), resources={"register": other})
    assert held.known_table is other
    with pytest.raises(UnknownNameError, match="there is no resource `register`"):
        _ = Evidence(original=ORIGINAL, scenario=Scenario(external="register")).known_table
