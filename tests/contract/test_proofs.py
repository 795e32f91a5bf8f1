"""Proofs name the test of each assumption: every one of them is there."""

import ast
import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
PAGES = sorted((HOME / "docs" / "proofs").glob("*.md"))


@pytest.mark.parametrize("page", [each for each in PAGES if each.stem != "index"], ids=lambda page: page.stem)
def test_the_tests_that_a_proof_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"`(tests/[\w/]+\.py)`", text)
    code = "".join((HOME / each).read_text(encoding="utf-8") for each in files)
    named = re.findall(r"`(test_\w+)`", text)
    assert named
    assert [each for each in named if f"def {each}(" not in code] == []


def test_each_proof_has_a_claim_a_proof_and_its_assumptions():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        parts = ("**Claim.**", "**Proof.**", "**Assumptions", "∎")
        assert page.stem == "index" or all(part in text for part in parts), page.name


def test_the_tests_of_what_we_got_wrong_are_there():
    text = (HOME / "docs" / "concepts" / "what-we-got-wrong.md").read_text(encoding="utf-8")
    rows = [
        line for line in text.split("## The questions")[0].splitlines() if re.match(r"\| (?!what|-)", line)
    ]
    named = [
        re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row) for row in rows if not row.startswith("|---")
    ]
    assert all(len(each) == 1 for each in named)
    wrong = [f"{file}::{name}" for ((file, name),) in named if not runs_always(HOME / file, name)]
    assert not wrong, "it is gone, or `make test` leaves it out"


def runs_always(file, name):
    """Whether a file has a test that is neither slow nor skipped, nor held to fail."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    marks = " ".join(ast.unparse(mark) for each in found for mark in each.decorator_list)
    whole = " ".join(ast.unparse(each) for each in tree.body if "pytestmark" in ast.unparse(each))
    return bool(found) and not re.search(r"mark\.(slow|skip|xfail)", f"{marks} {whole}")
