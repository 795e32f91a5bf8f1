"""The last version: whatever differs in its interface is named in the changelog, and what it wrote is verified."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from interface import interface
from sfumato.core.run import Run
from sfumato.releasing.verify import verify_release

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "kept" / "interface.json"


def unreleased():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"\n## ", text)[1]


def is_named(name, changed, text):
    """Whether the changelog has the name, or that of something new or changed that it belongs to."""
    words = name.replace(".", " ").split()
    for length in range(len(words), 1, -1):
        owner = next((each for each in changed if each.replace(".", " ").split() == words[:length]), None)
        if owner and re.search(rf"(?<![\w-]){re.escape(words[length - 1])}(?![\w-])", text):
            return True
    return False


def test_what_changed_is_in_the_changelog():
    kept, now = json.loads(KEPT.read_text(encoding="utf-8")), interface()
    changed = sorted(name for name in {*kept, *now} if kept.get(name) != now.get(name))
    text = unreleased()
    unnamed = [name for name in changed if not is_named(name, changed, text)]
    assert not unnamed, f"name in CHANGELOG.md, under Unreleased: {unnamed}"


@pytest.fixture(
    params=sorted(KEPT.parent.glob("*.tar.xz")), ids=lambda path: path.name.removesuffix(".tar.xz")
)
def version(request, tmp_path):
    """What a version wrote: a plan with its release and trail, and the folder of a release."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / request.param.name.removesuffix(".tar.xz")


def test_what_a_version_wrote_is_verified(version):
    for place in (version / "release.private.json", version / "folder"):
        (report,) = verify_release(place, Run()).values()
        assert report.files["release.csv"] == "identical"
        assert set(report.files.values()) <= {"identical", "unchanged"}
