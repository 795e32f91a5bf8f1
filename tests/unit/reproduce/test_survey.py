"""The catalogue of the survey: no empty row, nothing that the package does not say itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.core.run import Run
from sfumato.reproduce.families import measure_claim
from sfumato.reproduce.survey import CatalogueRow, catalogue, claims, component_of, titles, tools

ROOT = Path(__file__).parents[3]
ROWS = [pytest.param(row, id=f"{row.place}-{row.of}-{row.term}") for row in catalogue()]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_class_that_is_tested_or_a_reason(row):
    assert row.verdict != "missing"
    assert row.ours or row.reason
    assert len(row.pages) == len(row.ours)
    if row.ours:
        cls, tested = component_of(row.ours[0]), (ROOT / row.test).read_text(encoding="utf-8")
        assert cls.__name__ in tested or cls.name in tested


@pytest.mark.parametrize("row", ROWS)
def test_a_setting_is_one_that_the_class_has(row):
    for ours in row.ours:
        cls, setting = component_of(ours), ours.partition("(")[2].rstrip(")")
        if setting:
            name, _, value = setting.partition("=")
            assert getattr(cls.from_dict({name: value}), name) == value


def test_techniques_have_the_nature_that_table_2_gives_them():
    for row in catalogue():
        if row.place == "Table 2":
            classes = [component_of(each) for each in row.ours]
            natures = {cls.nature for cls in classes if issubclass(cls, Method)}
            assert natures <= {row.of, *({"synthetic"} if row.term == "Re-sampling" else ())}, row.term


def test_the_tables_are_whole():
    sizes = {place: sum(row.place == place for row in catalogue()) for place in titles()}
    assert (sizes["Table 1"] >= 27, sizes["Table 2"], sizes["Table 4"] >= 22) == (True, 16, True)
    assert len(tools()) == 8
    assert all(tool.here for tool in tools())
    assert set(tools()[-1].has) == {name for tool in tools()[:-1] for name in tool.has}


def test_a_verdict_follows_from_the_package():
    row = next(row for row in catalogue() if row.term == "PRAM")
    assert replace(row, ours=("no-such-method",)).verdict == "missing"
    assert replace(row, words=("microaggregation",)).verdict == "missing"
    assert replace(row, ours=(), reason="because").verdict == "missing"  # no sentence tells who looks for it
    assert CatalogueRow("Table 9", "nothing").verdict == "missing"
    assert row.pages == ("methods/pram",)
    assert registry.method("pram") is component_of("pram")


def test_every_statement_of_table_3_is_measured_and_may_not_hold():
    assert [sum(each.family == name for each in claims()) for name in ("perturbative", "de-associative")] == [
        4,
        4,
    ]
    assert len(claims()) == 12
    claim = next(each for each in claims() if each.measure == "l-diversity")
    measured = measure_claim(claim, Run(seed=1))
    assert (measured.first, measured.second, measured.holds) == (1, 3, True)
    assert not measure_claim(replace(claim, rises=False), Run(seed=1)).holds
