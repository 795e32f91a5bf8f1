"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

from effort import FULL

# The first call of a kernel compiles it, so no example has a deadline; derandomised, so that CI repeats.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("full" if FULL else "quick")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items):
    """Mark what `make prove` runs: properties, in full, and what `make test` leaves out because it is slow."""
    for item in items:
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
