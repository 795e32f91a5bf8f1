"""The report of a comparison: what it says, what it must not say, and that page and twin are one."""

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from schemas import faults
from sfumato.core.release import Release
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, WriteError
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.step import Step
from sfumato.report import render, twin, write_report
from sfumato.report.charts import charts
from sfumato.report.content import public_digits
from sfumato.report.evidence_file import schema
from sfumato.risk.ranks import PermutationDistance
from sfumato.study.compare import MethodAtLevel, ReplicateMean, Study
from sfumato.study.frontier import Point
from sfumato.study.level import LevelResult, LevelStatus, Target
from sfumato.utility.transport import EarthMoversDistance

WINDOW, RATIO = 7.31313, 0.626262  # parameters that stand nowhere else
EVIL = "</script><script>alert(1)</script><!-- & \u2028"


def people(n: int = 400, *, seed: int = 1) -> Table:
    rng = np.random.default_rng(seed)
    income = np.exp(rng.normal(10, 0.5, n))
    income[:2] = [-98765.4321, 7654321.1234]  # the ends
    frame = pl.DataFrame({
        "income": income,
        "age": rng.integers(18, 90, n),
        "region": ["Rare-Sentinel"] * 3 + rng.choice(["North", "South", "East"], n - 3).tolist(),
        "name": [f"Person-{i}" for i in range(n)],
    })  # fmt: skip
    return Table(
        frame.with_columns(pl.when(pl.col("age") == 20).then(None).otherwise(pl.col("age")).alias("age")),
        Schema((
            Column("income", Kind.CONTINUOUS, Role.KEY, label="Yearly income"),
            Column("age", Kind.CONTINUOUS, Role.KEY),
            Column("region", Kind.NOMINAL, Role.SENSITIVE),
            Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        )),
    )  # fmt: skip


def moved(table: Table, name: str = "income") -> Release:
    values = table.frame[name].to_numpy()
    return Release.of(table.with_values(name, pl.Series(np.roll(values, 1) * 1.01)))


def swapping(table: Table, columns: tuple[str, ...] = ("income", "age"), **facts) -> MethodAtLevel:
    level = LevelResult(
        Step(RankSwapping(window=WINDOW), columns),
        "window",
        WINDOW,
        0.05,
        LevelStatus.WITHIN,
        {3.939393: 0.04},
    )
    facts = {
        "held": ReplicateMean(0.0501, 0.0002, 5),
        "ranked": ReplicateMean(0.0123, 0.0004, 5),
        "rank": 1,
        **facts,
    }
    return MethodAtLevel(level, example=facts.pop("example", moved(table, columns[0])), **facts)


def noise(table: Table, columns: tuple[str, ...] = ("income", "age"), **facts) -> MethodAtLevel:
    level = LevelResult(Step(CorrelatedNoise(ratio=RATIO), columns), "ratio", RATIO, 0.05, LevelStatus.WITHIN)
    facts = {
        "held": ReplicateMean(0.0499, 0.0002, 5),
        "ranked": ReplicateMean(0.0246, 0.0006, 5),
        "rank": 2,
        **facts,
    }
    return MethodAtLevel(level, example=facts.pop("example", moved(table, columns[0])), **facts)


def unreachable(columns: tuple[str, ...] = ("income", "age")) -> MethodAtLevel:
    return MethodAtLevel(
        LevelResult(
            Step(CorrelatedNoise(ratio=RATIO), columns), "ratio", RATIO, 0.0864, LevelStatus.UNREACHABLE
        )
    )


def study(table: Table, *outcomes: MethodAtLevel, **facts) -> Study:
    points = tuple(
        Point("rank-swapping", "Rank swapping", "window", value, 0.01 * i, 0.004 * i, on_front=True)
        for i, value in enumerate((1.171717, 2.272727, 5.474747, 20.676767), start=1)
    )
    target = Target(PermutationDistance(), 0.05)
    given = {"target": target, "ranked_by": EarthMoversDistance(), "points": points, "repeats": 5, **facts}
    return Study(original=table, outcomes=outcomes, **given)


@pytest.fixture(scope="module")
def table() -> Table:
    return people()


@pytest.fixture(scope="module")
def even(table: Table) -> Table:
    """The same without the ends, of which each makes up most of a mean."""
    return table.take(np.arange(2, len(table)))


@pytest.fixture(scope="module")
def compared(table: Table) -> Study:
    return study(table, swapping(table), noise(table))


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.scripts: list[tuple[dict, str]] = []
        self.text: list[str] = []
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._open != "style":
            self.text.append(data)

    def embedded(self, name: str) -> dict:
        return next(json.loads(text) for attrs, text in self.scripts if attrs.get("id") == name)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def told_publicly(given: Study) -> str:
    """All of a public page but its libraries, and its twin."""
    page = Page(render(given, public=True))
    own = [text for attrs, text in page.scripts if attrs]
    return "\n".join([page.words, *own, *(str(tag) for tag in page.tags)])


# Page and twin -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("public", [False, True])
def test_the_page_holds_exactly_its_twin_and_the_charts_drawn_from_it(compared, public):
    told = twin(compared, public=public, generated="today")
    page = Page(render(compared, public=public, generated="today"))
    assert page.embedded("twin") == json.loads(json.dumps(told, allow_nan=False))
    assert not faults(page.embedded("twin"), schema("study"), schema("study"))
    assert page.embedded("charts") == json.loads(json.dumps(charts(told), allow_nan=False))


@pytest.mark.parametrize("public", [False, True])
def test_the_same_study_gives_the_same_page(compared, public):
    assert render(compared, public=public) == render(compared, public=public)


def test_every_chart_has_its_place_on_the_page_and_says_what_it_shows(compared):
    page = Page(render(compared, public=False))
    places = {a["id"]: a for _, a in page.tags if a.get("id", "").startswith("chart-")}
    specs = page.embedded("charts")
    assert set(places) == {f"chart-{name}" for name in specs}
    assert {"ranking", "map", "shape-0", "quantiles-0", "correlation-difference"} <= set(specs)
    assert all(places[f"chart-{name}"]["aria-label"] == spec["description"] for name, spec in specs.items())


def test_the_page_allows_its_own_scripts_and_no_connection(compared):
    page = Page(render(compared, public=True))
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy
    code = [text for attrs, text in page.scripts if "type" not in attrs]
    assert len(code) == 4
    for text in code:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_loads_nothing(compared):
    page = Page(render(compared, public=False))
    assert not [tag for tag, a in page.tags if {"src", "data", "action"} & set(a)]
    assert all(a["href"].startswith("#") for tag, a in page.tags if "href" in a)
    assert "http" not in json.dumps([page.embedded("charts"), page.embedded("twin")])
    for name in ("report.html.j2", "report.css"):
        assert "://" not in files("sfumato.report").joinpath("templates", name).read_text("utf-8")


def test_the_libraries_can_stand_inside_a_script_element():
    for name in ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js", "report.js"):
        text = files("sfumato.report").joinpath("static", name).read_text("utf-8").lower()
        assert "</script" not in text
        assert "<!--" not in text


def test_each_library_has_its_licence():
    text = files("sfumato.report").joinpath("static", "LICENSES.txt").read_text("utf-8")
    for name in ("vega 6.4.0", "vega-lite 6.4.3", "vega-embed 7.3.0"):
        assert name in text
    assert text.count("Redistributions in binary form must reproduce") == 3


@pytest.mark.parametrize("public", [False, True])
def test_a_column_called_like_a_script_is_harmless(public):
    plain = people()
    column = Column(EVIL, Kind.CONTINUOUS, Role.KEY, label=EVIL)
    nasty = Table(
        plain.frame.select(pl.col("income").alias(EVIL), pl.lit(EVIL).alias("region")),
        Schema((column, Column("region", Kind.NOMINAL, Role.KEY))),
    )
    given = study(nasty, swapping(nasty, (EVIL,)))
    html = render(given, public=public, generated=EVIL)
    page = Page(html)
    assert len(page.scripts) == 6
    assert "alert(1)</script>" not in html
    assert not [tag for tag, _ in page.tags if tag == "alert"]
    assert page.embedded("twin")["distributions"][0]["column"] == EVIL


# What is said ------------------------------------------------------------------------------------------


def test_the_verdict_names_the_winner_and_its_lead(compared):
    first, lead = twin(compared, public=False)["verdict"]
    assert "Rank swapping ranks first, with Earth mover's distance 0.01230" in first
    # 0.0123 is half of 0.0246
    assert "50 % lower than the next, Correlated noise (0.02460)" in lead
    assert "more than chance explains" in lead


def test_a_tie_is_called_a_tie(table):
    given = study(table, swapping(table, tied_with=(1,)), noise(table))
    told = twin(given, public=False)
    assert "treat them as tied" in told["verdict"][1]
    assert "the tolerance (± 1%)" in told["verdict"][1]
    assert told["outcomes"][0]["remark"] == "tied with Correlated noise"


def test_the_loss_over_the_tolerance_is_told_and_in_public_no_finer_than_the_rest(table, even):
    ends = (0.0118432, 0.0131579)
    page = render(study(table, swapping(table, ranked_range=ends), noise(table)), public=False)
    assert "range within ± 1 %" in Page(page).words
    assert "0.01184 to 0.01316" in Page(page).words
    told = twin(study(even, swapping(even, ranked_range=ends)), public=True)["outcomes"][0]
    digits = [public_digits(end, grain=1 / len(even)) for end in ends]
    assert told["ranked_range"] in (None, digits)
    assert (told["ranked_range"] is None) == (told["ranked"] is None)


@pytest.mark.parametrize("public", [False, True])
def test_a_method_that_cannot_reach_the_level_is_said_with_its_best(table, public):
    given = study(table, swapping(table), unreachable())
    told = twin(given, public=public)
    sentence = told["verdict"][-1]
    assert ("0.0880" if public else "0.0864") in sentence  # of 400 records 35
    assert ("cannot reach 0.05" in sentence) is public
    assert ("ratio" in sentence) is not public
    assert "m1" not in told["correlations"]["releases"]
    assert "cannot reach 0.05" in Page(render(given, public=public)).words


def test_a_study_in_which_nothing_reaches_the_level_still_has_a_report(table):
    given = study(table, unreachable(), points=())
    page = Page(render(given, public=False))
    assert "None of the methods compared can reach Permutation distance 0.05." in page.words
    assert "map" not in page.embedded("charts")
    assert "correlation-release" not in page.embedded("charts")


def test_one_method_alone_is_said_to_be_alone(table):
    assert twin(study(table, swapping(table)), public=True)["verdict"][1] == "It is the only method compared."


def test_estimates_are_marked(even):
    estimate = ReplicateMean(0.0123, 0.0004, 5, approximate=True)
    given = study(even, swapping(even, ranked=estimate), noise(even), unreachable())
    page = Page(render(given, public=True))
    assert f"{given.ranked_by.title} is estimated from samples (≈), not exact." in page.words
    assert "≈ 0.013" in page.words  # of 400 records five
    assert "≈ 0.0501" not in page.words


def test_public_scores_have_two_digits(even):
    """With sixteen an intruder who has the release solves for the one value that it hides."""
    exact = ReplicateMean(0.012345678901234, 0.000456789012345, 5)
    given = study(even, swapping(even, ranked=exact, held=exact, scores={"dbrl": exact}), noise(even))
    for outcome in twin(given, public=True)["outcomes"]:
        for spread in (outcome["held"], outcome["ranked"], *outcome["scores"].values()):
            for value in (spread["mean"], spread["deviation"]):
                assert value == float(f"{value:.2g}")
        assert outcome["level"] == float(f"{outcome['level']:.2g}")
    assert "0.0123456" not in render(given, public=True)


def test_public_scores_are_no_finer_than_one_record(even):
    """Where one record makes most of a small mean, two digits of it tell that record's value."""
    exact = ReplicateMean(1.4 / len(even), 0.3 / len(even), 5)
    given = twin(study(even, swapping(even, ranked=exact), noise(even)), public=True)
    ranked = given["outcomes"][0]["ranked"]
    assert (ranked["mean"], ranked["deviation"]) == (float(f"{1 / len(even):.2g}"), 0)


def test_public_losses_that_one_record_makes_up_are_not_told(compared):
    """Nor their lines; what is a share of the people is."""
    told = twin(compared, public=True)
    assert [each["ranked"] for each in told["outcomes"]] == [None, None]
    assert all(each["held"]["mean"] > 0 for each in told["outcomes"])
    assert told["map"] == []
    words = Page(render(compared, public=True)).words
    assert "is not published: a few people account for most of it" in words
    assert "Its lead over the next, Correlated noise, is not published" in words


@pytest.mark.parametrize(("score", "side"), [(0.06, " on the safe side"), (0.049, "")])
def test_the_nearest_found_is_said_to_be_that_and_not_more(table, score, side):
    """A permutation distance is safer when it is higher; nobody looked at every value of the parameter."""
    outcome = swapping(table)
    outcome = replace(outcome, level=replace(outcome.level, reached=LevelStatus.NEAREST, score=score))
    told = twin(study(table, outcome), public=True)
    assert told["outcomes"][0]["remark"] == f"the nearest to 0.05 that was found{side}"


def test_numbers_of_a_table_line_up(compared):
    words = Page(render(compared, public=False)).words
    assert "0.01230 ± 0.00050" in words
    assert "0.02460 ± 0.00074" in words


def test_a_method_compared_twice_has_two_names(table):
    told = twin(study(table, swapping(table), swapping(table, rank=2)), public=False)
    assert [o["label"] for o in told["outcomes"]] == ["Rank swapping (1)", "Rank swapping (2)"]
    assert len({o["color"] for o in told["outcomes"]}) == 2


def test_utility_can_be_held_and_risk_compared(table):
    given = study(
        table, swapping(table), target=Target(EarthMoversDistance(), 0.05), ranked_by=PermutationDistance()
    )
    page = Page(render(given, public=False))
    assert "1 method at equal utility" in page.words
    rule = json.dumps(page.embedded("charts")["map"])
    assert '"y": {"field": "level"' in rule


def test_both_forms_say_which_they_are(compared):
    assert "Public form." in Page(render(compared, public=True)).words
    warning = "Internal form: contains details that help an intruder; do not publish."
    assert warning in Page(render(compared, public=False)).words


def test_the_glossary_explains_the_measures_and_cites(compared):
    words = Page(render(compared, public=True)).words
    assert "Least work that turns the original distribution into the released one." in words
    assert "risk; higher is safer; from 0 to 1" in words
    assert "Controlled data-swapping techniques" in words


# What is not said --------------------------------------------------------------------------------------


def test_the_public_form_holds_no_parameter(table):
    text = told_publicly(study(table, swapping(table), noise(table), unreachable()))
    for secret in (WINDOW, RATIO, 3.939393, 1.171717, 2.272727, 5.474747, 20.676767):
        assert f"{secret:.3g}" not in text, secret
    assert "suppressed" in text
    assert not re.search(r"\btried\b\"", text)


def test_the_internal_form_holds_the_parameters(compared):
    html = render(compared, public=False)
    assert str(WINDOW) in html
    assert "window = 7.313 %" in html
    assert "3.939393" in html


def test_the_public_form_holds_no_end_no_rare_value_and_no_identifier(compared):
    text = told_publicly(compared)
    for cell in ("98765", "7654321", "Rare-Sentinel", "Person-"):
        assert cell not in text


def test_no_form_shows_identifiers_even_when_they_are_protected(table):
    outcome = swapping(table)
    step = replace(outcome.level.step, columns=("income", "name"))
    given = study(table, replace(outcome, level=replace(outcome.level, step=step)))
    assert "Person-" not in json.dumps(twin(given, public=False))


@pytest.mark.parametrize("public", [False, True])
def test_no_form_holds_a_seed_or_single_records(compared, public):
    text = json.dumps(twin(compared, public=public))
    assert "seed" not in text
    assert "by_record" not in text


def test_no_number_of_the_public_form_is_a_cell_of_the_table(compared):
    cells = set(compared.original.frame["income"].to_list())
    told = twin(compared, public=True)
    assert not cells & set(numbers_in([told, charts(told)]))


def numbers_in(said) -> list[float]:
    if isinstance(said, dict):
        said = list(said.values())
    if isinstance(said, list | tuple):
        return [number for each in said for number in numbers_in(each)]
    return [said] if isinstance(said, float) else []


def test_the_lines_of_the_public_map_run_through_other_points(even):
    compared = study(even, swapping(even), noise(even))
    told = twin(compared, public=True)["map"]
    risks = [point["risk"] for point in told]
    assert np.allclose(np.diff(risks), np.diff(risks)[0], rtol=0.05)  # to three digits
    # the four points lie on the line utility = 0.4 risk, and so do those drawn
    assert np.allclose(
        [p["utility"] for p in told], [0.4 * risk for risk in risks], atol=1 / len(compared.original)
    )
    assert all(set(point) == {"key", "line", "risk", "utility", "front"} for point in told)


def test_points_without_a_number_are_not_drawn(table):
    lost = Point("rank-swapping", "Rank swapping", "window", 30.0, math.nan, 1.0)
    given = study(table, swapping(table), points=(lost,))
    assert twin(given, public=True)["map"] == []
    assert twin(given, public=False)["map"] == []


def test_what_was_left_out_is_said_on_the_page(table):
    given = study(table, swapping(table), notes=("k >= 3 is left out: no key",))
    assert "k >= 3 is left out: no key" in Page(render(given, public=True)).words


def test_a_public_group_is_one_of_persons():
    """Fifteen stays of one person are no group to hide in."""
    who = [0] * 15 + list(range(1, 41)) * 2
    stays = Table(
        pl.DataFrame({"who": who, "why": ["rare"] * 15 + ["a", "b"] * 40}),
        Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("why", Kind.NOMINAL, Role.SENSITIVE))),
    )
    outcome = replace(swapping(stays, ("who",)), example=Release.unchanged(stays))
    outcome = replace(outcome, level=replace(outcome.level, step=Step(RankSwapping(), ("why",))))
    told = {public: twin(study(stays, outcome, points=()), public=public) for public in (True, False)}
    assert "rare" in json.dumps(told[False]["distributions"])
    assert "rare" not in json.dumps(told[True])
    assert told[True]["distributions"][0]["shares"] == {"original": [0.5, 0.5], "m0": [0.5, 0.5]}
    assert told[True]["notes"] == ["the pictures show one record of each person"]


def test_the_map_fits_a_phone(even):
    """Its legend has as many columns as there is room for, and long titles stand on two lines."""
    drawn = charts(twin(study(even, swapping(even), noise(even)), public=True))
    layers = json.dumps(drawn["map"])
    assert '"columns": {"expr": "clamp(floor(width / 190), 1, 2)"}' in layers
    assert '["\\u2190 Earth mover\'s distance", "lower is more useful"]' in json.dumps(drawn["ranking"])


# Writing -----------------------------------------------------------------------------------------------


def test_the_report_is_written_beside_its_twin(compared, tmp_path):
    page, beside = write_report(compared, tmp_path / "report.html", public=True)
    assert (page.name, beside.name) == ("report.html", "report.json")
    assert json.loads(beside.read_text("utf-8")) == json.loads(json.dumps(twin(compared, public=True)))
    assert page.read_text("utf-8") == render(compared, public=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize("there", ["report.html", "report.json"])
def test_nothing_is_overwritten_unasked(compared, tmp_path, there):
    (tmp_path / there).write_text("mine")
    with pytest.raises(WriteError, match="exists already"):
        write_report(compared, tmp_path / "report.html", public=True)
    assert [p.name for p in tmp_path.iterdir()] == [there]
    write_report(compared, tmp_path / "report.html", public=True, overwrite=True)
    assert (tmp_path / there).read_text("utf-8") != "mine"


@pytest.mark.parametrize("original", ["report.html", "report.json"])
def test_an_original_is_never_overwritten(compared, tmp_path, original):
    (tmp_path / original).write_text("mine")
    with pytest.raises(WriteError, match="is the same file as the original"):
        write_report(
            compared, tmp_path / "report.html", public=True, overwrite=True, originals=[tmp_path / original]
        )
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(original, "mine")]


def test_the_page_cannot_have_the_name_of_its_twin(compared, tmp_path):
    with pytest.raises(ParameterError, match=r"must not end in \.json"):
        write_report(compared, tmp_path / "report.json", public=True)
