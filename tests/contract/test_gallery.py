"""The gallery has every picture that a report can draw."""

import ast
import importlib.util
import re
from pathlib import Path

import sfumato

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REPORT = Path(sfumato.__file__).parent / "report"

#: Functions that make a part of a chart, and forms of the map that only the web page shows.
PARTS = {"value_axis", "movable_map", "settled_map"}


def gallery():
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "_ext" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chart_functions():
    """The public functions of the modules of charts that give one."""
    for path in REPORT.glob("*charts.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_chart = (
                isinstance(node, ast.FunctionDef) and ast.unparse(node.returns or ast.Constant(0)) == "Spec"
            )
            if is_chart and not node.name.startswith("_"):
                yield node.name


def test_every_chart_has_a_picture():
    assert set(chart_functions()) - PARTS == {function for function, _, _ in gallery().PICTURES.values()}


def test_every_picture_is_on_the_page():
    page = (DOCS / "guides" / "gallery.md").read_text(encoding="utf-8")
    drawn = {path.stem for path in (DOCS / "_static" / "gallery").glob("*.svg")}
    assert drawn == set(gallery().PICTURES) == set(re.findall(r"_static/gallery/([\w-]+)\.svg", page))
