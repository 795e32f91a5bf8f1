"""What a release folder costs: verifying it against making it, and writing it against its tables alone.

Run ``python benchmarks/bench_release.py``. One process; CPU seconds, as ratios of one run:

- ``sfumato verify FOLDER`` makes the tables again, judges them and hashes every file: at most 1.2 times
  `carry_out` and writing, which is what ``sfumato run`` does;
- the folder with its texts, against `write_release` of the same outcome.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import ratios

import sfumato
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.verify import verify_release

RECORDS = 100_000
WANTED, SMALL = 1.2, "3000"
PLAN = """
requirements = ["k >= 5"]
data.path = "people.csv"
steps = [
  { method = "mondrian", columns = ["age_yrs", "sex", "race", "patzip"], parameters = { k = 5 } },
  { method = "correlated-noise", columns = ["charge"] },
]
output.path = "out.csv"
"""


def spent(work):
    """CPU seconds of some work, which writes and can be done once, and what it gives."""
    return ratios.least(work, times=1)


def plan_in(home: Path, records: int) -> Plan:
    """A plan for patients, with what was guessed of their columns; only four of them are keys."""
    people = sfumato.read(f"builtin:patients?n={records}")
    people.frame.write_csv(home / "people.csv")
    keys = ("age_yrs", "sex", "race", "patzip")
    columns = [
        replace(
            column,
            role=sfumato.data.schema.Role.KEY if column.name in keys else sfumato.data.schema.Role.OTHER,
        )
        for column in people.schema.columns
    ]
    (home / "plan.toml").write_text(PLAN)
    return replace(Plan.read(home / "plan.toml"), schema=people.schema.replace(*columns))


def main(records: int = RECORDS) -> None:
    """Print the two ratios."""
    with TemporaryDirectory() as place:
        home = Path(place)
        plan = plan_in(home, records)
        (home / "plan.toml").write_text(plan.to_toml())
        run = Run(seed=1)

        def decided(outcome):
            return decide(outcome, subject="it", override="a benchmark")

        def ran():
            outcome = carry_out(plan, run)
            tables, _ = spent(lambda: write_release(decided(outcome), Destination(plan)))
            return tables

        ran()  # what is compiled and read once
        for path in home.glob("*out*"):
            path.unlink()
        whole, tables = spent(ran)
        made = sfumato.release(home / "plan.toml", seed=1, override="a benchmark")
        folder, _ = spent(lambda: made.write(home / "folder"))
        again, found = spent(lambda: verify_release(home / "folder", Run()))
        (told,) = found.values()
        assert told.files["out.csv"] == "identical", told.files
        ratios.beside("verify", records, again, "making and writing it", whole, at_most=WANTED)
        ratios.beside("writing the folder", records, folder, "writing its tables and trail", tables)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
