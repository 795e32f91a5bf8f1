"""Shared objects stay slim: a family may add one typed part to them, never loose fields."""

from dataclasses import fields

import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release

#: At most so many fields each.
MOST_FIELDS = 8


@pytest.mark.parametrize("shared", [Release, Evidence], ids=lambda shared: shared.__name__)
def test_a_shared_object_has_few_fields(shared):
    assert len(fields(shared)) <= MOST_FIELDS
