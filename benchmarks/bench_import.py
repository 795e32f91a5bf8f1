"""What it costs to open the door: `import sfumato` and `sfumato --help` against `import polars`."""

from __future__ import annotations

import resource
import subprocess
import sys

import ratios

ROUNDS, SMALL = 5, ""


def cpu(*code: str) -> float:
    """CPU seconds of a process, the least of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def main() -> None:
    bare = cpu("-c", "pass")
    polars = cpu("-c", "import polars") - bare
    for name, code in {
        "import sfumato": ("-c", "import sfumato"),
        "all public names": ("-c", "import sfumato; [getattr(sfumato, name) for name in sfumato.__all__]"),
        "sfumato --help": ("-m", "sfumato", "--help"),
    }.items():
        ratios.beside(name, 0, cpu(*code) - bare, "polars: import", polars)


if __name__ == "__main__":
    main()
