"""Words of the literature and of other tools lead home, by every door; the table says where that is."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import registry, synonyms
from sfumato.core.notation import same_word, words_in
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.errors import ParameterError, PlanError, UnknownNameError
from sfumato.recipes.plan import Plan
from sfumato.reproduce.survey import catalogue
from sfumato.risk.population import PopulationUniqueness

TABLE = tomllib.loads(Path(__file__).with_name("words_of_the_field.toml").read_text(encoding="utf-8"))
#: The survey's words, with what the catalogue says they are; what is left out is told by a sentence.
SURVEY = [
    (row.place, word, list(row.ours) or synonyms.sentence_of(word))
    for row in catalogue()
    for word in row.words
]
ROWS = [
    pytest.param(word, home, id=f"{group}-{word}")
    for group, word, home in [
        *SURVEY,
        *((group, word, home) for group, rows in TABLE.items() for word, home in rows.items()),
    ]
]
FIND = {"methods": registry.method, "measures": registry.measure}
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "coming-from.md"
#: As many meanings as an error names.
NAMED = 6


def test_the_table_is_as_long_as_it_should_be():
    sizes = {group: len(rows) for group, rows in TABLE.items()}
    assert len({same_word(word) for place, word, _ in SURVEY if place.startswith("Table")}) >= 63
    assert (sizes["sdcMicro"] >= 40, sizes["ARX"] >= 25, sizes["mu-ARGUS-and-Amnesia"] >= 10) == (True,) * 3


@pytest.mark.parametrize(("word", "home"), ROWS)
def test_a_word_leads_home_on_the_command_line(run, word, home):
    for verb in FIND:
        code, out, err = run(verb, word)
        if isinstance(home, str):
            assert (code, out) == (2, "")
            assert home in err
        elif code == 0 and not err and out.startswith(f"{word} — "):  # it is a name, maybe of a namesake
            assert word in {each.partition("(")[0] for each in home}
        elif len(home) == 1 and err:
            assert f"`{home[0]}` here" in err or err.startswith(f"note: `{word}` is a m")
            assert out.startswith(f"{home[0].partition('(')[0]} — ")
        else:
            listed = {line.split()[0] for line in out.splitlines() if line.startswith("  ")}
            assert set(home) <= listed, err


def hint_of(find, word):
    """What is said to who takes a word for a name; nothing if it is one."""
    try:
        find(word)
    except UnknownNameError as error:
        return error.hint
    return ""


@pytest.mark.parametrize(("word", "home"), ROWS)
def test_a_word_leads_home_in_an_error_of_python(word, home):
    found = [str(match) for match in registry.search(word)]
    hints = [hint_of(find, word) for find in FIND.values()]
    assert any(hints)
    for hint in filter(None, hints):
        told = [each for each in found if f"`{each}`" in hint]
        assert home in hint if isinstance(home, str) else set(home) <= set(found)
        assert len(told) == min(len(found), NAMED)
        assert "did you mean" not in hint


def test_what_was_asked_for_comes_first_and_the_other_kind_is_said():
    with pytest.raises(UnknownNameError) as caught:
        registry.method("kAnon")
    assert caught.value.hint == "here it is `local-suppression` or the measure `k-anonymity`"
    with pytest.raises(UnknownNameError) as caught:
        registry.measure("kAnon")
    assert caught.value.hint == "here it is `k-anonymity` or the method `local-suppression`"


def test_spelling_is_guessed_last():
    with pytest.raises(UnknownNameError, match="did you mean `mondrian`"):
        registry.method("mondrain")
    with pytest.raises(UnknownNameError) as caught:
        registry.measure("pitman")  # no name is spelt like it
    assert caught.value.hint == "here it is `population-uniqueness(model=pitman)`"


@pytest.mark.parametrize(
    ("read", "home"),
    [
        (lambda: Plan.from_dict({"steps": [{"method": "local-recoding"}]}), "mondrian"),
        (lambda: Requirement.parse("EntropyLDiversity >= 3"), "l-diversity(kind=entropy)"),
        (lambda: parse_measure("silhouette"), "cluster-structure(index=silhouette)"),
    ],
)
def test_plans_and_requirements_say_it_too(read, home):
    with pytest.raises((PlanError, UnknownNameError)) as caught:
        read()
    assert f"here it is `{home}`" in str(caught.value)


def test_another_word_for_a_choice_is_told_with_the_error():
    with pytest.raises(ParameterError, match="here it is `log-series`"):
        PopulationUniqueness(model="Logarithmic series")
    with pytest.raises(ParameterError, match="here it is `pitman`"):
        PopulationUniqueness(model="Pitman")


def test_what_a_word_means_can_be_explained_and_read_by_a_machine(run):
    code, out, err = run("explain", "silhouette")
    assert (code, out.split()[0]) == (0, "cluster-structure")
    assert "`silhouette` is the measure `cluster-structure(index=silhouette)` here" in err
    _, out, _ = run("methods", "local-recoding", "--json")
    assert (json.loads(out)["name"], "local recoding" in json.loads(out)["synonyms"]) == ("mondrian", True)
    _, out, _ = run("measures", "suda2", "--json")
    assert {each["name"] for each in json.loads(out)} == {"suda", "dis-suda"}
    assert run("protect", "addNoise", "builtin:patients?n=20", "--out", "x.csv")[0] == 2


def test_other_names_are_shown(run):
    assert "Also known as local recoding" in run("methods", "mondrian")[1]
    assert "`log-series` is also called logarithmic series." in " ".join(
        run("measures", "population-uniqueness")[1].split()
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("EntropyLDiversity", "entropy l-diversity"),
        ("(α, k)-Anonymity", "alpha_k_anonymity"),
        ("generalization", "Generalisation"),
        ("Höhne", "hohne"),
        ("suda2", "SUDA 2"),
        ("kᵐ-anonymity", "km-anonymity"),
    ],
)
def test_notations_of_one_word_are_equal(one, other):
    assert same_word(one) == same_word(other)


@pytest.mark.parametrize("word", ["", " ", "?", "…", "日本", "zz", "\x00"])
def test_a_word_of_no_letters_or_of_no_meaning_finds_nothing(word):
    assert registry.search(word) == []
    with pytest.raises(UnknownNameError):
        registry.method(word)


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x24FF), max_size=12))
@settings(max_examples=200)
def test_any_text_has_a_notation_and_that_is_its_own(text):
    assert all(word.isascii() and word.isalnum() for word in words_in(text))
    assert same_word(same_word(text)) == same_word(text) == same_word(text.lower())


def test_functions_that_the_guide_names_lead_home():
    rows = [
        line.split("|")[1] for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    named = {word for row in rows for word in re.findall(r"`([A-Za-z_.0-9]+)(?=[`(])", row)}
    assert len(named) > 20
    assert not [word for word in named if not registry.search(word) and not synonyms.sentence_of(word)]


def test_no_word_that_has_a_sentence_is_a_name_as_well():
    written = [same_word(word) for word, _ in synonyms.told_words()]
    assert len(written) == len(set(written))
    assert not [word for word, _ in synonyms.told_words() if registry.search(word)]


def test_a_choice_that_is_not_there_has_no_other_name():
    from sfumato.core.params import Parameters, param

    class Wrong(Parameters):
        kind: str = param("a", "A word.", synonyms={"b": "c"})

    with pytest.raises(TypeError, match="each choice"):
        Wrong.parameters()


def test_a_name_of_its_own_is_no_news(run):
    assert run("measures", "pram")[2] == "note: `pram` is a method; `sfumato methods` lists all\n"
    assert run("methods", "PRAM")[2] == "note: `PRAM` is the method `pram` here\n"
    assert run("methods", "pram")[2] == run("explain", "pram")[2] == ""


def test_a_word_that_is_a_choice_and_a_part_of_a_name_leads_to_both(run):
    out = run("measures", "household")[1]
    assert "sampling(by=household)" in out
    assert "household-risk" in out


@pytest.mark.parametrize("tool", ["sdcMicro", "arx", "mu-argus"])
def test_the_name_of_another_tool_leads_to_the_page_for_those_who_come_from_it(run, tool):
    code, _, err = run("methods", tool)
    assert (code, "coming-from.md" in err) == (2, True)
