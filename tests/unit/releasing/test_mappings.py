"""Mapping tables: what each value of a recoded column became, counted, and never with what leaves."""

import io
from collections import Counter

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core.requirement import parse_method
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.io import write
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.checksums import contents
from sfumato.releasing.mappings import mapping_files, mappings_of
from sfumato.releasing.verify import verify_release

KINDS = {"age": Kind.CONTINUOUS, "wage": Kind.CONTINUOUS, "town": Kind.NOMINAL}


def people(n=200):
    rng = np.random.default_rng(4)
    ages = [None if age % 20 == 0 else int(age) for age in rng.integers(18, 90, n)]
    wage = rng.lognormal(8, 1, n).round(2)  # nobody has the wage of another
    frame = pl.DataFrame({"age": ages, "wage": wage, "town": rng.choice(list("abcdefgh"), n)})
    return Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in KINDS.items())))


def part_of(table, *steps):
    recipe = Recipe(tuple(Step(parse_method(method), columns) for method, columns in steps))
    plan = Plan(Source("in.csv"), schema=table.schema, recipe=recipe, output=Output(path="out.csv"))
    return carry_out(plan, Run(seed=7), table=table).parts[""]


CASES = {
    "top coding": ([("top-bottom-coding", ("wage",))], {"wage"}),
    "equal parts": ([("naive-coarsening", ("age", "wage"))], {"age", "wage"}),
    "global recoding": ([("global-recoding(k=3)", ("age",))], {"age"}),
    "of categories": ([("global-recoding(k=25)", ("town",))], {"town"}),
    "a sample": ([("sampling(share=50)", ()), ("top-bottom-coding", ("wage",))], {"wage"}),
    "groups of records": ([("mondrian(k=5)", ("age", "wage", "town"))], set()),
    "means of records": ([("mdav(k=3)", ("age", "wage"))], set()),
    "noise": ([("uncorrelated-noise", ("wage",))], set()),
    "noise after a code": ([("top-bottom-coding", ("wage",)), ("uncorrelated-noise", ("wage",))], set()),
    "swapping": ([("rank-swapping", ("wage",))], set()),
    "synthesis": ([("synthesis", ("age", "wage", "town"))], set()),
    "apart": ([("anatomy(l=2)", ("age",))], set()),
    "nothing": ([], set()),
}


@pytest.mark.parametrize("case", CASES)
def test_only_columns_whose_values_became_one_label_are_mapped(case):
    steps, columns = CASES[case]
    table = people()
    if case == "apart":
        sensitive = Column("town", Kind.NOMINAL, Role.SENSITIVE)
        table = Table(table.frame, table.schema.replace(sensitive))
    part = part_of(table, *steps)
    changed = {each.column for each in part.lost if each.fate == "changed"}
    assert set(mappings_of(part)) == columns & changed
    assert columns <= changed


@pytest.mark.parametrize("case", [case for case, (_, columns) in CASES.items() if columns])
def test_counts_are_those_of_the_records(case, tmp_path):
    """Counted pair by pair over the records as they are written."""
    part = part_of(people(), *CASES[case][0])
    path = tmp_path / "out.csv"
    write(part.release.first, path)
    written = pl.read_csv(path, infer_schema=False)
    for name, mapping in mappings_of(part).items():
        values = [part.original.frame[name][int(row)] for row in part.release.source_rows]
        pairs = Counter(zip(values, written[name].to_list(), strict=True))
        told = pl.read_csv(io.StringIO(mapping.write_csv()), schema_overrides={"released": pl.String})
        assert {(value, label): count for value, label, count in told.iter_rows()} == dict(pairs)
        labels = {}
        for value, label in pairs:
            if label not in (None, "*"):
                assert labels.setdefault(value, label) == label


def test_one_record_and_a_constant():
    frame = pl.DataFrame({"wage": [7.0]})
    table = Table(frame, Schema((Column("wage", Kind.CONTINUOUS, Role.KEY),)))
    assert mappings_of(part_of(table, ("top-bottom-coding", ("wage",)))) == {}


PLAN = """
requirements = ["exact-match <= 0.99"]
data.path = "people.csv"
columns."a/b" = { kind = "continuous", role = "key" }
columns."a b" = { kind = "continuous", role = "key" }
steps = [{ method = "METHOD", columns = ["a/b", "a b"] }]
output.path = "out.csv"
"""


def test_the_folder_keeps_them_private_and_without_those_of_an_older_release(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a/b": rng.lognormal(8, 1, 80).round(2), "a b": rng.integers(0, 9, 80)})
    frame.write_csv(tmp_path / "people.csv")
    for method, mapped in (("naive-coarsening", True), ("correlated-noise", False)):
        (tmp_path / "plan.toml").write_text(PLAN.replace("METHOD", method))
        sfumato.release(tmp_path / "plan.toml").write(tmp_path / "out", overwrite=True)
        there = {name for name in contents(tmp_path / "out") if "mapping" in name}
        assert there == ({"private/mapping.a_b.csv", "private/mapping.a_b.2.csv"} if mapped else set())
        (found,) = verify_release(tmp_path / "out", Run()).values()
        assert not found.wrong
        for name in there:
            assert (tmp_path / "out" / name).stat().st_mode & 0o077 == 0
            told = pl.read_csv(tmp_path / "out" / name)
            assert told.columns == ["original", "released", "records"]
            assert told["records"].sum() == 80
            assert name in (tmp_path / "out" / "private" / "SHA256SUMS").read_text().replace(
                "  ", "  private/"
            )
            assert "mapping" not in (tmp_path / "out" / "SHA256SUMS").read_text()


def test_formulas_are_guarded_where_the_release_is():
    frame = people().frame.select(pl.format("={}", pl.col("town")).alias("town"))
    table = Table(frame, Schema((Column("town", Kind.NOMINAL, Role.KEY),)))
    recipe = Recipe((Step(parse_method("global-recoding(k=25)"), ("town",)),))
    for guard in (True, False):
        output = Output(path="out.csv", guard=guard)
        plan = Plan(Source("in.csv"), schema=table.schema, recipe=recipe, output=output)
        (text,) = mapping_files(carry_out(plan, Run(seed=7), table=table)).values()
        assert ("\n=" in text) is not guard
