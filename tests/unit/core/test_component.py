"""What methods and measures declare of themselves."""

import json
from typing import ClassVar, get_origin, get_type_hints

import pytest

from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.measure import ClassMeasure, Measure
from sfumato.core.method import Gives, Method, Randomness, Takes
from sfumato.core.requirement import parse_method
from toys import Mean


@pytest.mark.parametrize("cls", [Component, Measure, ClassMeasure, Method])
def test_tags_are_grouped(cls):
    """The next family of methods or measures adds to a group, or one group: never loose flags."""
    hints = get_type_hints(cls)
    flags = [name for name in cls.__annotations__ if not name.startswith("_")]
    own = [name for name in flags if get_origin(hints[name]) is ClassVar]
    assert own
    assert len(own) <= 8


def test_tags_are_taken_over_whole():
    class Hiding(Mean):
        name = "hiding"
        gives = Gives(suppressed=True)

    assert Hiding.randomness == Randomness(stochastic=False)
    assert (Hiding.takes, Hiding.gives.suppressed, Mean.gives) == (Takes(), True, Gives())


def test_a_loose_flag_is_no_longer_overlooked():
    with pytest.raises(TypeError, match="must declare `replay`, `suppresses` in a group"):

        class Old(Mean):
            name = "old"
            replay = False
            suppresses = True

    with pytest.raises(TypeError, match="must declare `only_held` in a group"):
        type("Old", (Measure,), {"only_held": True})


def test_a_description_has_the_tags():
    described = json.loads(json.dumps(registry.method("private-marginals").describe()))
    assert described["gives"]["other_records"]
    assert not described["takes"]["generalised"]
    assert (described["stochastic"], described["replay"]) == (True, False)
    assert described["epsilon_parameter"] == "epsilon"
    assert described["analyst_note"]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("top-bottom-coding", "Means do not hold."),
        ("top-bottom-coding(replace=mean)", "Means and totals hold."),
        ("multivariate-top-coding(replace=mean)", "Means hold; medians may move."),
        ("kim-noise(restore=exactly)", "hold exactly, up to rounding."),
        ("hohne-noise(restore=covariances)", "Correlations hold."),
        ("uniform-noise(per=record)", "Ratios of columns hold; covariances do not."),
        ("date-shifting(step=7)", "Weekdays hold."),
    ],
)
def test_the_note_to_analysts_follows_the_settings(setting, sentence):
    assert parse_method(setting).settings_note().endswith(sentence)


def test_without_a_setting_that_changes_it_the_note_to_analysts_is_that_of_the_method():
    method = registry.method("kim-noise")
    assert method().settings_note() == method.analyst_note
    extras = [(cls, setting) for cls in registry.methods().values() for setting, _ in cls.analyst_extras]
    for cls, setting in extras:
        name, _, value = setting.partition("=")
        assert f"{getattr(parse_method(f'{cls.name}({setting})'), name)}" == value
