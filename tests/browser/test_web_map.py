"""The map and the pictures in a real browser: lines are moved by mouse and by keys, candidates are picked."""

import shutil

import numpy as np
import polars as pl
import pytest

from pages import Client, serving

pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here"),
]
_PATIENCE = 60_000  # milliseconds: a busy machine compiles on the way


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A desk on 60 people, one column with a name of tags, and their pictures."""
    folder, rng = tmp_path_factory.mktemp("served"), np.random.default_rng(3)
    ages, incomes = rng.integers(20, 70, 60), rng.normal(3000, 500, 60).round()
    pl.DataFrame({"age": ages, "<b>income</b>": incomes}).write_csv(folder / "few.csv")
    with serving(folder, tmp_path_factory.mktemp("history") / "sessions.sqlite") as server:
        made = Client(server)
        made.enter()
        _, content = made.post("/open", {"source": "few.csv"})
        made.desk = f"/desk/{content['next'].rpartition('/')[2]}"
        roles = {"role:age": "key", "role:<b>income</b>": "key"}
        made.post(content["next"], {"then": "desk", "profile": "scientific", **roles})
        _, content = made.post(f"{made.desk}/jobs/pictures", {})
        assert made.wait_for(content["next"])["state"] == "done"
        yield made


@pytest.fixture(scope="module")
def context(client):
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = made.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(_PATIENCE)
        name, _, value = client.cookie.partition("=")
        address = f"http://127.0.0.1:{client.port}"
        context.add_cookies([{"name": name, "value": value, "url": address}])
        yield context
        made.close()


@pytest.fixture
def page(context, client):
    """A page whose console stays silent, and that asks this machine alone."""
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert said == []
    assert all(url.startswith(f"http://127.0.0.1:{client.port}/") for url in asked)
    assert page.locator("b").count() == 0
    page.close()


@pytest.fixture(scope="module")
def compared(context, client):
    """A comparison that was begun on the page, whose map fills while it runs."""
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{client.port}{client.desk}")
    page.get_by_label("Methods to compare").select_option("mdav")
    page.get_by_role("button", name="Compare", exact=True).click()
    with page.expect_response("**/jobs/*/map") as settled:
        page.locator(".found li").first.wait_for()
    assert settled.value.ok  # what it says is gone if the page has gone on to the ranking
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    page.close()
    return f"http://127.0.0.1:{client.port}{client.desk}"


def drag(page, place, by):
    """Take hold of a line and move it sideways."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(min(max(x + by, 5), 1270), y, steps=5)
    page.mouse.up()


def test_the_line_is_moved_by_mouse(page, compared):
    page.goto(compared)
    page.locator("#map-chart").scroll_into_view_if_needed()  # a chart is drawn when it is seen
    handle = page.locator("#map-chart").get_by_label("The level, to drag")
    handle.wait_for(state="attached")
    before = page.locator("#level").input_value()
    drag(page, handle, 120)
    page.get_by_text("estimated there between settings").wait_for()
    assert page.locator("#level").input_value() != before
    assert (
        page.locator("#level-slider").get_attribute("aria-valuetext") == page.locator("#level").input_value()
    )


def test_the_line_and_the_candidates_by_keys(page, compared):
    page.goto(f"{compared}/map")
    page.locator("#map-chart svg").wait_for()
    slider = page.get_by_role("slider", name="Level of")
    slider.focus()
    page.keyboard.press("End")
    last = page.locator("#level").input_value()
    page.get_by_text(f"The line is at {float(last):.4g}".replace("1.0", "1")).wait_for()
    page.keyboard.press("Home")
    assert float(page.locator("#level").input_value()) < float(last)
    first = page.get_by_role("checkbox", name="Pick Your recipe")
    first.focus()
    page.keyboard.press("Space")
    page.get_by_text("Pick a second one").wait_for()
    page.get_by_role("checkbox", name="Pick Your recipe", checked=True).wait_for()
    playwright.expect(first).to_be_focused()
    page.get_by_role("checkbox", name="Pick The original").focus()
    page.keyboard.press("Space")
    page.get_by_text("What do you get from this, and what from that?").wait_for()


def test_a_click_on_a_mark_picks_it_and_another_compares(page, compared):
    page.goto(f"{compared}/map")
    page.locator("#map-chart svg").wait_for()
    page.locator("#map-chart").get_by_label("What: The original").click()
    page.get_by_role("checkbox", name="Pick The original", checked=True).wait_for()
    page.locator("#map-chart").get_by_label("What: Your recipe").click()
    page.get_by_text("What do you get from this, and what from that?").wait_for()


def test_the_threshold_is_moved_by_mouse_and_by_keys(page, compared):
    page.goto(compared)
    page.get_by_text("Equivalence classes (singling out)").click()
    words, slider = page.locator("output"), page.get_by_label("Above which risk")
    for name in ("risks-0", "slider-0"):
        page.locator(f'[data-chart="{name}"] svg').wait_for()
    slider.focus()
    page.keyboard.press("Home")
    least = words.inner_text()
    page.keyboard.press("End")
    most = words.inner_text()
    assert most.startswith("0 of 60 records")
    assert least != most
    drag(page, page.locator('[data-chart="slider-0"]').get_by_label("The threshold, to drag"), -1200)
    assert words.inner_text() == least
    drag(page, page.locator('[data-chart="risks-0"]').get_by_label("The threshold, to drag"), 900)
    assert words.inner_text() != least
