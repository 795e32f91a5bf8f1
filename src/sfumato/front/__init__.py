"""The front door's verbs: inspect, release; read, protect, assess, compare, tune — for scripts and notebooks.

They take what people have in hand (a path, a pandas, polars or Arrow table, or a ``Table``) and give back
the same sort of table they were given.
"""

from sfumato.front.inputs import NativeRelease, in_native, make_run
from sfumato.front.release_search import make_release, release
from sfumato.front.verbs import Scores, assess, compare, protect, tune
from sfumato.releasing.load import inspect, read

__all__ = [
    "NativeRelease", "Scores", "assess", "compare", "in_native", "inspect", "make_release", "make_run",
    "protect", "read", "release", "tune",
]  # fmt: skip
