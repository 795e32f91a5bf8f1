"""Columns in a real browser: a hierarchy is changed by keys alone, and a fault stands at its field."""

import random
import shutil

import polars as pl
import pytest

from pages import serving

pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here"),
]


PLAN = """
requirements = ["k >= 3"]
data.path = "towns.csv"
columns.town = {kind = "nominal", role = "key"}
columns.ill = {kind = "nominal", role = "sensitive"}
[[steps]]
method = "recoding"
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A desk whose step shows towns at the first level of their hierarchy; the console stays silent."""
    folder, chance, said = tmp_path_factory.mktemp("served"), random.Random(2), []
    towns = ["Ashford"] * 30 + ["Barton"] * 20 + ["Corby"] * 15 + ["Dover"] * 12
    frame = {"town": chance.sample(towns, len(towns)), "ill": [chance.choice(["flu", "cold"]) for _ in towns]}
    pl.DataFrame(frame).write_csv(folder / "towns.csv")
    (folder / "plan.toml").write_text(PLAN)
    history = tmp_path_factory.mktemp("history") / "sessions.sqlite"
    with serving(folder, history) as server, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(server.address)
        page.get_by_role("button", name="plan.toml", exact=True).click()
        page.get_by_role("heading", name="Recoding").wait_for()
        yield page
        refused = "the server responded with a status of 422"
        assert [each for each in said if refused not in each] == []
        browser.close()


def tab_to(page, place):
    """Press Tab until something has the focus."""
    for _ in range(200):
        if place.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{place} is not reached by Tab")


def fits(page):
    """The page is not wider than its window, and has no attribute of style."""
    for width in (768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") <= 0
    assert page.locator("main [style]").count() == 0


def test_a_hierarchy_by_keys_alone(page):
    link = page.get_by_role("link", name="more, hierarchy of town")
    tab_to(page, link)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="How may its values become coarser").wait_for()
    fits(page)
    for name in ("Ashford", "Dover"):
        tab_to(page, page.get_by_role("checkbox", name=name).first)
        page.keyboard.press("Space")
    tab_to(page, page.get_by_label("What shall those you ticked").first)
    page.keyboard.type("South")
    tab_to(page, page.get_by_role("button", name="Put together").first)
    page.keyboard.press("Enter")
    page.get_by_text("Your plan names this hierarchy").wait_for()
    assert page.get_by_role("row", name="Dover 12 South").count() == 1
    assert "South" not in page.url
    assert "South" not in page.title()


def test_a_fault_stands_at_its_field(page):
    page.get_by_role("link", name="Desk", exact=True).click()
    box = page.get_by_label("all columns").first
    box.fill("-3")
    box.press("Enter")
    fault = page.get_by_role("alert").filter(has_text="must be a whole number")
    fault.wait_for()
    assert box.input_value() == "-3"
    assert box.evaluate("box => box.getAttribute('aria-describedby')") == fault.evaluate("one => one.id")
    fits(page)
