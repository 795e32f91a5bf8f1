"""What a method or measure says of how it was checked: the page or test is there and is about it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.vetting import Vetting, require_vetted, unvetted
from sfumato.errors import RefusedError

HOME = Path(__file__).parents[2]
COMPONENTS = [
    *(("method", cls) for cls in registry.methods().values()),
    *(("measure", cls) for cls in registry.measures().values()),
]
VETTED = [(room, cls) for room, cls in COMPONENTS if cls.vetting().level != "empirical"]


@cache
def source_of(path):
    return (HOME / path).read_text(encoding="utf-8")


def plain(text):
    """Without what tells a class from a function and from a name: `VMdav`, `v_mdav` and `v-mdav` are one."""
    return re.sub(r"[\W_]", "", text).lower()


@pytest.mark.parametrize(("room", "cls"), VETTED, ids=lambda each: getattr(each, "name", each))
def test_what_vouches_for_it_is_there_and_is_about_it(room, cls):
    level, by = cls.vetting()
    if level == "proved":
        assert re.fullmatch(r"proofs/[\w-]+\.md", by)
        assert f"{{{room}}}`{cls.name}" in source_of(f"docs/{by}")
        return
    file, _, test = by.partition("::")
    source = source_of(f"tests/{file}")
    functions = {each.name for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)}
    assert test.startswith("test_")
    assert test in functions
    assert plain(cls.name) in plain(source) or plain(cls.__name__) in plain(source)
    assert level == "published" or not file.startswith("reference/")


def test_every_proof_of_a_component_is_declared_by_it():
    """A page that names a method where it is used in the index is what the method says of itself."""
    index = source_of("docs/proofs/index.md")
    rows = [line for line in index.splitlines() if re.match(r"\| \[", line)]
    for row in rows:
        page = re.search(r"\((\S+\.md)\)", row)[1]
        for room, name in re.findall(r"\{(method|measure)\}`([\w-]+)", row.rpartition(" | ")[2]):
            assert getattr(registry, room)(name).vetting() == ("proved", f"proofs/{page}")


def test_it_is_not_inherited_and_must_say_by_what():
    checked = next(cls for room, cls in VETTED if room == "measure")
    assert type("Other", (checked,), {"name": "other"}).vetting() == ("empirical", "")
    for wrong in ("proved", "empirical: by nobody", "somehow: tests/test_it.py::test_it"):
        with pytest.raises(TypeError, match="must be proved, brute-forced or published"):
            type("Wrong", (Component,), {"name": "wrong", "vetted": wrong})
    assert Vetting.parse("published: reference/test_x.py::test_y").sentence == (
        "published: matched to a published value (`reference/test_x.py::test_y`)"
    )


def test_only_what_is_vetted_passes():
    classes = [cls for _, cls in COMPONENTS]
    empirical = unvetted(classes)
    assert 0 < len(empirical) < len(classes) / 3
    require_vetted("", classes)
    require_vetted("vetted", [cls for cls in classes if cls.name not in empirical])
    with pytest.raises(RefusedError, match=f"`{empirical[0]}` is checked by worked examples"):
        require_vetted("vetted", [cls for cls in classes if cls.name == empirical[0]])
