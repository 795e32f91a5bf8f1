"""Write a small file as a clinic has it: several stays, days as 31.12.2024, costs as 1.234,56, free text.

python examples/clinic.py FILE.csv
"""

import random
import sys
from datetime import date, timedelta
from pathlib import Path

PATIENTS = 500
FIRST = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Lena", "Mats")
LAST = (
    "Adler",
    "Busch",
    "Conrad",
    "Dorn",
    "Engel",
    "Frei",
    "Graf",
    "Horn",
    "Keller",
    "Lang",
    "Moser",
    "Vogt",
)
TOWNS = ("01067", "01069", "01097", "01099", "01127", "01129")
ILLNESSES = {"I10": 2400, "E11": 3100, "J45": 1800, "F32": 5200, "M54": 1500, "K35": 4100}
REMARKS = ("", "", "", "call +49 351 4969{number:04}", "back to Dr. {name}", "see letter of Dr. {name}")


def stays(number: int, chance: random.Random) -> list[list[str]]:
    """All stays of one patient."""
    name = f"{chance.choice(FIRST)} {chance.choice(LAST)}"
    born = date(1935, 1, 1) + timedelta(days=chance.randrange(25_000))
    sex, town = chance.choice("fm"), chance.choice(TOWNS)
    illness = chance.choice(tuple(ILLNESSES))
    found = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        came = date(2024, 1, 1) + timedelta(days=chance.randrange(365))
        days = 1 + chance.randrange(12)
        cost = ILLNESSES[illness] * chance.uniform(0.6, 1.6) + 410 * days
        remark = chance.choice(REMARKS).format(number=chance.randrange(10_000), name=chance.choice(LAST))
        euros = f"{cost:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
        dates = [f"{each:%d.%m.%Y}" for each in (born, came)]
        found.append(
            [f"P{10_000 + number}", name, dates[0], sex, town, dates[1], str(days), illness, euros, remark]
        )
    return found


def main() -> None:
    """Write the file."""
    chance = random.Random(7)
    head = [
        "patient",
        "name",
        "birth_date",
        "sex",
        "zip",
        "admission_date",
        "length_of_stay",
        "diagnosis",
        "cost",
        "remarks",
    ]
    rows = [row for number in range(PATIENTS) for row in stays(number, chance)]
    text = "\n".join(";".join(row) for row in [head, *rows])
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")


main()
