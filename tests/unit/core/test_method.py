"""What a method declares of itself."""

import json
from typing import ClassVar, get_origin, get_type_hints

import pytest

from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.method import Gives, Method, Randomness, Takes
from toys import Mean


@pytest.mark.parametrize("cls", [Component, Method])
def test_tags_are_grouped(cls):
    """The next family of methods adds to a group, or one group: never loose flags."""
    hints = get_type_hints(cls)
    own = [name for name in cls.__annotations__ if get_origin(hints[name]) is ClassVar]
    assert own
    assert len(own) <= 8


def test_tags_are_taken_over_whole():
    class Hiding(Mean):
        name = "hiding"
        gives = Gives(suppressed=True)

    assert Hiding.randomness == Randomness(stochastic=False)
    assert (Hiding.takes, Hiding.gives.suppressed, Mean.gives) == (Takes(), True, Gives())


def test_a_loose_flag_is_no_longer_overlooked():
    with pytest.raises(TypeError, match="`replay`, `suppresses` in `takes`, `gives` or `randomness`"):

        class Old(Mean):
            name = "old"
            replay = False
            suppresses = True


def test_a_description_has_the_tags():
    described = json.loads(json.dumps(registry.method("private-marginals").describe()))
    assert described["gives"]["other_records"]
    assert not described["takes"]["generalised"]
    assert (described["stochastic"], described["replay"]) == (True, False)
    assert described["epsilon_parameter"] == "epsilon"
    assert described["analyst_note"]
