"""`gate`: what blocks a plan or a file, in four forms, and the one way past it, which is recorded."""

import json
import stat
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from sfumato.core.measure import Score, Status
from sfumato.core.requirement import Requirement
from sfumato.releasing.decide import RULES, Decision, Finding
from sfumato.releasing.outcome import Judgement
from sfumato.report.findings import as_junit, as_sarif

PLAN = """
requirements = ["k >= {k}"]

[data]
path = "people.csv"

[columns]
name = {{ kind = "nominal", role = "{name}" }}
age = {{ kind = "continuous", role = "key", upper = {upper} }}
town = {{ kind = "nominal", role = "key" }}

[[steps]]
method = "local-suppression"
columns = ["@key"]
parameters = {{ k = 2 }}
"""


@pytest.fixture
def people(tmp_path):
    """Four alike by two, one alone, all with an address that names them."""
    frame = pl.DataFrame(
        {
            "name": [f"sentinel.{i}@example.org" for i in range(5)],
            "age": [30, 30, 40, 40, 50],
            "town": ["A", "A", "B", "B", "C"],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


def plan(tmp_path, *, k=2, name="identifier", upper=100):
    (tmp_path / "plan.toml").write_text(PLAN.format(k=k, name=name, upper=upper))
    return "plan.toml"


def rules(out):
    return [finding["rule"] for finding in json.loads(out)["findings"]]


def test_a_plan_whose_release_meets_everything_may_leave_and_nothing_is_written(run, people, tmp_path):
    code, out, err = run("gate", plan(tmp_path))
    assert code == 0, err
    assert "may be released" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "plan.toml"]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"k": 3}, "requirement-missed"),
        ({"name": "other"}, "identifier-left-in"),  # declared harmless, but it names people
        ({"upper": 35}, "rule-broken"),
    ],
)
def test_what_blocks_a_plan_is_named_by_its_rule(run, people, tmp_path, changed, found):
    code, out, _ = run("gate", plan(tmp_path, **changed), "--format", "json")
    assert code == 1
    assert found in rules(out)
    assert "sentinel" not in out


def test_a_plan_that_requires_nothing_and_one_without_roles_are_blocked(run, people, tmp_path):
    text = PLAN.format(k=2, name="identifier", upper=100)
    (tmp_path / "plan.toml").write_text(text.replace('requirements = ["k >= 2"]', ""))
    assert "nothing-required" in rules(run("gate", "plan.toml", "--format", "json")[1])
    (tmp_path / "plan.toml").write_text(text.replace(', role = "key" }', " }"))
    assert "role-missing" in rules(run("gate", "plan.toml", "--format", "json")[1])


def test_a_file_alone_is_judged_as_it_is_and_what_nobody_decided_counts_as_known(run, tmp_path):
    frame = pl.DataFrame({"sex": ["f", "f", "m", "m"], "fact": ["p", "q", "p", "q"]})
    frame.write_csv(tmp_path / "file.csv")
    code, out, _ = run("gate", "file.csv", "--role", "sex=key", "--require", "k >= 2", "--format", "json")
    found = json.loads(out)
    assert code == 1
    assert not found["met"]  # with `fact` everybody is alone, and nobody has said that others do not know it
    roles = ("--role", "sex=key", "--role", "fact=other")
    assert run("gate", "file.csv", *roles, "--require", "k >= 2")[0] == 0


def test_a_measure_that_needs_the_original_is_not_met_by_a_file_alone(run, people, tmp_path):
    people.drop("name").write_csv(tmp_path / "file.csv")
    roles = ("--role", "age=key", "--role", "town=key", "--require", "dbrl <= 0.9")
    code, out, _ = run("gate", "file.csv", *roles)
    assert code == 1
    assert "original" in out
    blurred = people.drop("name").with_columns(age=pl.lit(38))
    blurred.write_csv(tmp_path / "blurred.csv")
    assert run("gate", "blurred.csv", "--original", "people.csv", "--aligned", *roles)[0] == 0


def test_an_override_opens_the_gate_and_is_recorded_privately(run, people, tmp_path):
    code, out, _ = run(
        "gate", plan(tmp_path, k=3), "--override", "agreed with the owner", "--format", "sarif"
    )
    assert code == 0
    results = json.loads(out)["runs"][0]["results"]
    assert [each["suppressions"][0]["justification"] for each in results] == ["agreed with the owner"]
    ledger = tmp_path / "overrides.private.jsonl"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    run("gate", "plan.toml", "--override", "again")
    said = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [each["reason"] for each in said] == ["agreed with the owner", "again"]
    assert run("gate", "plan.toml", "--override", " ")[0] == 2


def test_junit_has_a_test_for_each_rule_requirement_and_finding(run, people, tmp_path):
    code, out, _ = run("gate", plan(tmp_path, k=3, name="other"), "--format", "junit")
    suite = ET.fromstring(out)
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert (code, suite.get("failures"), suite.get("skipped")) == (1, "2", "0")
    assert len(cases) == int(suite.get("tests")) == len(RULES)  # one rule is broken by the requirement itself
    failed = {name: case.find("failure").get("message") for name, case in cases.items() if len(case)}
    assert set(failed) == {"default: k-anonymity >= 3", "identifier-left-in"}
    assert "not met: k-anonymity is 2" in failed["default: k-anonymity >= 3"]
    assert "sentinel" not in out
    _, out, _ = run("gate", plan(tmp_path), "--format", "junit")
    suite = ET.fromstring(out)
    assert (suite.get("failures"), suite.get("tests")) == ("0", str(len(RULES) + 1))
    run("gate", plan(tmp_path, k=3), "--override", "agreed", "--format", "junit", "--out", "found.xml")
    suite = ET.parse(tmp_path / "found.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_sarif_has_a_result_for_each_finding_whose_rule_is_listed(run, people, tmp_path):
    code, out, _ = run("gate", plan(tmp_path, k=3, name="other"), "--format", "sarif")
    found = json.loads(out)
    (there,) = found["runs"]
    rules_listed = {rule["id"] for rule in there["tool"]["driver"]["rules"]}
    assert (code, found["version"]) == (1, "2.1.0")
    assert set(RULES) < rules_listed
    assert [each["ruleId"] for each in there["results"]] == ["identifier-left-in", "requirement-missed"]
    assert {each["level"] for each in there["results"]} == {"error"}
    assert "sentinel" not in out
    decision = Decision("a file.csv", (), (_estimated(),))
    (note,) = json.loads(as_sarif(decision))["runs"][0]["results"]
    assert note["level"] == "note"
    assert note["ruleId"] in rules_listed
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20file.csv"


def _estimated():
    requirement = Requirement.parse("population-uniqueness <= 0.5 at 90%")
    score = Score(0.1, Status.APPROXIMATE, interval=(0.0, 0.2), confidence=95.0)
    return Judgement(requirement, "default", score)


def test_control_characters_in_a_name_do_not_break_the_xml():
    suite = ET.fromstring(as_junit(Decision("x", (Finding("role-missing", "`a\x01b` has no role"),))))
    assert suite.find("testcase/failure").get("message") == "`a?b` has no role"


def test_json_and_where_the_result_goes(run, people, tmp_path):
    code, out, _ = run("gate", plan(tmp_path, k=3), "--json")
    assert (code, rules(out)) == (1, ["requirement-missed"])
    _, out, _ = run("gate", "plan.toml", "--format", "sarif", "--out", "found.sarif")
    assert not out
    assert json.loads((tmp_path / "found.sarif").read_text())["version"] == "2.1.0"
    assert run("gate", "plan.toml", "--out", "people.csv")[0] == 3  # an original is never overwritten


def test_an_epsilon_whose_bounds_came_from_the_data_is_not_called_private(run, people, tmp_path):
    pytest.importorskip("opendp", reason="noise is drawn by OpenDP")
    text = PLAN.format(k=1, name="identifier", upper=100)
    step = 'method = "private-laplace"\ncolumns = ["age"]\nparameters = { domain = "data" }\n'
    text = text[: text.index('method = "local-suppression"')] + step
    (tmp_path / "plan.toml").write_text(text)
    assert "not-private" in rules(run("gate", "plan.toml", "--format", "json")[1])
    declared = text.replace("upper", "lower = 0, upper").replace('"data"', '"declared"')
    (tmp_path / "plan.toml").write_text(declared + '[output]\npath = "out.csv"\ndrop = ["town"]\n')
    assert "not-private" not in rules(run("gate", "plan.toml", "--format", "json")[1])


def test_a_key_that_only_its_name_speaks_against_is_judged_as_one_where_it_is_shared(run, tmp_path):
    """A hospital's number is no person's; where somebody is alone with one, or it is no key, it may be."""
    roles = ("--role", "oshpd_id=key", "--role", "sex=key", "--require", "k >= 2", "--format", "json")
    frame = pl.DataFrame({"oshpd_id": [7, 7, 3, 3, 9, 9], "sex": ["f", "f", "m", "m", "f", "f"]})
    frame.write_csv(tmp_path / "file.csv")
    assert "identifier-left-in" not in rules(run("gate", "file.csv", *roles)[1])
    others = ("--role", "oshpd_id=other", *roles[2:])
    assert "identifier-left-in" in rules(run("gate", "file.csv", *others)[1])
    frame.head(5).write_csv(tmp_path / "file.csv")
    assert "identifier-left-in" in rules(run("gate", "file.csv", *roles)[1])


DRIFTING = """
requirements = ["k >= 5"]
[data]
path = "2024.csv"
[columns]
age = { kind = "continuous", role = "key" }
town = { kind = "nominal", role = "key" }
[[steps]]
method = "rounding"
columns = ["age"]
parameters = { base = 20 }
"""


def test_the_next_wave_is_rehearsed_in_every_form(run, tmp_path):
    """A tenth of the next wave is of two new towns, in one of which few live."""
    ages, towns = [20 + i % 40 for i in range(400)], ["A", "B"] * 200
    pl.DataFrame({"age": ages, "town": towns}).write_csv(tmp_path / "2024.csv")
    later = [*["C"] * 36, *["D"] * 4, *towns[40:]]
    pl.DataFrame({"age": ages, "town": later}).write_csv(tmp_path / "2025.csv")
    (tmp_path / "plan.toml").write_text(DRIFTING)
    asked = ("gate", "plan.toml", "--series", "2025.csv", "-q")
    code, out, err = run(*asked)
    assert code == 1
    assert "2025.csv: may not be released" in out
    assert "blocks  requirement-missed: default: not met: k-anonymity is 4, must be >= 5; " in out
    assert "for 4 of 400 persons; since `town` moved" in out
    assert "drift  `town` moved: differs by 0.1 (p = " in out
    assert "2025.csv may not be released: 1 problem" in err
    code, out, _ = run(*asked, "--json")
    told = json.loads(out)
    assert (code, told["open"], told["drift"]["failing"][0]["since"]) == (1, False, ["town"])
    assert [each["column"] for each in told["drift"]["columns"]] == ["age", "town"]
    assert run(*asked, "--json")[1] == out
    for form, mark in (("junit", "<testsuite"), ("sarif", '"version": "2.1.0"')):
        code, out, _ = run(*asked, "--format", form)
        assert (code, mark in out, "since `town` moved" in out) == (1, True, True)
    assert run("gate", "plan.toml", "--series", "2024.csv", "-q")[0] == 0
    assert run(*asked, "--override", "no")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2024.csv", "2025.csv", "plan.toml"]
