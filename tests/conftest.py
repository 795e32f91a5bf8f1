"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

import sfumato.methods
from effort import FULL

# The first call of a kernel compiles it, so no example has a deadline; derandomised, so that CI repeats.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("full" if FULL else "quick")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


#: The families of methods: tests about them share kernels.
FAMILIES = {path.stem for path in Path(sfumato.methods.__file__).parent.glob("[!_]*.py")}


def pytest_collection_modifyitems(items):
    """Mark what `make prove` runs: properties, in full, and what `make test` leaves out because it is slow.

    Tests of one file stay in one process, and those of all methods in one: only that one compiles their kernels.
    """
    for item in items:
        about = item.path.stem.removeprefix("test_")
        methods = about == "methods" or item.path.parent.name == "methods" or about in FAMILIES
        item.add_marker(pytest.mark.xdist_group("methods" if methods else str(item.path)))
        if item.get_closest_marker("slow") or hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker(pytest.mark.prove)


@pytest.fixture
def reference_data():
    """Give the path of a reference data file, skipping where the folder is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"the reference data set {name} is not here")
        return path

    return find
