"""The script that comes with a release counts what sfumato counts, from the file alone."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.text_forms import parse_intervals, parse_nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.io import Staging, stage
from sfumato.io.formats import FileDialect
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.releasing.claims import _column, claims_of
from sfumato.releasing.outcome import Judgement, PlanOutcome, TableOutcome
from sfumato.risk.exact_match import ExactMatch

SCRIPT = runpy.run_path(str(Path(sfumato.__file__).parent / "releasing" / "static" / "check_release.py"))
RUN = Run(seed=1)
MEASURES = [
    f"{name}missing={missing})"
    for name in (
        "k-anonymity(",
        "l-diversity(",
        "l-diversity(kind=entropy, ",
        "l-diversity(kind=recursive, c=1.5, ",
        "p-sensitivity(",
        "alpha-k-anonymity(",
        "t-closeness(",
        "t-closeness(distance=kind, ",
    )
    for missing in ("category", "any", "worst")
]
WORDS = [
    "f",
    "m",
    "",
    "*",
    "a,b",
    'say "x"',
    "two\nlines",
    "c\rr",
    " pad ",
    "ä",
    "NA",
    "[1;2]",
    "{a|b}",
    ";",
    "'=1",
]
KINDS = {
    "sex": Column("sex", Kind.NOMINAL, Role.KEY, missing=("NA",)),
    "age": Column("age", Kind.CONTINUOUS, Role.KEY),
    "span": Column("span", Kind.CONTINUOUS, Role.KEY),
    "town": Column("town", Kind.NOMINAL, Role.KEY),
    "illness": Column("illness", Kind.NOMINAL, Role.SENSITIVE),
    "income": Column("income", Kind.CONTINUOUS, Role.SENSITIVE, missing=(-9,)),
    "grade": Column("grade", Kind.ORDINAL, Role.SENSITIVE, order=("low", "mid", "high")),
    "day": Column("day", Kind.DATE, Role.SENSITIVE, form="dd.mm.yyyy"),
    "who": Column("who", Kind.NOMINAL, Role.PERSON),
}


def table_of(rng):
    """Few records of few values, so that some are alike: texts, numbers, ranges, groups, dates and holes."""
    n = rng.integers(1, 10)

    def cells(values, dtype=pl.String):
        return pl.Series([[*values, None][at] for at in rng.integers(0, len(values) + 1, n)], dtype=dtype)

    lows = cells([10, 20], pl.Int64)
    towns, groups = parse_nodes(cells(["Bonn", "{Bonn|Kiel}", "*", "Ulm", "Kiel"]).alias("town"))
    series = {
        "sex": cells(rng.choice(WORDS, 3)),
        "age": cells([0.0, -0.0, 1.5, float("nan")], pl.Float64),
        "span": intervals(lows, lows + 10),
        "town": towns,
        "illness": cells(["E11", "F32", ""]),
        "income": cells([-9, 100, 2000, 3], pl.Int64),
        "grade": cells(["low", "mid", "high"]),
        "day": cells(["2020-01-31", "2019-12-01", "2020-02-01"]).str.to_date(),
        "who": pl.Series(rng.choice(list("pqrst"), n)),
    }
    keys = rng.choice(["sex", "age", "span", "town"], rng.integers(1, 3), replace=False)
    secret = rng.choice(["illness", "income", "grade", "day"], rng.integers(1, 3), replace=False)
    names = [*keys, *secret, *(["who"] if rng.random() < 0.5 else [])]
    frame = pl.DataFrame({name: series[name] for name in names})
    return Table(
        frame, Schema(tuple(KINDS[name] for name in names)), nodes={"town": groups} if "town" in names else {}
    )


def read_again(table, folder, dialect, measure, *, drop=()):
    """What the script finds, the claim it reads, and what sfumato finds of the same release."""
    released = table.select([name for name in table.names if name not in drop])
    release = Release.of(released, source_rows=np.arange(len(table)))
    requirement = (
        Requirement(measure, ">=", 2) if measure.better == "high" else Requirement(measure, "<=", 0.5)
    )
    score = measure.measure(Evidence(table, release), RUN)
    plan = Plan(
        None, schema=table.schema, output=Output(path=str(folder / "out.csv")), requirements=(requirement,)
    )
    judged = replace(score, value=2.0 if measure.better == "high" else 0.0)
    part = TableOutcome(plan, table, release, (Judgement(requirement, "default", judged),), ())
    found = claims_of(PlanOutcome({"": part}, RUN.randomness), plan)
    with Staging(overwrite=True) as staging:
        stage(released, folder / "out.csv", staging, like=dialect)
    (spec,), (claim,) = found.tables, found.claims
    said = {"delimiter": dialect.delimiter or ",", "encoding": dialect.encoding or "utf-8"}
    spec = {**spec, **said, "quotes": dialect.quotes or "as needed"}
    return claim, spec, SCRIPT["read_table"](folder, spec), score


DIALECTS = [
    FileDialect(),
    FileDialect(delimiter=";", decimal=","),
    FileDialect(encoding="utf-8-sig", quotes="text"),
    FileDialect(encoding="cp1252", delimiter="|"),
    FileDialect(delimiter=";", quotes="text"),
    FileDialect(delimiter="\t", quotes="text", decimal=","),
]


@examples(2000)
@given(st.integers(0, 2**32))
def test_the_script_counts_what_sfumato_counts(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    folder, table = tmp_path_factory.getbasetemp(), table_of(rng)
    measure, dialect = parse_measure(str(rng.choice(MEASURES))), DIALECTS[rng.integers(len(DIALECTS))]
    drop = ["who"] if rng.random() < 0.3 else []
    claim, spec, cells, score = read_again(table, folder, dialect, measure, drop=drop)
    try:
        sentence = SCRIPT["check_claim"](claim, spec, cells)[1]
    except SCRIPT["Unchecked"]:
        assert claim["counted"] == "persons"  # else everything that is drawn here can be counted
        return
    assert float(sentence.removeprefix("it is ")) == pytest.approx(score.value, rel=1e-5, abs=1e-9)


OWNER = runpy.run_path(str(Path(sfumato.__file__).parent / "releasing" / "static" / "check_original.py"))


def cover(rng, value, values):
    """A text form that covers a value, or hides it, or is another's."""
    if value is None or rng.random() < 0.2:
        return None if rng.random() < 0.5 else "*"
    other = values[rng.integers(len(values))]
    low, high = sorted((value, other))
    choices = [value, value, other, f"{{{low}|{high}}}" if low != high else value]
    if isinstance(value, int):
        choices = [value, f"[{low};{high}]", f"[{low};]", f"[;{high}]"]
    return str(choices[rng.integers(len(choices))])


@examples(1000)
@given(st.integers(0, 2**32))
def test_the_owner_s_script_finds_the_exact_matches_that_sfumato_finds(tmp_path_factory, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.getbasetemp()
    n, values = rng.integers(1, 9), {"age": [1, 2, 3, 4], "town": ["Bonn", "Kiel", "Ulm"]}
    cells = {
        name: [[*own, None][at] for at in rng.integers(0, len(own) + 1, n)] for name, own in values.items()
    }
    columns = (Column("age", Kind.CONTINUOUS, Role.KEY), Column("town", Kind.NOMINAL, Role.KEY), KINDS["who"])
    who = rng.choice(list("pqrst"), n).tolist() if rng.random() < 0.5 else [str(at) for at in range(n)]
    original = Table(
        pl.DataFrame({**cells, "who": who}, schema_overrides={"age": pl.Int64, "town": pl.String}),
        Schema(columns),
    )
    texts = {
        name: pl.Series(name, [cover(rng, each, values[name]) for each in own], dtype=pl.String)
        for name, own in cells.items()
    }
    towns, nodes = parse_nodes(texts["town"], values["town"])
    frame = pl.DataFrame({"age": parse_intervals(texts["age"], pl.Int64), "town": towns})
    released = Table(frame, Schema(columns[:2]), nodes={"town": nodes})
    with Staging(overwrite=True) as staging:
        stage(released, folder / "out.csv", staging)
    spec = {
        "file": "out.csv", "records": n, "encoding": "utf-8", "quotes": "", "delimiter": ",",
        "columns": [_column(released, released, each) for each in released.schema.columns],
    }  # fmt: skip
    known = {name: [None if each is None else str(each) for each in own] for name, own in cells.items()}
    kinds = {"age": {"kind": "continuous"}, "town": {"kind": "nominal"}}
    shown = SCRIPT["read_table"](folder, spec)
    found = OWNER["find_matches"](SCRIPT, kinds, spec, shown, known, list(range(n)), who, {})
    score = ExactMatch().measure(Evidence(original, Release.of(released, source_rows=np.arange(n))), RUN)
    assert len(found) / len(set(who)) == pytest.approx(score.value)
