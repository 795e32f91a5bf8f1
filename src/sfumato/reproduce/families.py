"""Table 3 of the survey (002): what it says of each family of methods, beside numbers of two releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.data.checks import violations
from sfumato.data.rules import Rule
from sfumato.data.scenario import Scenario
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.reproduce.bench import DATA_SEED, numbers_of

RECORDS = 2_000
#: The zip codes of Los Angeles, which `patients` gives to nobody else.
RULE = "patcnty <> 19 OR (patzip >= 90001 AND patzip <= 91899)"


@dataclass(frozen=True)
class Claim:
    """A statement on a family, and what measures it: of two releases (without a name: the original).

    The second release may have a measure of its own. ``rises`` says whether the statement means that its
    number is larger than that of the first.
    """

    family: str
    side: str
    text: str
    measure: str
    rises: bool
    releases: tuple[Any, ...]
    second_measure: str = ""
    known: tuple[str, ...] = ()


class MeasuredClaim(NamedTuple):
    """A statement, what was measured of which releases, the two numbers, and whether they agree with it."""

    family: str
    side: str
    text: str
    measured: str
    first: float
    second: float
    holds: bool


def measure_claim(claim: Claim, run: Run) -> MeasuredClaim:
    """Measure both releases of a statement."""
    names = [claim.measure, claim.second_measure or claim.measure]
    first, second = (
        _number(dict(spec), name, claim.known, run) for spec, name in zip(claim.releases, names, strict=True)
    )
    releases = [_title(dict(spec)) for spec in claim.releases]
    other = f"`{claim.second_measure}` " if claim.second_measure else ""
    what = f"`{claim.measure}` of {releases[0]}, then {other}of {releases[1]}"
    holds = second > first if claim.rises else second < first
    return MeasuredClaim(claim.family, claim.side, claim.text, what, first, second, holds)


@cache
def _discharges() -> Table:
    return patients(RECORDS, seed=DATA_SEED)


def _number(spec: dict[str, Any], measure: str, known: tuple[str, ...], run: Run) -> float:
    table, columns, name = _discharges(), tuple(spec.pop("columns", ("@key",))), spec.pop("name", "")
    recipe = Recipe((Step(registry.method(name).from_dict(spec), columns),) if name else ())
    if measure == "rules broken":
        made = recipe.apply(table, run).first  # methods keep rules that are declared
        ruled = replace(made, schema=replace(made.schema, rules=(Rule(RULE),)))
        return float(sum(each.records for each in violations(ruled)))
    wanted = [registry.measure(measure).from_dict({})]
    (number,) = numbers_of(recipe, table, wanted, run, scenario=Scenario(columns=known))
    assert number is not None  # a statement is measured by what has a number here
    return number


def _title(spec: dict[str, Any]) -> str:
    name: str = spec.pop("name", "the original")
    spec.pop("columns", None)
    return name + "".join(f", {key} = {value}" for key, value in spec.items())
