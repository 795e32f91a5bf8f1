"""The report in a real browser: its charts are drawn, and nothing goes wrong on the way."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import About
from sfumato.report import write_report
from sfumato.report.evidence_file import evidence_of
from sfumato.report.page import page_of_evidence, render
from sfumato.report.release_result import Released

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--virtual-time-budget=15000",
    "--enable-logging=stderr", "--v=0", "--window-size=1200,2000",
)  # fmt: skip


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(1)
    income = rng.lognormal(10, 0.7, 240)
    grade = rng.integers(1, 4, 240)
    people = pl.DataFrame({
        "income": income, "tax": income * rng.uniform(0.1, 0.4, 240), "age": rng.normal(40, 9, 240).round(),
        "grade": grade, "level": np.clip(grade + rng.integers(-1, 2, 240), 1, 3),
    })  # fmt: skip
    kinds = {name: Kind.ORDINAL if name in {"grade", "level"} else Kind.CONTINUOUS for name in people.columns}
    table = Table(people, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())))
    return sfumato.compare(
        table, ["mdav", "rank-swapping"], columns=people.columns, repeats=2, points=3, seed=1
    )


def opened(path, tmp_path):
    """The page after its scripts have run, and what they said."""
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run(
        [BROWSER, *FLAGS, profile, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def released():
    """A release of mixed columns with everything a report can tell: a profile, a control, coarser values."""
    rng = np.random.default_rng(2)
    n = 300
    age = rng.integers(18, 90, n)
    people = pl.DataFrame({
        "age": age, "sex": rng.choice(["f", "m"], n), "region": rng.choice(["north", "south"], n),
        "income": age * 300 + rng.lognormal(10, 0.6, n), "illness": rng.choice(["none", "flu", "gout"], n),
    })  # fmt: skip
    roles = {"age": "key", "sex": "key", "region": "key", "income": "sensitive", "illness": "sensitive"}
    made = sfumato.release(
        people, for_="scientific", roles=roles, minutes=0.02, methods=["mondrian"], control=0.3, seed=2**64
    )
    assert isinstance(made, Released)
    return replace(made, seconds=math.inf).tell()  # however long its kernels take to compile


def assert_drawn(page, tmp_path):
    """Every chart of a page is drawn, and nobody complains; returns their names."""
    charts = set(re.findall(r'id="chart-([^"]+)"', page.read_text()))
    dom, console = opened(page, tmp_path)
    assert console == []
    for name in charts:
        place = dom[dom.index(f'id="chart-{name}"') :]
        assert re.match(r"[^>]*>\s*<svg", place), f"the chart {name} is not drawn"
    return charts


@pytest.mark.parametrize("public", [True, False], ids=["public", "internal"])
def test_every_chart_is_drawn_and_the_console_is_silent(study, tmp_path, public):
    page, _ = write_report(study, tmp_path / "report.html", public=public)
    charts = assert_drawn(page, tmp_path)
    assert {"map", "against-0", "classes-sizes", "classes-below", "correlation-release"} <= charts
    assert {"mosaic-0-original", "mosaic-0-release", "mosaic-0-difference"} <= charts


#: Says how wide and long a page is, and each box with a table.
PROBE = """<script>addEventListener("load", () => setTimeout(() => parent.postMessage(JSON.stringify([
  document.documentElement.scrollWidth, innerWidth, innerHeight,
  [...document.querySelectorAll(".scroll")].map((each) => each.getBoundingClientRect().height)]), "*"), 4000))
</script>"""
PHONE = """<iframe src="page.html" style="border: 0; width: 390px; height: 844px"></iframe>
<script>addEventListener("message", (event) => document.body.append("SEEN" + event.data + "SEEN"))</script>"""


def on_a_phone(page, tmp_path):
    """Width of a page on a phone, the phone's width and height, and the heights of the boxes with tables."""
    start, end = re.search(r"<meta http-equiv=[^>]*>", page).span()  # it would forbid to look
    page = page[:start] + page[end:]
    body, found, rest = page.rpartition("</body>")
    (tmp_path / "page.html").write_text(body + PROBE + found + rest, encoding="utf-8")
    (tmp_path / "phone.html").write_text(PHONE)
    dom, _ = opened(tmp_path / "phone.html", tmp_path)
    return json.loads(dom.split("SEEN")[-2])


def many_rows(page):
    """The page as if its first table had sixty methods, each with much to remark."""
    rows = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    long = re.sub(r'(<td class="remark">).*?<', rf"\1{'what it makes cannot be judged ' * 9}<", rows[1])
    return page[: rows.start(1)] + long * 30 + page[rows.end(1) :]


@pytest.mark.parametrize("which", ["study", "internal", "public", "evidence"])
def test_on_a_phone_wide_and_long_tables_scroll_within_themselves(study, released, tmp_path, which):
    if which == "study":
        page = many_rows(render(study, public=False))
    elif which == "evidence":
        told = released.flat(public=False)
        page = page_of_evidence(evidence_of(About(), told, {"release.csv": "0" * 64}))
    else:
        page = released.page(public=which == "public")
    width, phone, height, tables = on_a_phone(page, tmp_path)
    assert tables
    assert width <= phone
    assert max(tables) <= height


@pytest.mark.parametrize("public", [True, False], ids=["public", "internal"])
def test_the_report_of_a_release_is_drawn_and_printed(released, tmp_path, public):
    page = tmp_path / "released.html"
    page.write_text(released.page(public=public), encoding="utf-8")
    charts = assert_drawn(page, tmp_path)
    own = {"strip-risks-0", "attacks-inference-0", "risks-0", "slider-0", "gauges-0", "combinations-0"}
    assert {"strip-losses-0", "shape-0-0", "correlation-release-0"} <= charts
    assert own.isdisjoint(charts) if public else own <= charts
    paper = tmp_path / "released.pdf"
    flags = [*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={paper}"]
    subprocess.run([BROWSER, *flags, page.as_uri()], capture_output=True, timeout=120, check=True)
    assert paper.read_bytes().startswith(b"%PDF")
