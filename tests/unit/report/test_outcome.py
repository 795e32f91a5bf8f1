"""The report of one release: what both forms say, what the public one must not, and that none crashes."""

import hashlib
import html
import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from schemas import faults
from sfumato.core import measure, registry
from sfumato.core.approaches import Approach
from sfumato.core.measure import Scaling, Score
from sfumato.core.requirement import Requirement, parse_method
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import About, Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out
from sfumato.report.evidence_file import schema
from sfumato.report.fates import loss_sentences
from sfumato.report.outcome import _of_each, _test
from sfumato.report.page import as_json
from sfumato.report.release_result import Released
from sfumato.report.release_scores import measure_release
from sfumato.report.score_entry import score_entry
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.suda import Suda

SEED, HOME = 918273645546372819, "Homequux"
KINDS = {
    "age": (Kind.CONTINUOUS, Role.KEY),
    "sex": (Kind.NOMINAL, Role.KEY),
    "region": (Kind.NOMINAL, Role.KEY),
    "income": (Kind.CONTINUOUS, Role.SENSITIVE),
    "illness": (Kind.NOMINAL, Role.SENSITIVE),
}
KEYS = ("age", "sex", "region")


def people(n: int = 90, names=tuple(KINDS), *, seed: int = 3) -> Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    frame = pl.DataFrame({
        "age": age.astype(float), "sex": rng.choice(["m", "f"], n),
        "region": rng.choice(["north", "south", "east"], n),
        "income": (age * 300 + rng.lognormal(10, 0.6, n)).round(2),
        "illness": rng.choice(["none", "flu", "gout", "cold"], n), "person": np.arange(n) // 2,
    })  # fmt: skip
    kinds = {**KINDS, "person": (Kind.NOMINAL, Role.PERSON)}
    return Table(frame.select(names), Schema(tuple(Column(name, *kinds[name]) for name in names)))


def made(table: Table, *steps: Step, require=(), profile=None, control=0.0, **output) -> Released:
    plan = Plan(
        data=Source(f"{HOME}/people.csv"), schema=table.schema, recipe=Recipe(steps), control=control,
        requirements=tuple(Requirement.parse(each) for each in require),
        output=Output(path="out.csv", **output),
    )  # fmt: skip
    plan = profile.apply_to(plan) if profile else plan
    run = Run(seed=SEED)
    return Released(carry_out(plan, run, table=table), profile, "as the plan says", run)


def step(method: str, columns=KEYS) -> Step:
    return Step(parse_method(method), tuple(columns))


CASES = {
    "generalised": lambda: made(people(), step("mondrian(k=5)"), require=["k >= 5"]),
    "noise": lambda: made(people(), step("correlated-noise", ("age", "income"))),
    "synthetic": lambda: made(people(), step("synthesis", KINDS)),
    "copies": lambda: made(people(), step("pram", ("sex", "region")), copies=2),
    "several tables": lambda: made(
        people(names=(*KEYS, "illness")), step("anatomy(l=2)", KEYS), require=["l >= 2"]
    ),
    "numbers only": lambda: made(people(names=("age", "income")), step("mdav(k=3)", ("age", "income"))),
    "categories only": lambda: made(people(names=("sex", "region", "illness")), step("pram", ("sex",))),
    "one record": lambda: made(people(1), step("rounding", ("age",))),
    "no record": lambda: made(people(0)),
    "no keys": lambda: made(people(names=("income", "illness")), step("rounding", ("income",))),
    "no sensitive columns": lambda: made(people(names=("age", "sex")), step("mdav(k=3)", ("age",))),
    "persons": lambda: made(people(names=(*KINDS, "person")), step("mondrian(k=3)")),
    "nothing done": lambda: made(people()),
    "missed": lambda: made(people(), require=["k >= 50"]),
    "rehearsed": lambda: made(people(), step("mondrian(k=5)"), control=0.4),
    "for somebody": lambda: made(people(), step("mondrian(k=10)"), profile=Profile.load("scientific")),
}


@cache
def told(case: str):
    return CASES[case]().tell(generated="2026-11-16")


def texts(case: str, *, public: bool) -> str:
    return told(case).page(public=public) + as_json(told(case).to_dict(public=public))


@pytest.mark.parametrize("public", [True, False], ids=["public", "internal"])
@pytest.mark.parametrize("case", CASES)
def test_every_release_has_both_pages(case, public):
    page, twin = told(case).page(public=public), told(case).to_dict(public=public)
    assert json.loads(as_json(twin)) == json.loads(json.dumps(twin))
    assert not faults(json.loads(as_json(twin)), schema("report"), schema("report"))
    assert len(page) < 3e6
    assert ("Public form." in page) is public
    assert ("do not publish" in page) is not public
    charts = set(re.findall(r'id="chart-([^"]+)"', page))
    specs = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1])
    assert charts == set(specs)
    assert "Steps" in page
    assert "default-src &#39;none&#39;" in page


def test_what_the_report_tells_is_what_was_judged_and_nothing_is_measured_twice(monkeypatch):
    released = made(people(), step("mondrian(k=5)"), require=["k >= 5"])
    judged = released.part.judgements[0].score
    asked = []
    real = KAnonymity.measure
    monkeypatch.setattr(KAnonymity, "measure", lambda *all: asked.append(1) or real(*all))
    monkeypatch.setattr(measure, "approaches", lambda evidence, **_: (Approach(evidence),))  # one is counted
    twin = released.tell()
    for public in (True, False):
        twin.to_dict(public=public)
        twin.page(public=public)
    own = [each for each in twin.to_dict(public=False)["risks"] if each["measure"] == "k-anonymity"]
    assert [each["value"] for each in own if each["scenario"] == "default"] == [judged.value]
    # of the release as it is known to each other intruder, and of the original once to each intruder
    assert len(asked) == 2 * len(own) - 1


def test_intruders_who_know_the_same_are_one_and_what_was_judged_of_each_is_taken():
    table = people(names=("sex", "region", "illness"))  # categories only: both scenarios know them
    twin = made(table, profile=Profile.load("scientific")).tell().to_dict(public=False)
    assert [(each["name"], each["judged"]) for each in twin["scenarios"]] == [
        ("acquaintance, matching", True)
    ]
    scores = {each["requirement"]: each["score"]["value"] for each in twin["requirements"]}
    risks = {each["measure"]: each["value"] for each in twin["risks"]}
    assert scores == {name: risks[name.partition("(")[0].partition(" ")[0]] for name in scores}


def test_the_numbers_are_those_that_evaluate_gives():
    """Uniques, classes and gauges by hand: five keys that two and three records share, one alone."""
    frame = pl.DataFrame({"sex": ["m", "m", "f", "f", "f", "x"], "ill": ["a", "b", "a", "a", "a", "b"]})
    schema = Schema((Column("sex", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE)))
    twin = made(Table(frame, schema)).tell().to_dict(public=False)
    risks = {each["measure"]: each for each in twin["risks"]}
    assert (risks["k-anonymity"]["value"], risks["uniqueness"]["value"]) == (1, 1 / 6)
    assert risks["k-anonymity"]["original"] == 1
    found = twin["individual_risk"]
    # chances of 1/2, 1/3 and 1: one record above each end of the bars, and all above 0.2
    assert dict(zip(found["ends"], found["release"], strict=True)) == {1 / 3: 3, 0.5: 2, 1.0: 1}
    assert found["at_risk"] == {"original": 6, "release": 6}
    assert found["expected"]["release"] == pytest.approx(3)
    gauge = twin["gauges"][0]["release"]
    assert (gauge["highest"], gauge["mean"], gauge["share_at_risk"]) == (1, 0.5, 1)
    assert twin["combinations"]["keys"] == [{"keys": 1, "release": 1, "original": 1}]
    # all f have a, and x is alone: four of six values are disclosed for sure
    assert twin["learnt"]["columns"][0]["attribute-disclosure"]["release"] == pytest.approx(4 / 6)
    assert twin["learnt"]["violations"] == [
        {"requirement": "l-diversity >= 2", "scenario": "default", "records": 4, "of": 6}
    ]


def test_a_profile_has_what_it_asks_to_be_reported_and_recipients_are_judged_by_theirs():
    twin = told("for somebody").to_dict(public=False)
    names = {each["measure"] for each in twin["listed"]}
    profile = Profile.load("scientific")
    assert names == {*map(str, profile.report), str(profile.rank_by)}
    rows = {each["recipient"]: each for each in twin["recipients"]}
    assert list(rows) == ["owner", "processor", "researcher", "public"]
    assert rows["owner"]["singling_out"].startswith("possible")
    assert rows["researcher"]["singling_out"].startswith("met: k-anonymity >= 3")
    assert all(each["reason"] for each in twin["requirements"])
    public = {
        each["recipient"]: each["meant"] for each in told("for somebody").to_dict(public=True)["recipients"]
    }
    assert public == {"owner": True, "processor": False, "researcher": True, "public": False}


def test_without_a_control_it_says_so_and_with_one_there_are_rates():
    alone = told("generalised")
    said = alone.to_dict(public=False)["tests"]
    assert set(said) == {"singling out", "linkability", "inference"}
    assert all(each.startswith("not tested: ") and "--control 0.2" in each for each in said.values())
    assert "Attacks compared with a control group: not tested: there is no control group" in alone.page(
        public=False
    )
    assert "tests" not in alone.to_dict(public=True)
    twin = told("rehearsed").to_dict(public=False)
    assert twin["tests"]["linkability"] == "tested by Linkability"
    assert "Membership inference" in twin["tests"]["inference"]
    assert "It does not test" in told("rehearsed").page(public=False)
    attack = next(each for each in twin["attacks"]["inference"] if each["measure"] == "inference")
    assert attack["control"] is not None
    assert attack["baseline"] is not None
    assert attack["interval"][0] <= attack["value"] <= attack["interval"][1]


def test_whether_a_threat_was_tested_is_said_of_each_attack_and_table():
    number, none = Score(0.1), Score.refused("there is one column")
    attacks = [registry.measure(name)() for name in ("inference", "membership")]
    inference, membership = (each.title for each in attacks)
    partly = _test(list(zip(attacks, (number, none), strict=True)), has_control=True)
    assert partly == f"tested by {inference}; not by {membership}: there is one column"
    assert _test([(attacks[0], none)], has_control=True) == f"not tested: {inference}: there is one column"
    assert _test([], has_control=True).startswith("not tested: no attack")
    tables = {name: {"tests": {"inference": said}} for name, said in (("a", "tested"), ("b", "not tested"))}
    assert _of_each(tables, "inference") == "a: tested; b: not tested"
    assert _of_each({"a": tables["a"]}, "inference") == "tested"


def test_synthetic_records_are_nobodys_and_classes_say_nothing_of_them():
    twin = told("synthetic").to_dict(public=False)
    assert twin["class_sizes"] is None
    assert twin["individual_risk"] is None
    reasons = {each["measure"]: each["reason"] for each in twin["not_estimated"]}
    assert "synthetic records, which are nobody's" in reasons["k-anonymity"]
    assert "belong to no real person" in told("synthetic").page(public=False)


def test_of_copies_the_worst_counts():
    """One copy that is all alike and one as it was: what is told is that of the second."""
    table = people()
    released = made(table, copies=2)
    alike = released.part.release.table.with_values("sex", pl.Series(["m"] * len(table)))
    from dataclasses import replace

    from sfumato.core.release import Release

    coarse = replace(Release.unchanged(table), tables=Release.of(alike).tables)
    for order in ((coarse, released.part.release), (released.part.release, coarse)):
        part = replace(released.part, release=order[0], further=(order[1],))
        found = measure_release(part, released.run)
        assert found.utilities["cells-changed"][1].value > 0
        assert found.score_of(KAnonymity()).value == 1


def test_a_page_of_several_tables_tells_each(tmp_path):
    first, second = people(60), people(60, seed=4)
    for name, table in (("one", first), ("two", second)):
        table.frame.write_csv(tmp_path / f"{name}.csv")
    columns = "\n".join(f'{n} = {{ kind = "{k}", role = "{r}" }}' for n, (k, r) in KINDS.items())
    text = "".join(
        f'[tables.{name}]\n[tables.{name}.data]\npath = "{name}.csv"\n'
         f"[tables.{name}.columns]\n" + columns
        + f'\n[tables.{name}.output]\npath = "{name}-out.csv"\n'
        for name in ("one", "two")
    )  # fmt: skip
    (tmp_path / "plan.toml").write_text(text)
    run = Run(seed=1)
    plan = Plan.read(tmp_path / "plan.toml")
    told = Released(carry_out(plan, run), None, "as the plan says", run).tell()
    for public in (True, False):
        assert list(told.to_dict(public=public)["tables"]) == ["one", "two"]
        page = told.page(public=public)
        assert "one: Steps" in page
        assert "two: Steps" in page
        charts = re.findall(r'id="chart-([^"]+)"', page)
        assert len(charts) == len(set(charts))


# The brief, which an officer signs --------------------------------------------------------------------------


def header(page: str) -> str:
    return re.search(r"<header>(.*?)</header>", page, re.DOTALL)[1]


def test_the_first_page_says_against_whom_what_was_lost_of_which_file_and_who_decided(tmp_path):
    table = people(60)
    guess = replace(table.schema["sex"], role_basis="guessed: the name suggests a key")
    answer = replace(table.schema["age"], role_basis="answered")
    table = Table(table.frame, table.schema.replace(guess, answer))
    table.frame.write_csv(tmp_path / "people.csv")
    plan = Plan(
        data=Source("people.csv"), schema=table.schema, recipe=Recipe((step("mondrian(k=5)"),)),
        requirements=(Requirement.parse("k >= 5"),), output=Output(path="out.csv"), folder=tmp_path,
        about=About(purpose="Research", recipients=("a", "b")),
    )  # fmt: skip
    run = Run(seed=SEED)
    found = Released(carry_out(plan, run, table=table), None, "as the plan says", run).tell()
    first = html.unescape(header(found.page(public=False)))
    assert "Judged against an intruder who knows age, region and sex." in first
    assert "Information loss. age given as ranges, typically 29 wide" in first
    assert re.search(r"Unchanged: [^.]*income and illness\.", first)
    assert hashlib.sha256((tmp_path / "people.csv").read_bytes()).hexdigest() in first
    assert table.digest.hex() in first
    assert str(tmp_path) not in first
    for said in ("Research", "a; b", "not stated", "sfumato (not confirmed): 1 column"):
        assert said in first
    for said in ("a person (question answered): 1 column", "the plan or an option: 3 columns"):
        assert said in first
    for line in ("Sign-off", "Prepared by", "Approved by", ">signature<", ">function<"):
        assert line in first
    public = header(found.page(public=True))
    assert "Information loss. " in public
    assert "Research" in public
    for own in ("Judged against", "SHA-256", "Sign-off", "people.csv", table.digest.hex()):
        assert own not in found.page(public=True)


def test_the_first_page_of_what_nobody_judged_says_so():
    for case in ("nothing done", "synthetic"):
        assert "Not judged: there is no requirement on risk." in told(case).page(public=False)
    vacuous = made(people(), require=["k >= 1"]).tell().page(public=False)
    assert "Not judged: there is no requirement on risk." in vacuous
    assert "in memory" not in told("nothing done").page(public=False)


def test_many_columns_are_counted_in_the_brief():
    columns = [
        {"column": f"c{n}", "role": "key", "outcome": "untouched", "became": f"c{n} untouched"}
        for n in range(5)
    ]
    assert loss_sentences(columns, []) == "Information loss. Unchanged: 5 columns."


def test_what_a_step_counted_on_its_way_is_told_with_the_step():
    """How many combinations a search looked at says nothing of how safe the release is."""
    page = made(people(), step("global-recoding(k=3)"), require=["k >= 3"]).tell()
    (taken,) = page.to_dict(public=False)["steps"]
    assert taken["notes"]
    whole = html.unescape(page.page(public=False)).replace("`", "")
    safe = whole[whole.index(">Requirements</h2>") : whole.index(">Columns</h2>")]
    how = whole[whole.index(">Steps</h2>") : whole.index("<footer>")]
    for note in taken["notes"]:
        assert note.replace("`", "") not in safe
        assert note.replace("`", "") in how
    assert "notes" not in page.to_dict(public=True)["steps"][0]


def test_an_interval_of_everything_is_not_known():
    dbrl, k = Requirement.parse("dbrl <= 0.1").measure, KAnonymity()
    entry = score_entry(dbrl, Score(0.1, interval=(0.0, 1.0)))
    assert entry["between"] == "unknown"
    assert "between 0 and 1" not in entry["words"]
    assert score_entry(dbrl, Score(0.1, interval=(0.0, 0.5)))["between"] == "0 – 0.5"
    assert score_entry(dbrl, Score(0.25, interval=(0.25, 0.25)))["between"] == "0.25"
    assert score_entry(k, Score(1, interval=(0.0, 1.0)))["between"] == "0 – 1"
    assert score_entry(dbrl, Score(0.1))["between"] is None


# What may not be told ---------------------------------------------------------------------------------------

RARE, EXTREME, WINDOW, LEVEL = "Sentinel-Cell", 98765432.125, 7.31313, 0.987654


@cache
def guarded():
    table = people(400)
    frame = table.frame.with_columns(
        pl.Series("region", [RARE] * 3 + table.frame["region"].to_list()[3:]),
        pl.Series("income", [EXTREME, -EXTREME, *table.frame["income"].to_list()[2:]]),
        pl.Series("name", [f"Person-{i}" for i in range(400)]),
    )
    columns = (*table.schema.columns, Column("name", Kind.NOMINAL, Role.IDENTIFIER))
    table = Table(frame, Schema(columns))
    steps = (
        step(f"rank-swapping(window={WINDOW})", ("age", "income")),
        step("pram(retain=0.717171)", ("sex",)),
    )
    return made(table, *steps, require=[f"dbrl <= {LEVEL}"]).tell()


SECRETS = (
    RARE, "98765432", "98,765,432", str(WINDOW), "0.717171", str(LEVEL), str(SEED), f"{SEED:x}", "Person-",
    HOME, "people.csv", "out.csv",
)  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_the_public_form_holds_no_cell_parameter_threshold_path_or_seed(secret):
    public = guarded().page(public=True) + as_json(guarded().to_dict(public=True))
    assert secret not in public


def test_the_internal_form_has_parameters_and_thresholds_and_still_no_seed_path_or_name():
    internal = guarded().page(public=False) + as_json(guarded().to_dict(public=False))
    assert str(WINDOW) in internal
    assert str(LEVEL) in internal
    for secret in (str(SEED), "Person-", HOME, "out.csv"):
        assert secret not in internal
    assert "people.csv" in internal  # an officer files which file it was, and not where that lies


def test_no_risk_and_no_count_of_the_original_is_public():
    """Whatever the measures of risk and the judgement say differs from what the public form says."""
    public = guarded().to_dict(public=True)
    assert set(public) == {
        "sfumato", "kind", "public", "generated", "title", "about", "verdict", "profile", "records", "columns",
        "synthetic", "roles", "steps", "requirements", "attacks", "recipients", "lost", "utility", "listed",
        "not_estimated", "rejected", "notes", "warnings", "strip", "distributions", "not_drawn", "mosaics",
        "correlations",
    }  # fmt: skip
    assert public["attacks"] is None
    assert public["records"] == {"released": 400}
    assert public["requirements"] == {"met": 1, "of": 1}
    assert set(public["strip"]) == {"losses"}
    assert all(
        set(each) == {"method", "title", "columns", "what", "vetted", "centres", "analyst_note"}
        for each in public["steps"]
    )
    risks = [cls.title for cls in registry.measures().values() if cls.aspect == "risk"]
    page = guarded().page(public=True)
    assert not [title for title in risks if f">{title}<" in page or f'"{title}"' in page]


def test_how_far_a_few_values_moved_is_not_public():
    """Who knows by how much the one value that changed was moved has its original."""
    table = people(400)
    released = made(table, step("rounding", ("age",)))
    from dataclasses import replace

    from sfumato.core.release import Release
    from sfumato.study.column_changes import losses

    values = table.frame["income"].to_numpy().copy()
    values[7] += 4321.0
    release = replace(
        Release.unchanged(table), tables=Release.of(table.with_values("income", pl.Series(values))).tables
    )
    part = replace(released.part, release=release, lost=losses(table, release))
    told = Released(replace(released.outcome, parts={"": part}), None, "", released.run).tell()
    lost = {each["column"]: each["sentence"] for each in told.to_dict(public=True)["lost"]}
    assert lost["income"] == "fewer than 10 values of income changed"
    assert "4,300" not in told.page(public=True)
    assert "4,300" in told.page(public=False)


def test_a_score_in_words_says_what_it_is_held_against():
    from sfumato.report.score_entry import score_words

    said = score_words(KAnonymity(), Score(3.0))
    assert said == "3, higher is safer"
    assert score_words(KAnonymity(), Score.refused("there are no keys")) == "no number: there are no keys"


def test_what_takes_long_of_large_tables_says_that_it_must_be_asked_for(monkeypatch):
    monkeypatch.setattr(Suda, "scales", Scaling(exact_up_to=50))
    told = made(people(), step("mondrian(k=5)")).tell().to_dict(public=False)
    (left,) = [each for each in told["not_estimated"] if each["measure"] == "suda"]
    assert "must be asked for by name" in left["reason"]
    assert told["combinations"]["suda"] == []
