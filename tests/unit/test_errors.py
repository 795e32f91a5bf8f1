"""Sentences of errors: names in ticks, counts with their plurals, one line or several."""

import pytest

from sfumato.errors import ParameterError, PlanError, UnknownNameError, count_noun, quoted


def test_names_in_a_sentence():
    assert quoted(["a", "b", 3]) == "`a`, `b`, `3`"
    assert quoted(("a", "b"), " or ") == "`a` or `b`"
    assert quoted([]) == ""


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (1_234_567, "record", "1,234,567 records"),
        (2, "category", "2 categories"),
        (2, "class", "2 classes"),
        (2, "key", "2 keys"),
        (2, "box", "2 boxes"),
    ],
)
def test_a_count_has_its_plural(count, noun, words):
    assert count_noun(count, noun) == words


def test_an_error_in_a_list_of_faults():
    assert ParameterError("a", hint="b").lines == ("a (b)",)
    assert (
        UnknownNameError.of("colour", "gren", ["green"]).line
        == "there is no colour `gren` (did you mean `green`?)"
    )
    assert PlanError.gather("the plan", ["x", "y"]).lines == ("x", "y")
    assert PlanError("z").lines == ("z",)
