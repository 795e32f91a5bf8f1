"""Shared objects stay slim: a family may add one typed part to them, never loose fields."""

from dataclasses import fields

import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.releasing.decide import Decision

#: At most so many fields each.
MOST_FIELDS = 8


@pytest.mark.parametrize("shared", [Release, Run, Evidence, Decision], ids=lambda shared: shared.__name__)
def test_a_shared_object_has_few_fields(shared):
    assert len(fields(shared)) <= MOST_FIELDS


@pytest.mark.parametrize("shared", [Method, Measure], ids=lambda shared: shared.__name__)
def test_a_contract_has_few_tags_of_its_own(shared):
    assert 0 < len([name for name in shared.__annotations__ if not name.startswith("_")]) <= MOST_FIELDS
