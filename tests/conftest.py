"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a kernel compiles it, so no example has a deadline; derandomised, so that CI repeats.
settings.register_profile("sfumato", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("sfumato")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def reference_data():
    """Give the path of a reference data file, skipping where the folder is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"the reference data set {name} is not here")
        return path

    return find
