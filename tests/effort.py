"""How hard the tests try: quick in `make test`, in full in `make prove`, which sets SFUMATO_EFFORT=full."""

import os

from hypothesis import settings

FULL = os.environ.get("SFUMATO_EFFORT") == "full"


def examples(count):
    """Settings of a property that is tried on ``count`` examples in full, and on a tenth of them in haste."""
    return settings(max_examples=count if FULL else max(count // 10, 4))
