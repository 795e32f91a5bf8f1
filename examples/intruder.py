"""What somebody finds who knows birthdays, sexes, ZIP codes and admissions, by the csv module alone.

python examples/intruder.py ORIGINAL.csv FILE.csv
"""

import csv
import sys
from collections import Counter
from datetime import date
from pathlib import Path

KNOWN = ("birth_date", "sex", "zip", "admission_date")


def rows(path: str) -> list[dict[str, str]]:
    """The records of a file."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def day(text: str) -> date:
    """31.12.2024 as a day."""
    number, month, year = map(int, text.split("."))
    return date(year, month, number)


def may_be(shown: str, known: str) -> bool:
    """Whether what a cell shows may stand for what is known: itself, a range, a set, or nothing at all."""
    if shown.startswith("["):
        low, high = shown[1:-1].split(";")
        return day(low) <= day(known) <= day(high)
    if shown.startswith("{"):
        return known in shown[1:-1].split("|")
    return shown in {known, "*", ""}


def main() -> None:
    """Count who is found."""
    original, shown = rows(sys.argv[1]), rows(sys.argv[2])
    told = [name for name in KNOWN if name in shown[0]]
    sizes = Counter(tuple(row[name] for name in told) for row in shown)
    candidates = [
        sum(size for cells, size in sizes.items() if all(map(may_be, cells, [row[name] for name in told])))
        for row in original
    ]
    alone = sum(count == 1 for count in candidates)
    least = min((count for count in candidates if count > 1), default=0)
    print(f"  {alone} of {len(original)} stays are found; each of the others is among {least} or more")


main()
