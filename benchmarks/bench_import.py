"""What it costs to open the door: `import sfumato` and `sfumato --help` against `import polars`."""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 5


def wall(*code: str) -> float:
    """Best of some rounds: the least disturbed one."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    bare = wall("-c", "pass")
    polars = wall("-c", "import polars") - bare
    print(f"import polars: {polars:.2f} s")
    for name, code in {
        "import sfumato": ("-c", "import sfumato"),
        "all public names": ("-c", "import sfumato; [getattr(sfumato, name) for name in sfumato.__all__]"),
        "sfumato --help": ("-m", "sfumato", "--help"),
    }.items():
        taken = wall(*code) - bare
        print(f"  {name:18s} {taken:.2f} s = {taken / polars:.2f} × import polars")


if __name__ == "__main__":
    main()
