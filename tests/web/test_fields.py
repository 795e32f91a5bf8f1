"""Every parameter has a field, what a field shows can be sent back unchanged, and what is wrong is said there."""

import importlib
import sys
from html import unescape
from textwrap import dedent

import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.parameter_types import PerColumn
from sfumato.core.params import Requirements
from sfumato.recipes.plan import Plan
from sfumato.web.fields import RESERVED_NAMES, FormContext, fields_of, settings_from

CONTEXT = FormContext(
    columns={"@key": "", "age": ""}, protected=("age", "income"), measures={"k-anonymity": ""}
)


def sent(fields):
    """What a browser sends of fields that nobody has touched."""
    texts = {}
    for each in fields:
        if each.widget in {"columns", "names"}:
            texts[each.name] = ["", *each.value]
        elif each.widget == "requirements":
            rows = [*each.value, {"measure": "", "sign": ">=", "level": ""}]
            texts |= {
                f"{each.name}.{part}": [row[part] for row in rows] for part in ("measure", "sign", "level")
            }
        elif each.widget == "switch":
            texts[each.name] = ["false", "true"] if each.value else ["false"]
        else:
            texts[each.name] = [str(each.value)]
        texts |= {f"{each.name}:{name}": [str(value)] for name, value in (each.by_column or {}).items()}
    return texts


@pytest.mark.parametrize("cls", registry.methods().values(), ids=lambda cls: cls.name)
def test_a_form_that_is_sent_back_changes_nothing(cls):
    thing = cls()
    fields = fields_of(thing, CONTEXT)
    assert {each.name for each in fields} == {each.name for each in cls.parameters()}
    assert not {each.name for each in fields} & RESERVED_NAMES
    settings, faults = settings_from(cls, sent(fields))
    assert not faults
    assert cls(**settings) == thing


@pytest.mark.parametrize("cls", registry.methods().values(), ids=lambda cls: cls.name)
def test_a_slider_moves_within_the_domain(cls):
    declared = {each.name: each for each in cls.parameters()}
    for each in fields_of(cls()):
        assert each.label
        assert each.help
        if each.slider:
            low, high, step = each.slider
            assert declared[each.name].accepts(low)
            assert declared[each.name].accepts(high)
            assert step > 0


def test_a_value_by_column_is_a_row_and_an_empty_row_is_the_default():
    cls = registry.method("rounding")
    rows = {each.name: each for each in fields_of(cls(base=PerColumn(10.0, (("age", 5.0),))), CONTEXT)}
    assert rows["base"].by_column == {"age": 5.0, "income": ""}
    assert rows["base"].value == 10.0
    settings, faults = settings_from(cls, {"base": ["100"], "base:age": ["5"], "base:income": [" "]})
    assert (settings["base"].to_plain(), faults) == ({"default": 100.0, "age": 5.0}, {})
    settings, _ = settings_from(cls, {"base": [""], "base:age": ["5"]})
    assert settings["base"]["age"] == 5.0


def test_requirements_are_rows_of_three_parts():
    cls = registry.method("mondrian")
    also = ("t(distance=ordered) <= 0.2", "individual-risk < 0.05 at 95%")
    field = next(each for each in fields_of(cls(also=also), CONTEXT) if each.name == "also")
    assert field.value[0] == {"measure": "t(distance=ordered)", "sign": "<=", "level": "0.2"}
    assert field.value[1]["level"] == "0.05 at 95%"
    assert {"k-anonymity", "t(distance=ordered)"} <= set(field.choices)
    settings, _ = settings_from(cls, sent([field]))
    assert settings["also"] == Requirements(also)
    texts = {"also.measure": ["l-diversity"], "also.sign": [">="], "also.level": [""]}
    settings, faults = settings_from(cls, texts)
    assert "also" in faults
    assert field.refill(texts, faults["also"]).value == [
        {"measure": "l-diversity", "sign": ">=", "level": ""}
    ]


@pytest.mark.parametrize(
    ("text", "words"), [("0", "got: `0`"), ("many", "got: `many`"), ("1e999", "must be")]
)
def test_what_is_wrong_is_said_of_its_parameter(text, words):
    _, faults = settings_from(registry.method("mondrian"), {"k": [text]})
    assert words in faults["k"]


# A method that nobody has told the page of ----------------------------------------------------------------

METHOD = dedent('''
    """Subtract a little."""
    from typing import Literal
    from sfumato.core.method import ColumnMethod, Randomness
    from sfumato.core.params import Columns, PerColumn, Requirements, Resource, param
    from sfumato.data.schema import Kind


    class Subtraction(ColumnMethod):
        """Subtract a little of each value."""

        name = "subtraction"
        title = "Subtraction"
        family = "noise"
        analyst_note = "Values are too low."
        kinds = frozenset({Kind.CONTINUOUS})
        randomness = Randomness(stochastic=False)

        whole: int = param(1, "A whole number.", ge=1, le=9, tune=(1, 9), drive=True)
        real: float = param(0.5, "A number.", ge=0, lt=1, unit="years", label="A real one")
        switch: bool = param(False, "On or off.")
        perhaps: bool | None = param(None, "On, off or neither.")
        word: str = param("a", "A word.", advanced=True)
        choice: Literal["up", "down"] = param(
            "down", "Where to.", choices={"up": "It rises.", "down": "It falls."}
        )
        only_up: float = param(1.0, "Only when it rises.", when="choice=up")
        amount: PerColumn[float] = param(2.0, "How much, by column.", ge=0)
        way: PerColumn[Literal["fast", "slow"]] = param("slow", "How fast, by column.")
        beside: Columns = param(Columns(), "Columns to look at.")
        also: Requirements = param(Requirements(), "What else must hold.")
        table: Resource | None = param(None, "A table.", holds="table")
        trees: PerColumn[Resource] | None = param(None, "A hierarchy for each column.", holds="hierarchy")

        def protect_column(self, column, rng):
            return column.values - self.amount[column.column.name]
''')


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """A file with a method, and what an installer writes beside it; processes that are spawned see it too."""
    place = tmp_path_factory.mktemp("site")
    (place / "subtraction_plugin.py").write_text(METHOD, encoding="utf-8")
    facts = place / "subtraction-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: subtraction\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[sfumato.methods]\nsubtraction = subtraction_plugin\n")
    sys.path.insert(0, str(place))
    importlib.invalidate_caches()
    registry.methods.cache_clear()
    yield
    sys.path.remove(str(place))
    importlib.invalidate_caches()
    registry.methods.cache_clear()
    sys.modules.pop("subtraction_plugin", None)


@pytest.fixture(scope="module")
def opened(own_client):
    """A desk whose plan has the new method as its one step."""
    rows = range(40)
    frame = {
        "age": [20 + i % 9 for i in rows],
        "pay": [100 + i for i in rows],
        "sex": ["fm"[i % 2] for i in rows],
    }
    pl.DataFrame(frame).write_csv(own_client.folder / "pay.csv")
    (own_client.folder / "tree.csv").write_text("20;young;*\n21;young;*\n")
    pl.DataFrame({"a": [1]}).write_parquet(own_client.folder / "others.parquet")
    roles = {"role:age": "key", "role:pay": "key", "role:sex": "sensitive"}
    session = own_client.open("pay.csv", **roles)
    for form in ({"action": "remove-step"}, {"action": "add-step", "method": "subtraction"}):
        assert own_client.post(f"/desk/{session}", form)[0] == 200
    return session, own_client.plan_of(session)


@pytest.fixture
def desk(own_client, opened):
    return own_client.go_back(*opened)


def step_of(client, desk):
    _, content = client.get(f"/desk/{desk}")
    return content, {each["name"]: each for each in content["steps"][0]["fields"]}


def page_of(answer):
    return answer[0].status, unescape(answer[1].decode())


def test_a_new_method_has_a_field_for_each_of_its_parameters(own_client, desk):
    _, fields = step_of(own_client, desk)
    widgets = {name: each["widget"] for name, each in fields.items()}
    assert widgets == {
        "columns": "columns", "whole": "number", "real": "number", "switch": "switch", "perhaps": "choice",
        "word": "text", "choice": "choice", "only_up": "number", "amount": "number", "way": "choice",
        "beside": "columns", "also": "requirements", "table": "choice", "trees": "choice",
    }  # fmt: skip
    assert fields["whole"]["slider"] == [1, 9, 1]
    assert fields["amount"]["by_column"] == {"age": "", "pay": ""}
    assert fields["only_up"]["when_parameter"] == "choice"
    assert {"age", "pay"} <= set(fields["columns"]["choices"])
    assert "sex" not in fields["columns"]["choices"]  # the method cannot take it
    assert "sex" in fields["beside"]["choices"]
    assert "file:others.parquet" in fields["table"]["choices"]
    assert "file:tree.csv" in fields["trees"]["choices"]
    assert "file:others.parquet" not in fields["trees"]["choices"]
    assert not any("pay.csv" in name for name in fields["table"]["choices"])
    _, page = page_of(own_client.ask("GET", f"/desk/{desk}", headers={"Accept": "text/html"}))
    for words in (
        "A real one (years)",
        "It rises.",
        "Amount of pay",
        'data-when="choice"',
        "Only with choice = up",
    ):
        assert words in page


def test_a_form_gives_the_method_that_it_says(own_client, desk):
    _, fields = step_of(own_client, desk)
    form = {
        "action": "change-step", "columns": ["", "age", "pay"], "whole": "3", "real": "0.25",
        "switch": ["false", "true"], "perhaps": "false", "word": "b c", "choice": "up", "only_up": "4",
        "amount": "1", "amount:age": "5", "amount:pay": "", "way": "slow", "way:age": "", "way:pay": "fast",
        "beside": ["", "sex"], "also.measure": ["k-anonymity", ""], "also.sign": [">=", ">="],
        "also.level": ["2", ""], "table": "file:others.parquet", "trees": "", "trees:age": "file:tree.csv",
    }  # fmt: skip
    status, content = own_client.post(f"/desk/{desk}", form)
    assert status == 200, content
    content, fields = step_of(own_client, desk)
    plan = Plan.read(own_client.folder / content["plan_path"])
    assert plan.recipe.steps[0].columns == ("age", "pay")
    assert plan.recipe.steps[0].method.to_dict() == {
        "whole": 3, "real": 0.25, "switch": True, "perhaps": False, "word": "b c", "choice": "up", "only_up": 4.0,
        "amount": {"default": 1.0, "age": 5.0}, "way": {"default": "slow", "pay": "fast"}, "beside": ["sex"],
        "also": ["k-anonymity >= 2"], "table": "others", "trees": {"age": "tree"},
    }  # fmt: skip
    assert {name: (each.path, each.holds) for name, each in plan.resources.items()} == {
        "others": ("others.parquet", "table"), "tree": ("tree.csv", "hierarchy"),
    }  # fmt: skip
    assert fields["trees"]["by_column"]["age"] == "tree"


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"whole": "0"}, "whole", "must be a whole number"),
        ({"real": "much"}, "real", "got: `much`"),
        ({"choice": "aside"}, "choice", "one of up, down"),
        ({"amount:age": "-1"}, "amount", "at least 0"),
        ({"also.measure": "l-diversity", "also.sign": ">=", "also.level": "x y"}, "also", "requirements"),
        ({"table": "nowhere"}, "table", "not declared"),
        ({"table": "file:../secret.csv"}, "table", "not declared"),
        ({"beside": "age", "columns": "age"}, "beside", "protected themselves"),
        ({"columns": "sex"}, "columns", "continuous"),
        ({"columns": "nobody"}, "columns", "no column"),
    ],
    ids=str,
)
def test_a_fault_is_said_at_its_field_and_what_was_typed_is_kept(own_client, desk, form, field, words):
    before, _ = step_of(own_client, desk)
    form = {"action": "change-step", "word": "typed words", **form}
    status, content = own_client.post(f"/desk/{desk}", form)
    assert status == 422
    assert words in content["faults"][field]
    shown = {each["name"]: each for each in content["fields"]}
    assert words in shown[field]["fault"]
    assert shown["word"]["value"] == "typed words"
    assert [name for name, each in shown.items() if each["fault"]] == [field]
    answer = own_client.ask("POST", f"/desk/{desk}", form, headers={"Accept": "text/html"})
    status, page = page_of(answer)
    assert status == 422
    assert f'id="step-0-{field}-fault"' in page
    assert "typed words" in page
    assert "What is done to the data?" in page
    assert step_of(own_client, desk)[0]["version_id"] == before["version_id"]


def test_other_refusals_stand_where_they_were_caused(own_client, desk):
    for form, words in (
        ({"action": "set-role", "column": "age", "role": "ghost"}, "ghost"),
        ({"action": "add-step", "method": "nothing"}, "no method"),
    ):
        status, page = page_of(own_client.ask("POST", f"/desk/{desk}", form, headers={"Accept": "text/html"}))
        assert status == 422
        assert words in page
        assert "What became of the columns?" in page
