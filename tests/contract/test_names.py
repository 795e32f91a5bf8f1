"""Names of the code: one idea per word, and words that readers of the literature know."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import sfumato

ROOT = Path(sfumato.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

#: Modules whose name is a term of the field.
TERMS = {"generalised", "delimited"}

#: Forms of verbs that do not end in -ed.
PARTICIPLES = frozenset(
    [
        "said",
        "told",
        "kept",
        "held",
        "found",
        "made",
        "given",
        "taken",
        "drawn",
        "shown",
        "seen",
        "met",
        "lost",
        "left",
        "built",
        "brought",
        "taught",
        "thought",
        "sent",
        "spent",
        "meant",
        "learnt",
        "felt",
        "dealt",
        "done",
        "gone",
        "grown",
        "thrown",
        "chosen",
        "broken",
        "hidden",
        "laid",
        "paid",
        "understood",
        "bound",
        "written",
        "begun",
        "known",
    ]
)

#: Words that end in -ed and are no participles.
NOUNS = {"seed", "need", "speed", "feed"}

#: What these hold has a name: a payload, the content of a report, what is known and what is released, why not …
BANNED = frozenset(
    [
        "said",
        "told",
        "mine",
        "theirs",
        "_said",
        "_told",
        "_kept",
        "_counted",
        "_listed",
        "_named",
        "_alike",
        "_apart",
        "_alone",
        "_beside",
        "_between",
        "_shown",
        "_drawn",
        "_measured",
        "_numbered",
        "_judged",
        "_merged",
        "_found",
        "untrue",
        "unfit",
        "_unfit",
        "inexact",
        "untraced",
        "MANY",
        "FEW",
        "FEWEST",
        "MOST",
        "FAR",
        "SURE",
        "SLACK",
        "ROUNDING",
        "ENOUGH",
        "CANNOT",
        "NUDGED",
        "AS_IT_IS",
        "_MANY",
        "_FEW",
        "_FEWEST",
        "_MOST",
        "_FAR",
        "_SURE",
        "_SLACK",
        "_ROUNDING",
        "_ENOUGH",
        "_CANNOT",
        "_SMALL",
        "_SHORT",
        "_LONG",
        "_WIDE",
        "_NEAR",
        "Found",
        "Told",
        "Boxes",
        "Tree",
        "Outcome",
        "Part",
        "Reading",
        "Spread",
        "Crowd",
        "Verdict",
        "Budget",
        "Case",
        "Trial",
        "Stake",
        "Watch",
        "Workbench",
        "Belongings",
        "Rivals",
        "Allowance",
        "Leaning",
        "Confided",
        "Described",
        "Sequel",
    ]
)


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def is_participle(word):
    return word in PARTICIPLES or (word.endswith("ed") and "_" not in word and word not in NOUNS)


def names_bound_in(path):
    """Names that a file defines: classes, functions, parameters, variables and fields."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def test_a_class_name_has_one_meaning():
    """Private ones count too, with or without an underscore: an error or a profile shows the name alone."""
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_is_named_by_a_participle():
    words = {
        path: path.stem.strip("_").split("_")[-1]
        for path in MODULES
        if path.stem not in ("__init__", "__main__")
    }
    words |= {path.parent: path.parent.name for path in MODULES if path.stem == "__init__"}
    found = [path for path, word in words.items() if is_participle(word) and word not in TERMS]
    assert [str(path.relative_to(ROOT)) for path in found] == []


def test_no_private_function_is_a_bare_participle():
    """``_counted`` was ten functions: a function is a verb with its object, or the noun that it returns."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("_")
        and is_participle(node.name.strip("_"))
    ]
    assert found == []


@pytest.mark.parametrize("room", sorted({path.relative_to(ROOT).parts[0] for path in MODULES}))
def test_no_banned_name(room):
    paths = [path for path in MODULES if path.relative_to(ROOT).parts[0] == room]
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in paths
        for name, line in names_bound_in(path)
        if name in BANNED
    ]
    assert found == []


def test_a_reason_says_what_it_is_the_reason_of():
    """A function that gives a reason or None, and is called ``un…`` or ``not_…``, reads as a statement: ``why_…``."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
        and re.match(r"_?(un|in|not_)[a-z]+(ed|fit|true|exact|seen|known|comparable)$", node.name)
        and node.returns is not None
        and ast.unparse(node.returns) in ("str | None", "str")
    ]
    assert found == []
