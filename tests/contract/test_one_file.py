"""A privacy model, a measure of utility and a method, one file each, are found everywhere: nobody lists them.

The files are those of the pages *Add a measure* and *Add a method*, installed as a plugin would be.
"""

import contextlib
import importlib
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from sfumato.cli import cli
from sfumato.core import registry
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.explain import explain_record
from sfumato.front import assess, compare, protect
from sfumato.methods import global_recoding
from sfumato.methods._recoding import judges as recoding_judges
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.report.release_result import Released
from sfumato.testing import MEASURE_CHECKS, METHOD_CHECKS

DEVELOPING = Path(__file__).resolve().parents[2] / "docs" / "developing"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ENTRY_POINTS = """
[sfumato.methods]
flooring = toy_flooring
[sfumato.measures]
agreement = toy_agreement
kept = toy_kept
"""
NAMES = {"method": "flooring", "model": "agreement", "utility": "records-kept"}


def _page(name):
    return PYTHON.findall((DEVELOPING / name).read_text(encoding="utf-8"))


def _forget():
    registry.methods.cache_clear()
    registry.measures.cache_clear()
    for module in [module for module in sys.modules if module.startswith("toy_")]:
        del sys.modules[module]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """The three files, and what an installer writes beside them."""
    folder = tmp_path_factory.mktemp("site")
    model, example, kept = _page("add-a-measure.md")
    (folder / "toy_flooring.py").write_text(_page("add-a-method.md")[0], encoding="utf-8")
    (folder / "toy_agreement.py").write_text(model, encoding="utf-8")
    (folder / "toy_kept.py").write_text(kept, encoding="utf-8")
    (folder / "toys-1.0.dist-info").mkdir()
    (folder / "toys-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n"
    )
    (folder / "toys-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    _forget()
    yield example
    sys.path.remove(str(folder))
    importlib.invalidate_caches()
    _forget()


def _people(*, n=24):
    towns = ["Kern", "Kings", "Lake", "Marin"]
    columns = {
        "town": [towns[i % 4] for i in range(n)],
        "age": [20 + i // 4 for i in range(n)],
        "ill": [["flu", "gout", "flu", "cold"][(i + i // 4) % 4] for i in range(n)],
    }
    schema = Schema(
        (
            Column("town", Kind.NOMINAL, Role.KEY, hierarchy="towns"),
            Column("age", Kind.CONTINUOUS, Role.KEY),
            Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        )
    )
    return Table(pl.DataFrame(columns), schema).aimed_at(("town", "age"))


def _run():
    rows = [["Kern", "south", "*"], ["Kings", "south", "*"], ["Lake", "north", "*"], ["Marin", "north", "*"]]
    towns = Hierarchy.from_levels(pl.DataFrame(rows, schema=["0", "1", "2"], orient="row"))
    return Run(seed=1, resources={"towns": towns})


def _agreement(group):
    """The model by plain counting."""
    return sum((group.count(value) / len(group)) ** 2 for value in set(group))


def _worst(frame):
    groups = frame.group_by("town", "age").agg("ill")["ill"].to_list()
    return max(_agreement(group) for group in groups)


def test_the_contract_is_kept():
    for check in METHOD_CHECKS:
        check(registry.method(NAMES["method"]))
    for name in (NAMES["model"], NAMES["utility"]):
        for check in MEASURE_CHECKS:
            check(registry.measure(name))


def test_registry_requirements_and_descriptions():
    model, utility = registry.measure(NAMES["model"]), registry.measure(NAMES["utility"])
    assert Requirement.parse("agreement(missing=worst) <= 0.5").measure == model(missing="worst")
    assert model.describe()["computed_from"] == "class"
    assert utility.describe()["computed_from"] == "records"
    assert registry.method(NAMES["method"]).describe()["drive"] == "base"


@pytest.mark.parametrize("verb", ["methods", "measures"])
def test_the_command_line_lists_and_explains(verb):
    listed = CliRunner().invoke(cli, [verb]).output
    for name in NAMES.values() if verb == "measures" else ():
        shown = CliRunner().invoke(cli, ["explain", name])
        assert shown.exit_code == 0
        assert name in shown.output
    wanted = {"methods": ("flooring",), "measures": ("agreement", "records-kept")}[verb]
    assert all(f"\n  {name} " in listed for name in wanted)


@pytest.mark.parametrize("suppression", [0, 30])
def test_the_search_of_recodings_judges_the_model_by_classes(monkeypatch, suppression):
    method = registry.method("global-recoding")(k=2, also="agreement <= 0.5", suppression=suppression)
    with monkeypatch.context() as slow:
        slow.setattr(recoding_judges.Guarantee, "class_measures", None)
        built = method.apply(_people(), _run())

    def must_not(*_):
        raise AssertionError("a release was built for a node")

    monkeypatch.setattr(recoding_judges.ByReleases, "failing", must_not)
    monkeypatch.setattr(recoding_judges.RecodingProblem, "leftover", must_not)
    judges = []

    def judge_of(part, limit):
        judges.append(recoding_judges.judge_of(part, limit))
        return judges[-1]

    monkeypatch.setattr(global_recoding, "judge_of", judge_of)
    release = method.apply(_people(), _run())
    assert _worst(release.data) <= 0.5 < _worst(_people().frame)
    assert release.fitted == built.fitted
    assert release.data.equals(built.data)
    assert {(tuple(judge.base_counts), judge.monotone) for judge in judges} == {(("ill",), not suppression)}


def test_every_enforcing_method_enforces_the_model():
    enforced = set()
    for name, cls in registry.methods().items():
        if any(declared.name == "also" for declared in cls.parameters()) and Kind.NOMINAL in cls.kinds:
            method = cls.from_dict({"k": 2, "also": ["agreement <= 0.5"]})
            with contextlib.suppress(RefusedError, UnreachableError):
                release = protect(_people(), method, columns=["town", "age"], run=_run())
                score = assess(release.table, measures=["agreement"])["agreement"]
                assert score.value <= 0.5, name
                enforced.add(name)
    assert {"global-recoding", "local-suppression", "mondrian", "record-suppression"} <= enforced


def test_it_has_its_sentence_for_a_record():
    said = explain_record(_people(), 0, run=_run())  # asked without being named: it costs little
    (attack,) = [each for each in said.attacks if each.measure == "agreement"]
    assert (
        attack.sentence == "two of those who share its keys have the same sensitive value with a chance of 1"
    )


def test_a_study_moves_the_method_and_ranks_by_the_measure():
    frame = pl.DataFrame(
        {"income": [float(i * i) for i in range(40)], "age": [float(i % 9) for i in range(40)]}
    )
    study = compare(
        frame, ["flooring", "mdav"], rank_by="records-kept", level=0.5, repeats=1, seed=1, tolerance=0.4
    )
    assert {outcome.step.method.name for outcome in study.outcomes if outcome.rank} == {"flooring", "mdav"}


def test_its_page_runs(installed):
    namespace = {}
    exec(compile(installed, "page", "exec"), namespace)
    namespace["test_agreement_is_enforced"]()


def test_the_release_report_shows_the_model_and_its_sensitive_columns():
    table = _people()
    plan = Plan(data=Source("people.csv"), schema=table.schema, output=Output(path="out.csv"))
    report = Released(carry_out(plan, _run(), table=table), None, "as the plan says", _run()).tell()
    internal, public = report.to_dict(public=False), report.to_dict(public=True)
    against = [each for each in internal["attacks"]["inference"] if each["measure"] == "agreement"]
    assert {each["value"] for each in against if each["scenario"] == "default"} == {1}
    assert internal["learnt"]["columns"][0]["agreement"] == {"release": 1, "original": 1}
    assert "Agreement" in report.page(public=False)
    assert "agreement" not in str(public)
    assert [each["value"] for each in public["utility"] if each["measure"] == "records-kept"] == [1]
