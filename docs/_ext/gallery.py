"""Draws the pictures of the gallery: ``python docs/_ext/gallery.py`` (needs Node.js).

Reports are made of a small table; their charts are drawn by the scripts that come with a report, and
written as SVG files to ``docs/_static/gallery``.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import sfumato

STATIC = Path(sfumato.__file__).parent / "report" / "static"
FOLDER = Path(__file__).resolve().parents[1] / "_static" / "gallery"

#: Each picture: the function that makes its chart, the report that shows it, and its name there.
PICTURES = {
    "what-was-lost": ("loss_bars", "release", "columns-0"),
    "risks": ("strip_chart", "release", "strip-risks-0"),
    "attacks": ("attack_chart", "release", "attacks-inference-0"),
    "gauges": ("gauge_chart", "release", "gauges-0"),
    "class-sizes": ("class_bars", "release", "classes-sizes-0"),
    "class-steps": ("class_steps", "release", "classes-below-0"),
    "record-risks": ("risk_bars", "release", "risks-0"),
    "slider": ("slider_chart", "release", "slider-0"),
    "rare-combinations": ("before_after", "release", "combinations-0"),
    "contributions": ("contribution_chart", "release", "suda-0"),
    "histogram": ("histogram", "release", "shape-0-0"),
    "bars": ("bars", "release", "shape-0-3"),
    "quantiles": ("quantiles", "release", "quantiles-0-0"),
    "against-original": ("against_original", "release", "against-0-0"),
    "correlation": ("correlation", "release", "correlation-difference-0"),
    "mosaic": ("mosaic", "release", "mosaic-0-release-0"),
    "ranking": ("ranking", "comparison", "ranking"),
    "risk-utility-map": ("risk_utility_map", "comparison", "map"),
    "estimators": ("estimator_chart", "simulation", "estimators-0"),
}

PLAN = """
requirements = ["k >= 5"]

[data]
path = "people.csv"
control = 0.2

[columns]
age = { kind = "continuous", role = "key", integer = true }
sex = { kind = "nominal", role = "key" }
region = { kind = "nominal", role = "key" }
income = { kind = "continuous", role = "sensitive" }
tax = { kind = "continuous", role = "sensitive" }
illness = { kind = "nominal", role = "sensitive" }
work = { kind = "nominal", role = "sensitive" }

[[steps]]
method = "mondrian"
columns = ["age", "sex", "region"]
parameters = { k = 5 }

[[steps]]
method = "pram"
columns = ["illness", "work"]
parameters = { retain = 0.7 }

[[steps]]
method = "correlated-noise"
columns = ["income", "tax"]
parameters = { ratio = 0.2 }

[output]
path = "release.csv"
"""

DRAW = """
const fs = require("fs"), vm = require("vm");
const page = vm.createContext({console, setTimeout, clearTimeout, structuredClone, performance, URL});
page.self = page;
for (const name of ["vega.min.js", "vega-lite.min.js"])
  vm.runInContext(fs.readFileSync(process.argv[1] + "/" + name, "utf8"), page);
(async () => {
  const drawn = {};
  for (const [name, spec] of Object.entries(JSON.parse(fs.readFileSync(0)))) {
    const compiled = page.vegaLite.compile(spec).spec;
    drawn[name] = await new page.vega.View(page.vega.parse(compiled), {renderer: "none"}).toSVG();
  }
  console.log(JSON.stringify(drawn));
})();
"""


def people(n: int = 800) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, n)
    ill = rng.random(n) < age / 150
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
            "income": (age * 400 + rng.lognormal(9.5, 0.6, n)).round(-2),
            "tax": (age * 60 + rng.lognormal(8, 0.5, n)).round(-1),
            "illness": np.where(ill, rng.choice(["gout", "heart"], n), rng.choice(["none", "flu"], n)),
            "work": np.where(ill, rng.choice(["part", "none"], n), rng.choice(["full", "part"], n)),
        }
    )


def make_reports(folder: Path) -> dict[str, Path]:
    """Write the three reports that have pictures."""
    people().write_csv(folder / "people.csv")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    pages = {name: folder / f"{name}.html" for name in ("release", "comparison", "simulation")}
    run = [sys.executable, "-m", "sfumato"]
    more = ["--seed", "1", "--override", "the people are invented", "-q"]
    subprocess.run([*run, "run", "plan.toml", "--report", pages["release"], *more], cwd=folder, check=True)
    study = sfumato.compare(
        sfumato.read(folder / "plan.toml"), ["mdav", "rank-swapping", "uncorrelated-noise"],
        columns=["income", "tax"], hold="dbrl", level=0.1, points=5, repeats=2, seed=1,
    )  # fmt: skip
    study.report(pages["comparison"])
    population = "builtin:patients?n=4000"
    more = ["-c", "age_yrs,sex,patcnty", "--fraction", "0.2", "--draws", "10", "--seed", "1", "-q"]
    subprocess.run([*run, "simulate", population, *more, "--report", pages["simulation"]], check=True)
    return pages


def charts_of(page: Path) -> dict[str, dict]:
    found = re.search(r'id="charts">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1])


def slim(svg: str) -> str:
    """Without what only a mouse or a reader of screens meets, and with its colours written out."""
    svg = re.sub(r'<path[^>]* opacity="0"/>', "", svg)
    svg = re.sub(r' (aria-[\w-]+|role|class|pointer-events)="[^"]*"', "", svg)
    svg = re.sub(r"var\(--[\w-]+,\s*([^)]+)\)", r"\1", svg)
    svg = re.sub(r"(\d+\.\d{2})\d+", r"\1", svg)
    return svg.replace("<g ", '<rect width="100%" height="100%" fill="white"/><g ', 1) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        reports = {name: charts_of(page) for name, page in make_reports(Path(folder)).items()}
    specs = {name: reports[report][chart] for name, (_, report, chart) in PICTURES.items()}
    for spec in specs.values():
        if spec.get("width") == "container":
            spec["width"] = 460
    drawn = subprocess.run(
        ["node", "-e", DRAW, str(STATIC)], input=json.dumps(specs), capture_output=True, text=True, check=True
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, svg in json.loads(drawn.stdout).items():
        (FOLDER / f"{name}.svg").write_text(slim(svg), encoding="utf-8")
        print(f"{name}: {specs[name]['description']}")


if __name__ == "__main__":
    main()
