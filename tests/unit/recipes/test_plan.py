"""A plan: through TOML and back, every mistake in one error, and what blocks a release."""

import hashlib
import re
import tomllib
from types import MappingProxyType

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core import registry
from sfumato.core.requirement import Requirement
from sfumato.data.rules import Rule
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import PlanError, ReadError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.multiplicative_noise import HohneNoise
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.parts import Output, Source, fingerprint
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.ranks import RankLinkage
from sfumato.utility.transport import EarthMoversDistance
from toys import Shift

WHOLE = """
requirements = ["rank-linkage >= 0.45", "earth-movers-distance(records=300) <= 0.2"]
rules = ["pay >= 0"]
related = [["age", "born"]]

[data]
path = "people.csv"

[columns.age]
kind = "continuous"
role = "key"
lower = 0
integer = true
missing = [-9, "."]

[columns.born]
kind = "date"
role = "key"

[columns.pay]
kind = "continuous"
role = "sensitive"

[columns."full name"]
kind = "nominal"
role = "identifier"

[columns.county]
kind = "nominal"
role = "other"
hierarchy = "counties"

[[scenarios]]
name = "neighbour"
columns = ["age"]

[[scenarios]]
name = "register"
external = "census"
membership = false

[resources.counties]
path = "counties.csv"
holds = "hierarchy"

[resources.census]
path = "census.csv"

[[steps]]
method = "mdav"
columns = ["age", "pay"]
within = ["county"]
parameters = {k = 3}

[output]
path = "release.csv"
drop = ["full name"]
"""


def faults(said):
    with pytest.raises(PlanError) as caught:
        Plan.from_dict(said if isinstance(said, dict) else tomllib.loads(said))
    assert str(caught.value).startswith("the plan has ")
    assert all("\n" not in fault for fault in caught.value.faults), "a fault is one line of the list"
    return caught.value.faults


# ------------------------------------------------------------------------------------------------- reading


def test_reading_everything(tmp_path):
    place = tmp_path / "plan.toml"
    place.write_text(WHOLE, encoding="utf-8")
    plan = Plan.read(place)
    assert plan.folder == tmp_path
    assert plan.data == Source("people.csv")
    assert plan.schema["age"] == Column(
        "age", Kind.CONTINUOUS, Role.KEY, lower=0, integer=True, missing=(-9, ".")
    )
    assert plan.schema.rules == (Rule("pay >= 0"),)
    assert [scenario.name for scenario in plan.scenarios] == ["neighbour", "register"]
    assert plan.resources["counties"] == Source("counties.csv", holds="hierarchy")
    assert plan.recipe == Recipe.of(Step(Mdav(k=3), ("age", "pay"), ("county",)))
    assert plan.requirements[1] == Requirement(EarthMoversDistance(records=300), "<=", 0.2)
    assert plan.output == Output("release.csv", drop=("full name",))
    assert plan.blockers() == []
    assert plan.warnings() == ["`age` and `born` are strongly related, but mdav protects only `age`"]
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


def test_an_empty_plan_is_a_plan():
    assert Plan.from_dict({}) == Plan()
    assert Plan().to_dict() == {}
    assert Plan.from_dict(tomllib.loads(Plan().to_toml())) == Plan()


def test_a_byte_order_mark_does_no_harm(tmp_path):
    place = tmp_path / "plan.toml"
    place.write_bytes(b"\xef\xbb\xbf[data]\npath = 'x.csv'\n")
    assert Plan.read(place).data == Source("x.csv")


def test_a_missing_plan(tmp_path):
    with pytest.raises(ReadError) as caught:
        Plan.read(tmp_path / "nowhere.toml")
    assert caught.value.message == f"File not found: {tmp_path / 'nowhere.toml'} (the plan)"
    assert "sfumato inspect" in caught.value.hint
    assert caught.value.exit_code == 3


def test_a_plan_that_is_a_folder_or_not_text(tmp_path):
    with pytest.raises(ReadError, match=r"cannot read the plan `.*`: it is a folder"):
        Plan.read(tmp_path)
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match=r"cannot read the plan `.*`: it is not text"):
        Plan.read(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    "text", ["[data", "path = ", "a = 1\na = 2", "[data]\npath = people.csv", "{}", "\x00"]
)
def test_broken_toml_says_where(tmp_path, text):
    place = tmp_path / "plan.toml"
    place.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        Plan.read(place)
    assert caught.value.message.startswith(f"the plan `{place}` is not valid TOML: ")
    assert re.search(r"line \d+|end of document", caught.value.message)
    assert caught.value.exit_code == 2


# ------------------------------------------------------------------------------------------------ mistakes


def test_three_mistakes_in_one_error():
    text = (
        WHOLE.replace('role = "sensitive"', 'role = "sensible"')
        .replace("parameters = {k = 3}", "parameters = {k = 0}")
        .replace("rank-linkage >= 0.45", "rank-linkage = 0.45")
    )
    found = faults(text)
    assert len(found) == 3
    for fault, words in zip(
        sorted(found),
        (
            "column `pay`: `role` must be one of identifier, key, sensitive",
            "requirement 1: `rank-linkage = 0.45` is not a requirement: a measure, a comparison and a number",
            "step 1: `k` of mdav must be a whole number at least 1, got: `0`",
        ),
        strict=True,
    ):
        assert fault.startswith(words)


def test_a_mistake_in_every_part_at_once():
    found = faults(
        {
            "dta": {},
            "data": {"pth": "x.csv"},
            "columns": {"age": {"kind": "number"}},
            "rules": ["age >"],
            "related": [["age"], "age"],
            "scenarios": [{"colums": []}, {"records": 0}, {"name": "u"}, {"name": "u"}],
            "resources": {"r": {"path": "x", "holds": "tree"}, "s": "x"},
            "steps": [{"method": "mdaw"}],
            "requirements": ["nonsense > 1"],
            "output": {"shuffle": "no"},
        }
    )
    for words in (
        "there is no part of a plan `dta` (did you mean `data`?)",
        "data: there is no setting `pth` (did you mean `path`?)",
        "data: `path` is missing",
        "column `age`: `kind` must be one of",
        "is not an SQL condition on columns",
        "each item of `related` must be a list, got: str",
        "scenario 1: there is no setting `colums` (did you mean `columns`?)",
        "`records` of scenario `default` must be a share above 0",
        "each scenario must have a name of its own, got twice: `default`, `u`",
        "resource `r`: `holds` must be one of table, hierarchy, got: `tree`",
        "resource `s` must be a table, got: str",
        "step 1: there is no method `mdaw` (did you mean `mdav`",
        "there is no measure `nonsense`",
        "output: `shuffle` must be true or false, got: str",
    ):
        assert any(words in fault for fault in found), words
    assert len(found) == 14


@pytest.mark.parametrize(
    "part",
    ["data", "columns", "rules", "related", "scenarios", "resources", "steps", "requirements", "output"],
)
@pytest.mark.parametrize("wrong", [3, 1.5, True, "text"])
def test_a_part_of_the_wrong_sort(part, wrong):
    word = "a table" if part in {"data", "columns", "resources", "output"} else "a list"
    assert faults({part: wrong}) == (f"`{part}` must be {word}, got: {type(wrong).__name__}",)


def assert_plan_or_faults(said):
    """A plan that survives its file, or a list of faults; never another exception."""
    plan, found = None, ()
    try:
        plan = Plan.from_dict(said)
    except PlanError as error:
        found = error.faults
    assert found or Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


JUNK = st.recursive(
    st.one_of(st.integers(-3, 3), st.floats(), st.booleans(), st.text(max_size=4), st.dates(), st.times()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["path", "kind", "role", "method", "columns", "within", "together", "parameters", "name", "records", "holds",
                 "drop", "shuffle", "order", "missing", "lower", "k", "window", "external", "sha256", "x"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)  # fmt: skip


@examples(300)
@given(
    said=st.dictionaries(
        st.sampled_from(
            [
                "data",
                "columns",
                "rules",
                "related",
                "scenarios",
                "resources",
                "steps",
                "requirements",
                "output",
                "x",
            ]
        ),
        JUNK,
        max_size=5,
    )
)
def test_whatever_toml_says_it_is_a_plan_or_faults(said):
    """No value of a wrong type anywhere ends in a traceback."""
    assert_plan_or_faults(said)


def places_in(node, path=()):
    """Every place in a parsed file, from its parts down to its words."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places_in(inner, (*path, key))


@examples(300)
@given(place=st.sampled_from(list(places_in(tomllib.loads(WHOLE)))), wrong=JUNK)
def test_one_place_of_a_sound_plan_gone_wrong(place, wrong):
    said = tomllib.loads(WHOLE)
    node = said
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = wrong
    assert_plan_or_faults(said)


@pytest.mark.parametrize(
    ("part", "place", "wrong"),
    [
        ("data", "path", [3, True, ["x.csv"], {}]),
        ("data", "sha256", [3, ["x"]]),
        ("output", "path", [3, ["x"]]),
        ("output", "drop", ["pay", 3, True]),
        ("output", "shuffle", ["yes", 1, []]),
    ],
)
def test_records_with_a_wrong_type(part, place, wrong):
    for value in wrong:
        said = {part: {"path": "x.csv", place: value}}
        assert any(f"`{place}` must be" in fault for fault in faults(said))


# --------------------------------------------------------------------------------------- what fits together


def changed(**parts):
    said = tomllib.loads(WHOLE)
    for key, value in parts.items():
        said[key] = value(said[key]) if callable(value) else value
    return said


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"scenarios": [{"name": "x", "columns": ["aeg"]}]}, "scenario `x`: there is no column `aeg`"),
        ({"scenarios": [{"name": "x", "external": "nowhere"}]}, "scenario `x` names a resource that is not declared: `nowhere`"),
        ({"output": {"drop": ["nobody"]}}, "`drop` names a column that is not declared: `nobody`"),
        ({"resources": {"census": {"path": "c.csv"}}}, "column `county` names a hierarchy that is not declared: `counties`"),
        ({"steps": [{"method": "correlated-noise", "columns": ["county"]}]}, "step 1: correlated-noise protects continuous columns, got: `county` (nominal)"),
        ({"steps": [{"method": "mdav", "columns": ["agee"]}]}, "step 1: there is no column `agee`"),
        ({"related": [["age", "nobody"]]}, "`related` names columns that are not declared: `nobody`"),
        ({"rules": ["nobody > 1"]}, "rule `nobody > 1` names columns that are not declared: `nobody`"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_together(parts, fault):
    found = faults(changed(**parts))
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_step_that_names_a_resource(monkeypatch):
    """Found when the plan is read, not after an hour of reading data."""
    known = MappingProxyType({**registry.methods(), "shift": Shift})
    monkeypatch.setattr(registry, "methods", lambda: known)
    step = {"method": "shift", "columns": ["age"], "parameters": {"source": "census"}}
    assert Plan.from_dict(changed(steps=[step])).recipe.steps[0].method == Shift(source="census")
    step["parameters"]["source"] = "cenus"
    assert faults(changed(steps=[step])) == (
        "step 1: `source` of shift names a resource that is not declared: `cenus`",
    )
    step["parameters"]["source"] = "counties"
    assert faults(changed(steps=[step])) == (
        "step 1: `source` of shift must name a resource that holds a table, got: `counties`",
    )


# ---------------------------------------------------------------------------------------------- round trip


WORDS = st.text(max_size=6)
NAMES = ("age", "pay", "odd name", 'quo"te', "a.b")
METHODS = st.one_of(
    st.builds(RankSwapping, window=st.floats(0, 100, exclude_min=True)),
    st.builds(Mdav, k=st.integers(1, 10**6), scale=st.sampled_from(["deviation", "range", "none"])),
    st.builds(CorrelatedNoise, ratio=st.floats(0, 1e6, exclude_min=True)),
    st.builds(HohneNoise, deviation=st.floats(0, 1e3, exclude_min=True)),
)
STEPS = st.builds(
    Step,
    METHODS,
    st.lists(st.sampled_from(["age", "pay", "@key", "@continuous"]), max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from(["odd name", 'quo"te']), max_size=2, unique=True).map(tuple),
    st.sampled_from(["", "a.b"]),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
REQUIREMENTS = st.builds(
    Requirement, st.builds(RankLinkage, floor=st.floats(1e-6, 1e6)), st.sampled_from([">", ">="]), FINITE
)
SOURCES = st.builds(Source, WORDS, st.sampled_from(["table", "hierarchy"]), WORDS)


@st.composite
def plans(draw):
    role = st.sampled_from([None, Role.SENSITIVE, Role.IDENTIFIER, Role.OTHER])
    kinds = (Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.NOMINAL, Kind.ORDINAL, Kind.NOMINAL)
    columns = [
        Column(
            name,
            kind,
            Role.KEY if name == "age" else draw(role),
            label=draw(WORDS),
            missing=draw(st.sampled_from([(), (-9, ".")])),
        )
        for name, kind in zip(NAMES, kinds, strict=True)
    ]
    resources = draw(st.dictionaries(WORDS, SOURCES, max_size=2))
    external = st.sampled_from(["", *resources])
    scenarios = draw(
        st.lists(
            st.builds(
                Scenario, WORDS, st.lists(st.sampled_from(NAMES), max_size=2).map(tuple),
                st.floats(0, 1, exclude_min=True), st.booleans(), external,
            ),
            min_size=1, max_size=3, unique_by=lambda scenario: scenario.name,
        )
    )  # fmt: skip
    schema = Schema(
        tuple(columns), rules=(Rule('pay > "a.b"'),), related=draw(st.sampled_from([(), (NAMES[:2],)]))
    )
    steps = draw(st.lists(STEPS, max_size=3))  # one that protects what it groups by is no step of a plan
    return Plan(
        data=draw(st.one_of(st.none(), SOURCES)),
        schema=schema,
        scenarios=tuple(scenarios),
        resources=resources,
        recipe=Recipe(tuple(step for step in steps if not any(step.faults(schema)))),
        requirements=tuple(draw(st.lists(REQUIREMENTS, max_size=2))),
        output=Output(draw(WORDS), tuple(draw(st.lists(st.sampled_from(NAMES), max_size=2))), draw(st.booleans())),
    )  # fmt: skip


@given(plans())
def test_a_plan_survives_its_file(plan):
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


@given(plans())
def test_a_plan_survives_its_file_twice(plan):
    text = plan.to_toml()
    assert Plan.from_dict(tomllib.loads(text)).to_toml() == text
    assert tomli_w.dumps(tomllib.loads(text)) == text


def test_only_what_is_not_default_is_written():
    plan = Plan(data=Source("x.csv"), output=Output("y.csv"))
    assert plan.to_dict() == {"data": {"path": "x.csv"}, "output": {"path": "y.csv"}}


def test_a_plan_without_an_intruder_has_the_usual_one():
    """With no scenario no requirement would be judged, and a gate would open on nothing."""
    assert Plan(scenarios=()).scenarios == (Scenario(),)
    assert Plan.from_dict({"scenarios": []}).scenarios == (Scenario(),)


# ------------------------------------------------------------------------------------------------- blockers


def schema_of(**roles):
    return Schema(tuple(Column(name, Kind.NOMINAL, role) for name, role in roles.items()))


def test_what_blocks_a_release():
    schema = schema_of(name=Role.IDENTIFIER, ssn=Role.IDENTIFIER, age=Role.KEY, remark=None, more=None)
    assert Plan(schema=schema).blockers() == [
        "these columns have no role: `remark`, `more`",
    ]
    assert Plan(schema=schema, output=Output(drop=("name", "remark"))).blockers() == [
        "these columns have no role: `more`",
    ]
    assert Plan(schema=schema, output=Output(drop=("name", "ssn", "remark", "more"))).blockers() == []


def test_no_schema_and_no_column_left_block_too():
    assert Plan().blockers() == ["the plan declares no columns"]
    schema = schema_of(age=Role.KEY)
    assert Plan(schema=schema, output=Output(drop=("age",))).blockers() == ["no column would be released"]


# -------------------------------------------------------------------------------------------------- sources


def test_a_source_is_the_file_it_was(tmp_path):
    place = tmp_path / "people.csv"
    place.write_bytes(b"a\n1\n")
    right = hashlib.sha256(b"a\n1\n").hexdigest()
    assert fingerprint(place) == right
    assert Source("people.csv", sha256=right).check(tmp_path) == place
    assert Source("people.csv", sha256=right.upper()).check(tmp_path) == place
    assert Source("people.csv").check(tmp_path) == place
    place.write_bytes(b"a\n2\n")
    with pytest.raises(ReadError) as caught:
        Source("people.csv", sha256=right).check(tmp_path)
    assert caught.value.message == ("`people.csv` has changed since the plan was written")
    assert "sha256" in caught.value.hint


def test_a_source_that_is_not_there(tmp_path):
    for name in ("people.csv", ".", ""):
        with pytest.raises(ReadError, match="File not found: ") as caught:
            Source(name).check(tmp_path)
        assert caught.value.hint == f"looked in {tmp_path}"


def test_a_requirement_may_name_only_declared_resources():
    said = {"requirements": ["k-map(population=census) >= 5"]}
    with pytest.raises(
        PlanError, match="requirements: `population` of k-map names a resource that is not declared"
    ):
        Plan.from_dict({**said, "columns": {"age": {"kind": "continuous", "role": "key"}}})


def test_shows_itself_in_one_line_without_cells():
    plan = Plan.from_dict(tomllib.loads(WHOLE))
    assert repr(plan) == "Plan(people.csv, 5 columns, 1 step, 2 requirements)"
    assert repr(Plan()) == "Plan(no data, 0 columns, 0 steps, 0 requirements)"
    assert repr(Plan(tables={"a": Plan()})) == f"Plan(a: {Plan()!r})"
    assert plan._repr_html_() == f"<div><p>{plan!r}</p></div>"
