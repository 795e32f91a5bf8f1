"""`simulate`, and the pictures of `risk`."""

import json
import re

import sfumato
from sfumato.core.run import Progress, Run
from sfumato.data.scenario import Scenario
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.population import PopulationUniqueness
from sfumato.study.simulate import simulate


def test_simulate(run, tmp_path):
    page = tmp_path / "sim.html"
    code, out, err = run(
        "simulate", "builtin:patients?n=400", "-c", "age_yrs,sex", "--fraction", "0.2", "--draws", "2",
        "-m", "population-uniqueness(model=zayatz)", "-m", "individual-risk", "--seed", "1", "--report", str(page),
    )  # fmt: skip
    assert code == 0, err
    assert "comes nearest" in out
    assert "population-uniqueness: zayatz" in out
    assert err.startswith(
        "drawing 2 samples; --minutes limits the time, Ctrl-C stops it cleanly\n… Samples\n"
    )
    assert "2 samples of 80 of 400 people" in err
    assert "<script" in page.read_text()
    assert "chart-estimators-0" in page.read_text()
    twin = json.loads(page.with_suffix(".json").read_text())
    assert twin["kind"] == "simulation"


def test_every_estimator_of_a_sample_is_told():
    told = []
    table = sfumato.read("builtin:patients?n=300")
    simulate(
        table, Run(seed=1, progress=Progress(report=told.append)), fraction=0.2, draws=2,
        measures=[IndividualRisk(), PopulationUniqueness(model="zayatz")], scenario=Scenario(columns=("sex",)),
    )  # fmt: skip
    assert [(each.done, each.total, each.note) for each in told] == [
        (0, 2, "0 of 2 estimators"),
        (0, 2, "1 of 2 estimators"),
        (1, 2, "0 of 2 estimators"),
        (1, 2, "1 of 2 estimators"),
        (2, 2, ""),
    ]


def test_simulate_as_json(run):
    code, out, err = run(
        "simulate", "builtin:patients?n=300", "-c", "age_yrs", "--draws", "1", "-m", "individual-risk", "--json",
        "--minutes", "5",
    )  # fmt: skip
    assert code == 0, err
    told = json.loads(out)
    assert told["draws"] == 1
    assert told["estimators"][0]["measure"] == "individual-risk"


def test_pictures_of_risk(run, tmp_path):
    page = tmp_path / "risk.html"
    code, _, err = run(
        "risk", "builtin:patients?n=300", "-c", "age_yrs,sex,race", "-m", "individual-risk(fraction=0.1)", "-m",
        "suda", "-m", "k-anonymity", "--report", str(page),
    )  # fmt: skip
    assert code == 0, err
    text = page.read_text()
    assert "chart-slider-0" in text
    assert "chart-columns-1" in text
    twin = json.loads(page.with_suffix(".json").read_text())
    rows = next(each["rows"] for each in twin["sections"] if "slider-0" in each["charts"])
    thresholds, above, rates = zip(*rows, strict=True)
    assert list(thresholds) == sorted(thresholds)
    assert above[-1] == 0
    assert list(rates) == sorted(rates)
    drawn = set(re.findall(r'id="chart-([^"]+)"', text))
    assert drawn == {name for each in twin["sections"] for name in each["charts"]}
    assert drawn <= set(re.findall(r'"([a-z]+-\d+)": ?\{', text))  # what is drawn there is in the page, too
    assert re.search(r"Example: \d+ of 300 records have a risk above", text)
    shares = next(each["rows"] for each in twin["sections"] if "columns-1" in each["charts"])
    assert [row[2] for row in shares] == sorted((row[2] for row in shares), reverse=True)
    assert run("risk", "builtin:patients?n=300", "-m", "suda", "--report", str(page))[0] != 0  # it is there
