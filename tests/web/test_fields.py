"""Every parameter of every method has a field, and what a field shows can be sent back unchanged."""

import pytest

from sfumato.core import registry
from sfumato.web.fields import fields_of, settings_from


@pytest.mark.parametrize("cls", registry.methods().values(), ids=lambda cls: cls.name)
def test_a_form_that_is_sent_back_changes_nothing(cls):
    thing = cls()
    fields = fields_of(thing)
    assert {each.name for each in fields} == {each.name for each in cls.parameters()}
    sent = {
        each.name: str(each.value).lower() if each.value in (True, False) else str(each.value)
        for each in fields
    }
    assert settings_from(cls, sent) == thing


@pytest.mark.parametrize("cls", registry.methods().values(), ids=lambda cls: cls.name)
def test_a_slider_moves_within_the_domain(cls):
    declared = {each.name: each for each in cls.parameters()}
    for each in fields_of(cls()):
        assert each.label
        assert each.help
        if each.slider:
            low, high, step = each.slider
            assert declared[each.name].accepts(low)
            assert declared[each.name].accepts(high)
            assert step > 0
