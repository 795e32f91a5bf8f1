"""What is installed is what was written: equal builds, a wheel that says what it is made of, no network needed."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("hatchling", reason="hatchling is in the extra `test`")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def bill(project):
    """What the hook of the build writes for this tree."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.bill_of_materials(ROOT, "9.9", project["dependencies"], project["optional-dependencies"])


def test_the_bill_names_every_vendored_script_by_its_hash(bill):
    kept = (ROOT / "tests" / "kept" / "vendored.sha256").read_text(encoding="utf-8")
    named = {
        (part["hashes"][0]["content"], Path(part["evidence"]["occurrences"][0]["location"]).name)
        for part in bill["components"]
        if "hashes" in part
    }
    assert named == set(map(tuple, map(str.split, kept.splitlines())))


def test_the_bill_names_every_library_that_may_be_installed(bill, project):
    def names(requirements):
        return {re.match(r"[\w.-]+", each)[0] for each in requirements} - {"sfumato"}

    scopes = {
        part["name"]: part["scope"] for part in bill["components"] if part["purl"].startswith("pkg:pypi")
    }
    needed = names(project["dependencies"])
    extras = {name: group for name, group in project["optional-dependencies"].items() if name != "docs"}
    optional = names(each for name, group in extras.items() if name != "test" for each in group) - needed
    assert scopes == dict.fromkeys(needed, "required") | dict.fromkeys(optional, "optional")


def test_the_bill_is_one_that_others_can_read(bill):
    """What CycloneDX 1.6 asks for; every name stands once, and the package depends on all of them."""
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    names = [part["bom-ref"] for part in bill["components"]]
    assert len(set(names)) == len(names)
    assert bill["dependencies"] == [{"ref": "pkg:pypi/sfumato@9.9", "dependsOn": sorted(names)}]


def build(tree, out):
    """A wheel and an sdist of this tree, by name, as whoever has no network builds them."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", out],
        cwd=tree,
        env=environment,
        check=True,
        capture_output=True,
    )
    return {path.suffix: path for path in out.iterdir()}


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("built"))


@pytest.mark.slow
def test_builds_are_equal_byte_for_byte(built, tmp_path):
    """Built again from the sdist, in another folder, at other times: the same wheel and the same sdist."""
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    for path in tree.rglob("*"):
        os.utime(path, (1.8e9, 1.8e9))
    again = build(tree, tmp_path / "again")
    assert {suffix: sha(path) for suffix, path in again.items()} == {
        suffix: sha(path) for suffix, path in built.items()
    }


@pytest.mark.slow
def test_the_wheel_has_what_the_package_is(built, project):
    """Every file of the package, its licences and the bill; none of the tests."""
    with zipfile.ZipFile(built[".whl"]) as wheel:
        inside = set(wheel.namelist())
        (sbom,) = (name for name in inside if ".dist-info/sboms/" in name)
        parts = json.loads(wheel.read(sbom))["components"]
        for part in (part for part in parts if "hashes" in part):
            data = wheel.read(part["evidence"]["occurrences"][0]["location"])
            assert hashlib.sha256(data).hexdigest() == part["hashes"][0]["content"]
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in inside if name.startswith("sfumato/")} == package
    assert {name.split("/")[0].split("-")[0] for name in inside} == {"sfumato"}


#: What somebody without extras and without a network tries first.
FIRST_RELEASE = """
import sys
from pathlib import Path
import sfumato
from sfumato.methods import Mondrian
Path("a.csv").write_text("age,city\\n31,Ulm\\n31,Ulm\\n32,Bonn\\n32,Bonn\\n")
release = sfumato.protect("a.csv", Mondrian(k=2), columns=["age", "city"])
assert not sys.modules.keys() & {"pandas", "pyarrow", "sklearn", "optuna"}
print(sfumato.__version__, len(release.data))
"""


def pythons():
    """The newest interpreter of each version from 3.11 on that this machine has."""
    found = {}
    for name in [f"python3.{minor}" for minor in range(11, 20)]:
        folders = [*Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin"), *map(Path, os.get_exec_path())]
        for folder in (each for each in folders if "shims" not in each.parts and (each / name).exists()):
            found.setdefault(name, folder / name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_it_is_installed_offline_from_a_folder_without_extras(built, tmp_path, which):
    """The oldest Python that pyproject.toml allows, and the newest that there is here."""
    there = pythons()
    name = (
        "python3.11"
        if which == "oldest"
        else max(there, key=lambda each: int(each.split(".")[1]), default="")
    )
    if name not in there:
        pytest.skip("that Python is not on this machine")
    subprocess.run([there[name], "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    wheels = tmp_path / "wheels"
    got = subprocess.run(
        [python, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", wheels, built[".whl"]],
        capture_output=True,
        check=False,
    )
    if got.returncode:
        pytest.skip(f"the libraries cannot be had here for {name}")
    shutil.copy(built[".whl"], wheels)
    offline = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
    offline |= {"PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path)}
    subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-compile",
            "--no-index",
            "--find-links",
            wheels,
            "sfumato",
        ],
        env=offline,
        check=True,
        capture_output=True,
    )
    said = subprocess.run(
        [python, "-W", "error", "-c", FIRST_RELEASE],
        cwd=tmp_path,
        env=offline,
        capture_output=True,
        check=True,
    )
    version = re.search(r"-([\d.]+)-", built[".whl"].name)[1]
    assert said.stdout.decode().split() == [version, "4"]
    subprocess.run(
        [tmp_path / "venv" / "bin" / "sfumato", "--help"], env=offline, check=True, capture_output=True
    )
