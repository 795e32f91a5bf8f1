"""What is filed with a release: evidence by its schema, the change note by column, the data card."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import sfumato
from schemas import faults
from sfumato.core import registry
from sfumato.core.budget import PrivacyBudget, Spending
from sfumato.core.release import Provenance
from sfumato.core.requirement import parse_method
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.recipes.parts import About, Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.budget_coverage import BudgetCoverage
from sfumato.releasing.carry_out import carry_out
from sfumato.report.evidence_file import change_note, data_card, evidence_of, schema
from sfumato.report.fates import by_fate, centres_of, loss_sentences
from sfumato.report.outcome import _roles, _step
from sfumato.report.page import page_of_evidence
from sfumato.study.column_sentences import ColumnSentence


def told(*, public):
    """What a report tells, by the contract: one of each."""
    attack = {"measure": "dbrl", "title": "Linkage", "scenario": "x", "value": 0.1, "control": None}
    said = {
        "sfumato": "1", "kind": "release", "public": public, "generated": "2030-01-01", "title": "A file",
        "records": {"released": 10} if public else {"released": 10, "original": 11},
        "roles": [
            {"column": "age", "role": "key", "kind": "continuous", "reason": "declared", "outcome": "ranges", "became": "age within 5"},
            {"column": "town", "role": "key", "kind": "nominal", "reason": "", "outcome": "changed", "became": "9 % of town changed"},
            {"column": "name", "role": "identifier", "kind": "nominal", "reason": "", "outcome": "left out", "became": "name left out"},
            {"column": "pid", "role": "person", "kind": "nominal", "reason": "", "outcome": "renamed", "became": "pid renamed"},
            {"column": "ill", "role": "other", "kind": "nominal", "reason": "", "outcome": "untouched", "became": "ill untouched"},
        ],
        "steps": [
            {"method": "mondrian", "title": "Mondrian", "columns": ["age"], "what": "Cut the records."},
            {"method": "pram", "title": "PRAM", "columns": ["town"], "what": "Change categories."},
            {"method": "sampling", "title": "Sampling", "columns": [], "what": "Release a sample."},
        ],
        "requirements": {"met": 1, "of": 1} if public else [
            {"met": True, "judges": "risk", "requirement": "k >= 3", "vetted": "brute-forced"}
        ],
        "attacks": None if public else {"singling out": [], "linkability": [attack], "inference": []},
        "recipients": [{"recipient": "researcher", "why": "under contract"}],
        "lost": [{"column": "age", "sentence": "age within 5"}],
        "utility": [{"measure": "il1s", "value": 0.2}],
        "budget": None,
    }  # fmt: skip
    if not public:
        said["tests"] = {
            "singling out": "not tested: it was late", "linkability": "tested by Linkability",
            "inference": "not tested: it was late",
        }  # fmt: skip
        said |= {"risks": [attack], "not_estimated": [], "rejected": [{"recipe": "mdav", "why": "more lost"}]}
    return said


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    frame = pl.DataFrame({"age": np.random.default_rng(1).integers(20, 60, 60)})
    frame.write_csv(home / "people.csv")
    (home / "plan.toml").write_text(
        """
requirements = ["exact-match <= 0.9"]
data.path = "people.csv"
columns.age = { kind = "continuous", role = "key" }
steps = [{ method = "correlated-noise" }]
[release]
purpose = "Research on health"
recipients = ["universities", "ministries"]
review_date = 2031-06-30
threats = "a neighbour"
expert = "Dr. Who"
"""
    )
    return sfumato.release(home / "plan.toml")


@pytest.mark.parametrize("public", [True, False])
def test_evidence_is_as_its_schema_says(released, public):
    evidence = evidence_of(released.plan.about, told(public=public), {"out.csv": "0" * 64})
    assert not faults(evidence, schema(), schema())
    json.dumps(evidence, allow_nan=False)
    assert evidence["context"]["purpose"] == "Research on health"
    assert evidence["context"]["recipients"] == "universities; ministries"
    assert evidence["governance"]["contact"] == "not stated"
    assert evidence["identifiability"]["re_evaluation"] == "2031-06-30"
    assert evidence["identifiability"]["requirements"] == {"met": 1, "of": 1}
    vetted = evidence["identifiability"]["vetted"]
    assert vetted["methods"] == {"mondrian": "brute-forced", "pram": "proved", "sampling": "brute-forced"}
    assert vetted["measures"] == ({} if public else {"k >= 3": "brute-forced"})
    assert evidence["identifiability"]["earlier_releases"]["says"] == "the release is not part of a series"
    assert evidence["views"]["nist"] == {"claimed": False, "says": "no differential privacy is claimed"}
    assert evidence["views"]["hipaa"]["expiry"] == "2031-06-30"
    assert evidence["views"]["gdpr"]["recipients"][0]["recipient"] == "researcher"


def test_public_evidence_says_what_is_confidential(released):
    public = evidence_of(released.plan.about, told(public=True), {})
    assert public["context"]["threats"] == public["governance"]["expert"] == "confidential: with the owner"
    assert public["identifiability"]["quantified"]["see"] is None
    assert public["views"]["essnet"]["risk"]["says"] == "confidential: with the owner"
    assert public["views"]["gdpr"]["linkability"]["see"] is None
    assert public["governance"]["environment"] == {}
    own = evidence_of(released.plan.about, told(public=False), {})
    assert own["context"]["threats"] == "a neighbour"
    assert own["views"]["gdpr"]["linkability"]["see"] == "report.json#/attacks/linkability"
    assert own["views"]["gdpr"]["linkability"]["says"] == "tested by Linkability"
    assert own["views"]["gdpr"]["inference"] == {"see": None, "says": "not tested: it was late"}
    tested = own["identifiability"]["adversarial_test"]
    assert tested["see"] == "report.json#/tests"
    assert "linkability: tested by Linkability; inference: not tested: it was late" in tested["says"]
    assert own["identifiability"]["rejected_alternatives"]["see"] == "report.json#/rejected"
    assert "numpy" in own["governance"]["environment"]


class Texts(HTMLParser):
    """The texts that a page shows."""

    def __init__(self):
        super().__init__()
        self.found, self.inside = [], ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag

    def handle_data(self, data):
        if self.inside != "style" and data.strip():
            self.found.append(data.strip())


def leaves(value):
    """What a dictionary for JSON says: its keys, and what they lead to."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield key.replace("_", " ")
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        said = ("yes" if value else "no") if isinstance(value, bool) else value
        text = f"{said:.4g}" if isinstance(said, float) else str(said)
        yield "–" if said is None or said == "" else text


@pytest.mark.parametrize("public", [True, False])
def test_the_page_of_evidence_says_what_its_json_says_and_nothing_else(released, public):
    spent = {"mechanism": "laplace", "unit": "record", "neighbours": "replace", "epsilon": 1.0}
    budget = {"steps": [spent], "epsilon": 1.0, "delta": 0.0, "advantage_at_most": 0.462}
    about = replace(released.plan.about, terms='<b>None</b> & "ours"\nonly', basis="Article 89")
    evidence = evidence_of(about, {**told(public=public), "budget": budget}, {"out.csv": "0" * 64})
    page = page_of_evidence(json.loads(json.dumps(evidence)))
    reader = Texts()
    reader.feed(page)
    said = {" ".join(each.split()) for each in leaves(evidence)}
    form = (
        "Public form." if public else "Internal form: contains details that help an intruder; do not publish."
    )
    shown = {" ".join(each.split()) for each in reader.found}
    assert shown <= said | {form, "Evidence", "–"}
    assert form in shown
    assert said - {"public", "title", "yes", "no"} <= shown | {"views"}
    assert "<b>" not in page
    assert "<script" not in page


def test_a_folder_has_the_page_of_each_form_of_evidence(released, tmp_path):
    released.write(tmp_path / "out")
    for home in ("out", "out/private"):
        evidence = json.loads((tmp_path / home / "evidence.json").read_text())
        assert (tmp_path / home / "evidence.html").read_text() == page_of_evidence(evidence)


def follow(home):
    """Follow every pointer of the evidence in a folder."""
    evidence = json.loads((home / "evidence.json").read_text())
    assert not faults(evidence, schema(), schema())
    for file, keys in re.findall(r'"see": ?"([^#"]+)#/([^"]+)"', json.dumps(evidence)):
        value = json.loads((home / file).read_text())
        for key in keys.split("/"):
            value = value[key]
        assert value


def test_pointers_lead_into_the_report(released, tmp_path):
    released.write(tmp_path / "out")
    follow(tmp_path / "out")
    follow(tmp_path / "out" / "private")


def test_evidence_and_report_give_one_answer_on_attacks(released, tmp_path):
    released.write(tmp_path / "out")
    report, evidence = (
        json.loads((tmp_path / "out" / "private" / name).read_text())
        for name in ("report.json", "evidence.json")
    )
    for threat, said in report["tests"].items():
        assert evidence["views"]["gdpr"][threat.replace(" ", "_")]["says"] == said
        assert said.startswith("not tested: there is no control")
    assert evidence["identifiability"]["adversarial_test"]["says"] == said
    public = json.loads((tmp_path / "out" / "evidence.json").read_text())
    assert public["identifiability"]["adversarial_test"]["says"] == "confidential: with the owner"


def test_pointers_of_several_tables_too(tmp_path):
    for name in ("a", "b"):
        ages = np.random.default_rng(1).integers(20, 60, 60)
        pl.DataFrame({"age": ages}).write_csv(tmp_path / f"{name}.csv")
    tables = """
[tables.{0}]
requirements = ["exact-match <= 0.9"]
data.path = "{0}.csv"
columns.age = {{ kind = "continuous", role = "key" }}
steps = [{{ method = "correlated-noise" }}]
output.path = "{0}.out.csv"
"""
    (tmp_path / "plan.toml").write_text(tables.format("a") + tables.format("b"))
    sfumato.release(tmp_path / "plan.toml").write(tmp_path / "out")
    follow(tmp_path / "out")
    follow(tmp_path / "out" / "private")
    assert "- **b.age**: " in (tmp_path / "out" / "change-note.md").read_text()


def test_a_budget_is_told_as_nist_asks(released):
    spent = {"mechanism": "laplace", "unit": "record", "neighbours": "replace", "epsilon": 1.0}
    budget = {"steps": [spent], "epsilon": 1.0, "delta": 0.0, "advantage_at_most": 0.462}
    evidence = evidence_of(released.plan.about, {**told(public=True), "budget": budget}, {})
    assert not faults(evidence, schema(), schema())
    assert evidence["views"]["nist"]["claimed"] is True
    assert evidence["views"]["nist"]["unit"] == ["record"]
    void = {**budget, "guarantee": "not a differential-privacy guarantee"}
    evidence = evidence_of(released.plan.about, {**told(public=True), "budget": void}, {})
    assert evidence["views"]["nist"]["claimed"] is False
    part = BudgetCoverage(("sex",), ("age",)).statement(PrivacyBudget((Spending("laplace", epsilon=1.0),)))
    evidence = evidence_of(released.plan.about, {**told(public=True), "budget": part}, {})
    assert not faults(evidence, schema(), schema())
    nist = evidence["views"]["nist"]
    assert (nist["claimed"], nist["unit"]) == (False, [])
    assert nist["meaning"] == {"membership_advantage_at_most": None}
    assert nist["says"] == "ε covers only `sex`; `age` is released without it: no guarantee for a person"


def test_the_check_of_the_schema_finds_faults(released):
    evidence = evidence_of(released.plan.about, told(public=True), {})
    for spoilt in (
        {**evidence, "more": 1},
        {**evidence, "public": 1},
        {**evidence, "title": ""},
        {key: value for key, value in evidence.items() if key != "views"},
    ):
        assert faults(spoilt, schema(), schema())


def test_the_change_note_says_by_what_happened_what_to_correct_for():
    note = change_note(told(public=True))
    headings = re.findall("^## (.*)$", note, re.MULTILINE)
    assert headings == [
        "All records", "Shown as ranges", "Categories changed at random",
        "Replaced by pseudonyms", "Unchanged", "Removed",
    ]  # fmt: skip
    ranges, town = note.index("## Shown as ranges"), note.index("## Categories changed")
    assert "- **age**: within 5.\n" in note[ranges:town]
    assert f"(Mondrian): {registry.method('mondrian').analyst_note}" in note[ranges:town]
    assert "corrected_counts" in note[town:]
    assert "corrected_counts" not in note[:town]
    assert note.index("use the weights") < ranges
    assert "\n\nname. They could identify people" in note
    assert "k >= 3" not in note


def test_the_change_note_says_no_sentence_twice():
    """Of two hundred columns under three headings, changed by one method and another, each sentence is there once."""
    columns = [
        {
            "column": f"{outcome}{n}",
            "role": "key",
            "kind": "nominal",
            "outcome": outcome,
            "became": f"{outcome}{n}.",
        }
        for outcome in ("ranges", "groups", "changed", "suppressed")
        for n in range(50)
    ]
    names = [each["column"] for each in columns]
    steps = [
        {"method": method, "title": method, "columns": names, "what": "Do it."}
        for method in ("mondrian", "pram", "mondrian")
    ]
    note = change_note({**told(public=True), "roles": columns, "steps": steps})
    for method in ("mondrian", "pram"):
        assert note.count(registry.method(method).analyst_note) == 1
    assert note.count("see “Shown as ranges”") == 2 * 3
    lines = [line for line in note.splitlines() if line and "see “" not in line]
    assert len(lines) == len(set(lines))
    assert all(f"- **{name}**: " in note for name in names)


@pytest.mark.parametrize(
    ("method", "column", "heading"),
    [
        ("uncorrelated-noise", "wage", "Noise added"),
        ("mdav", "wage", "Replaced by the mean of similar records"),
        ("mdav(centre=median)", "wage", "Replaced by the median of similar records"),
        ("mdav", "town", "Replaced by the most frequent value of similar records"),
        ("pram", "town", "Categories changed at random"),
        ("top-bottom-coding", "wage", "Rounded, or top- and bottom-coded"),
        ("mondrian", "wage", "Shown as ranges"),
        ("mondrian", "town", "Shown as groups of values"),
        ("rank-swapping", "wage", "Swapped between records"),
        ("trivial-removal", "town", "All cells suppressed"),
        ("local-suppression(k=5)", "town", "Some cells suppressed"),
        ("synthesis", "wage", "Synthetic values"),
    ],
)
def test_a_column_stands_under_what_happened_to_it(method, column, heading):
    """By what the records say: the headings are those of a release that was made."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"wage": rng.lognormal(8, 1, 60).round(2), "town": rng.choice(list("abcdefghijkl"), 60)}
    )
    kinds = {"wage": Kind.CONTINUOUS, "town": Kind.NOMINAL}
    table = Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())))
    columns = () if method == "synthesis" else (column,)
    plan = Plan(
        Source("in.csv"), schema=table.schema, recipe=Recipe((Step(parse_method(method), columns),)),
        output=Output(path="out.csv"),
    )  # fmt: skip
    part = next(iter(carry_out(plan, Run(seed=5), table=table).parts.values()))
    roles = _roles(part, {each.column: str(ColumnSentence(each, public=True)) for each in part.lost})
    steps = [_step(each, part, parameters=False) for each in part.release.provenance]
    found = by_fate(roles, steps)
    assert column in [each["column"] for each in found[heading]]
    assert sum(map(len, found.values())) == 2
    assert column in loss_sentences(roles, steps)


@pytest.mark.parametrize(
    ("parameters", "centres"),
    [
        ({"centre": "auto"}, {"wage": "mean", "grade": "median", "town": "mode", "born": "median"}),
        ({"centre": {"wage": "mode"}}, {"wage": "mode", "grade": "median", "town": "mode", "born": "median"}),
        ({"show": "centre"}, {"wage": "mean", "grade": "median", "town": "mode", "born": "median"}),
        ({"show": "range"}, {}),
        ({"ratio": 0.1}, {}),
    ],
)
def test_what_a_value_is_follows_the_centre_that_each_column_has(parameters, centres):
    kinds = {"wage": Kind.CONTINUOUS, "grade": Kind.ORDINAL, "town": Kind.NOMINAL, "born": Kind.DATE}
    known = Schema(tuple(Column(name, kind) for name, kind in kinds.items()))
    assert centres_of(Provenance("mdav", parameters, tuple(kinds)), known) == centres


def test_the_note_on_a_mode_says_nothing_that_holds_of_means_alone():
    """A most frequent value is somebody's own, and no mean holds."""
    columns = [
        {
            "column": name,
            "role": "key",
            "kind": "x",
            "outcome": "changed",
            "became": f"50 % of {name} changed",
        }
        for name in ("pay", "grade", "town")
    ]
    centres = {"pay": "mean", "grade": "median", "town": "mode"}
    step = {"method": "mdav", "title": "MDAV", "columns": list(centres), "what": "Do it.", "centres": centres}
    note = change_note({**told(public=True), "roles": columns, "steps": [step]})
    mean, median, mode = note.split("## Replaced by")[1:]
    assert "a person’s own only if they share it" in mean
    assert registry.method("mdav").analyst_note in mean
    for other in (median, mode):
        assert "one person’s own" in other
        assert "no single value was observed" not in other
        assert "means hold" not in other
    assert "- **town**: 50 % of town changed." in mode


def test_the_note_has_a_line_for_what_is_more_than_its_heading_says():
    roles = [
        {"column": "a", "role": "key", "kind": "x", "outcome": "untouched", "became": "a untouched"},
        {
            "column": "b",
            "role": "key",
            "kind": "x",
            "outcome": "untouched",
            "became": "b untouched; gone is 1",
        },
        {"column": "c", "role": "key", "kind": "x", "outcome": "emptied", "became": "c emptied"},
        {"column": "d", "role": "key", "kind": "x", "outcome": "made anew", "became": "d made anew"},
    ]
    note = change_note({**told(public=True), "roles": roles, "steps": []})
    assert "## All cells suppressed\n\nc. No cell has a value.\n" in note
    assert "a, b. Their values are those of the original.\n\n- **b**: untouched; gone is 1.\n" in note
    assert "- **a**" not in note
    assert "- **d**: made anew.\n" in note


def test_the_data_card_says_what_is_missing():
    card = data_card(About(title="Patients", purpose="Research", recipients=("a", "b")), told(public=True))
    assert card.startswith("# Patients\n")
    assert "## Purpose\n\nResearch\n" in card
    assert "## Recipients\n\na; b\n" in card
    assert (
        "## Not stated\n\nDescription, population, reference period, publisher, contact, legal basis, "
        in card
    )
    assert "in the part `[release]` of the plan, as `description`, `population`, `period`, " in card
    assert card.count("ot stated") == 1
    assert "Recipients must not try to re-identify anyone" in card
    assert "| age | continuous | within 5 |" in card
    assert "| name | nominal | Removed |\n" in card


def test_what_the_owner_says_goes_through_the_plan_and_back():
    said = {"release": {"title": "T", "recipients": ["a"], "review_date": "2030-12-31"}}
    plan = Plan.from_dict(said)
    assert plan.about == About(title="T", recipients=("a",), review_date="2030-12-31")
    assert plan.to_dict() == said
    assert not any(name in plan.to_toml() for name in ("purpose", "terms"))


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ({"titel": "T"}, "did you mean `title`"),
        ({"title": 3}, "`title` must be a text"),
        ({"recipients": "all"}, "`recipients` must be a list"),
        ({"recipients": [1]}, "each item of `recipients` must be a text"),
        ({"review_date": "soon"}, "a date as in 2030-12-31"),
    ],
)
def test_faults_of_what_the_owner_says_are_found(part, fault):
    for said in ({"release": part}, {"release": part, "tables": {"a": {}}}):
        with pytest.raises(PlanError, match=fault):
            Plan.from_dict(said)
