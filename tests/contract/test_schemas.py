"""Files by their schemas, and the shapes of every `--json`: a change fails until the changelog names it.

With ``SFUMATO_KEEP_SHAPES=1`` the shapes are written down as they are now, when a version is cut.
"""

import json
import os
import re
import tarfile
import tomllib
from contextlib import suppress
from dataclasses import MISSING
from pathlib import Path

import pytest

from schemas import faults, shape
from sfumato.cli import _exit_code
from sfumato.core import registry
from sfumato.errors import SfumatoError
from sfumato.recipes.plan import Plan
from sfumato.recipes.plan_schema import plan_schema
from sfumato.report.evidence_file import schema

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "kept" / "shapes.json"
PLAN = """requirements = ["k >= 3"]
rules = ["age >= 0"]
[data]
path = "people.csv"
control = 0.2
[columns]
age = { kind = "continuous", role = "key", integer = true, lower = 0 }
sex = { kind = "nominal", role = "key", labels = [["f", "woman"]] }
ill = { kind = "nominal", role = "sensitive" }
[[scenarios]]
name = "neighbour"
columns = ["age"]
requirements = ["k >= 2"]
[[steps]]
method = "mondrian"
parameters = { k = 3, also = ["l >= 2"] }
[output]
path = "out.csv"
"""
#: What has --json and is quick; each shows what it says on a small table.
VERBS = {
    "inspect": ("inspect", "people.csv"),
    "check": ("check", "plan.toml"),
    "risk": ("risk", "people.csv", "-m", "dbrl"),
    "utility": ("utility", "people.csv", "people.csv", "-m", "il1s"),
    "gate": ("gate", "plan.toml"),
    "run": ("run", "plan.toml"),
    "verify": ("verify", "out.csv"),
    "methods": ("methods", "mdav"),
    "measures": ("measures", "k"),
    "profiles": ("profiles", "public"),
    "explain": ("explain", "dbrl"),
    "hierarchy": ("hierarchy", "people.csv", "age"),
}


@pytest.fixture(scope="module")
def planned():
    return plan_schema()


def test_a_plan_fits_its_schema(planned):
    spec = tomllib.loads(PLAN)
    assert not faults(spec, planned, planned)
    assert not faults(Plan.from_dict(spec).to_dict(), planned, planned)
    assert not faults({"tables": {"a": spec}}, planned, planned)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k = 3", "k = 0"),
        ("k = 3", "kk = 3"),
        ('"mondrian"', '"mondrain"'),
        ('role = "key"', 'role = "keyy"'),
        ("control = 0.2", "control = 1.0"),
        ('path = "out.csv"', "shuffle = 3"),
        ("[output]", "[outputs]"),
        ('kind = "nominal", ', ""),
    ],
)
def test_what_reading_refuses_the_schema_refuses(planned, old, new):
    spec = tomllib.loads(PLAN.replace(old, new))
    assert faults(spec, planned, planned)
    with pytest.raises(Exception, match=r"\w"):
        Plan.from_dict(spec)


def test_every_method_fits_with_its_defaults(planned):
    fitted = 0
    for name, cls in registry.methods().items():
        if any(declared.default is MISSING for declared in cls.parameters()):
            continue
        with suppress(SfumatoError):  # some need a resource to be said
            spec = {"method": name, "parameters": cls().to_dict()}
            assert not faults({"steps": [spec]}, planned, planned), name
            fitted += 1
    assert fitted > 40


def test_the_kept_plan_fits(planned, tmp_path):
    with tarfile.open(KEPT.with_name("0.2.0.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    for path in tmp_path.rglob("*.toml"):
        assert not faults(tomllib.loads(path.read_text(encoding="utf-8")), planned, planned)


def shapes(folder, run):
    """What each verb says, as keys and types."""
    rows = "\n".join(f"{20 + i % 9},{'fm'[i % 2]},{'xyz'[i % 3]}" for i in range(60))
    (folder / "people.csv").write_text(f"age,sex,ill\n{rows}\n")
    (folder / "plan.toml").write_text(PLAN.replace("control = 0.2", "").replace(', also = ["l >= 2"]', ""))
    return {name: shape(json.loads(run(*words, "--json"))) for name, words in VERBS.items()}


def test_what_json_says_is_as_it_was(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = _exit_code([*words, "-q"] if words[0] not in {"methods", "measures", "explain"} else [*words])
        out, err = capfd.readouterr()
        assert code == 0, err
        return out

    now = shapes(tmp_path, run)
    if os.environ.get("SFUMATO_KEEP_SHAPES"):
        KEPT.write_text(json.dumps(now, indent=0) + "\n", encoding="utf-8")
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    text = re.split(r"\n## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[1]
    changed = [name for name in VERBS if kept.get(name) != now[name] and f"`{name} --json`" not in text]
    assert not changed, {name: (kept.get(name), now[name]) for name in changed}


@pytest.mark.parametrize("what", ["plan", "report", "evidence", "study"])
def test_a_schema_is_printed(what, capfd):
    assert _exit_code(["schema", what]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["$schema"].endswith("2020-12/schema")
    assert printed == (plan_schema() if what == "plan" else schema(what))
