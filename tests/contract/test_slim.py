"""Shared objects stay slim: a family may add one typed part to them, never loose fields."""

import hashlib
from dataclasses import fields
from pathlib import Path

import pytest

import sfumato
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


def test_vendored_scripts_are_those_that_were_taken():
    """Whoever takes a newer one writes its hash down, in tests/kept/vendored.sha256."""
    folder = Path(sfumato.__file__).parent / "report" / "static"
    kept = (Path(__file__).parents[1] / "kept" / "vendored.sha256").read_text(encoding="utf-8")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.min.js")}
    assert found == {name: sha for sha, name in map(str.split, kept.splitlines())}
