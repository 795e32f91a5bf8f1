"""The tool behind `make mutants` works: what it plants is noticed, what it excuses is still there."""

import ast
import runpy
from pathlib import Path

import pytest

from mutants.changes import SOURCE, digest, mutants_of, owners
from mutants.equivalents import entries
from mutants.planting import load, planted
from mutants.reach import Reach, Trace, texts_of

UNIT = Path(__file__).parents[1] / "unit"

#: A change to what decides that something may leave, and a test that must fail by it.
PLANTED = [
    (
        "core/requirement.py", "Requirement._relies_on",
        "`score.confidence >= self.confidence` becomes `score.confidence < self.confidence`",
        "core/test_requirement.py", "test_the_far_end_of_an_estimate_counts",
    ),
    (
        "releasing/decide.py", "Decision.may_leave",
        "`not self.findings or bool(self.override)` becomes `not self.findings and bool(self.override)`",
        "releasing/test_decide.py", "test_what_is_found_blocks_unless_someone_takes_it_on",
    ),
    (
        "core/requirement.py", "_MOST_ALIKE", "`40` becomes `39`",
        "core/test_requirement.py", "test_how_many_must_be_alike",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def functions():
    return load(["core/requirement.py", "releasing/decide.py"])


@pytest.mark.parametrize("case", PLANTED, ids=lambda each: each[1])
def test_a_mutant_is_noticed_and_gone_afterwards(functions, case):
    file, owner, change, tests, name = case
    test = runpy.run_path(str(UNIT / tests))[name]
    arguments = ("k >= 1099511627775", 2**40 - 1) if "alike" in name else ()
    (mutant,) = [each for each in mutants_of(file) if (each.owner, each.change) == (owner, change)]
    test(*arguments)
    with planted(mutant, functions), pytest.raises((AssertionError, pytest.fail.Exception)):
        test(*arguments)
    test(*arguments)


def test_a_change_that_takes_away_what_a_class_inherits_can_be_planted():
    from sfumato.risk.log_linear import LogLinearRisk

    file = "risk/log_linear.py"
    changed = [each for each in mutants_of(file) if each.owner == "LogLinearRisk.sentence"]
    (mutant,) = [
        each for each in changed if "super()" in each.change and each.change.endswith("`return None`")
    ]
    with planted(mutant, load([file])):
        assert LogLinearRisk().sentence(0.5) is None
    assert "0.5" in LogLinearRisk().sentence(0.5)


def test_what_reaches_a_line_is_asked(functions):
    from sfumato.core.requirement import parse_settings
    from sfumato.methods.microaggregation import Mdav

    file = "core/requirement.py"
    with Trace([file]) as trace:
        parse_settings("k=5", Mdav)
    texts = texts_of([file])
    reached = {name: [texts[name], sorted(lines)] for name, lines in trace.lines.items()}
    reach = Reach({"it": {"seconds": 1.0, "reached": reached}}, [file])
    asked = {
        each.change: bool(reach.tests_of(each)) for each in mutants_of(file) if each.owner == "parse_settings"
    }
    assert asked["`key in settings` becomes `key not in settings`"]
    assert not asked["`raise PlanError(f'`{key}` of {owner.name} is given twice')` becomes `pass`"]
    assert not any(reach.tests_of(each) for each in mutants_of(file) if each.owner == "parse_method")


def test_texts_annotations_and_docstrings_are_left_alone():
    assert not [
        each
        for each in mutants_of("core/requirement.py")
        if "PlanError" in each.change and "pass" not in each.change
    ]
    one, same, other = (
        ast.parse(f'def f(x: int = 3) -> int:\n    """{words}."""\n    return x + {step}').body[0]
        for words, step in (("One", 1), ("Other words", 1), ("One", 2))
    )
    assert digest(one) == digest(same) != digest(other)


@pytest.mark.parametrize("entry", entries(), ids=lambda each: each["function"])
def test_what_is_called_equivalent_is_still_there(entry):
    """A function that was changed is looked at again: its changes may be seen now."""
    file, _, owner = entry["function"].partition("::")
    found = dict(owners(ast.parse((SOURCE / file).read_text(encoding="utf-8"))))
    assert owner in found, "the function is gone: remove the entry"
    assert digest(found[owner]) == entry["hash"], "the function has changed: try its mutants again"
    assert entry["change"] in {each.change for each in mutants_of(file) if each.owner == owner}
    assert len(entry["reason"]) > 20
