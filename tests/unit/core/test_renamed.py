"""Words that were renamed: the old ones are still understood, with a note."""

import pytest

from sfumato.core import registry
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import RenamedWarning
from sfumato.methods.suppression import RecordSuppression


def test_a_measure_answers_to_its_former_name_with_a_note():
    with pytest.warns(RenamedWarning, match="`squares-lost` is called `sse-ratio` now"):
        assert registry.measure("squares-lost").name == "sse-ratio"


def test_a_role_answers_to_its_former_name_with_a_note():
    with pytest.warns(RenamedWarning, match="`unit` is called `person` now"):
        assert Column("who", Kind.NOMINAL, "unit").role is Role.PERSON
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON),))
    with pytest.warns(RenamedWarning, match="`@unit` is called `@person` now"):
        assert schema.resolve(["@unit"]) == ("who",)


def test_a_choice_answers_to_its_former_name_with_a_note():
    with pytest.warns(RenamedWarning, match="`star` is called `wildcard` now"):
        assert RecordSuppression(k=2, show="star") == RecordSuppression(k=2, show="wildcard")


def test_a_flag_that_stands_in_a_group_now_is_not_overlooked():
    with pytest.raises(TypeError, match="must declare `only_held` in a group"):
        type("Toy", (Measure,), {"only_held": True})
    with pytest.raises(TypeError, match="must declare `stochastic` in a group"):
        type("Toy", (Method,), {"stochastic": False})
