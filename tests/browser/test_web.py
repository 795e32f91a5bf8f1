"""The page in a real browser: from a file to a release by mouse and by keyboard, with a silent console."""

import shutil
import threading
import time

import polars as pl
import pytest

pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from sfumato.web.serve import PageServer  # noqa: E402  — skipped above where it cannot be

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here"),
    pytest.mark.xdist_group("browser"),
]
_PATIENCE = 120_000  # milliseconds: a busy machine compiles on the way


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    rows = range(150)
    pl.DataFrame({
        "<b>name</b>": [f"Name {i}" for i in rows], "age": [20 + (i * 7) % 41 for i in rows],
        "sex": ["fm"[(i * 5) % 2] for i in rows], "illness": [["flu", "asthma", "cold"][(i * i) % 3] for i in rows],
    }).write_csv(folder / "people.csv")  # fmt: skip
    made = PageServer(folder, tmp_path_factory.mktemp("history") / "sessions.sqlite")
    thread = threading.Thread(target=made.server.run, kwargs={"sockets": [made._socket]}, daemon=True)
    thread.start()
    while not made.server.started:
        time.sleep(0.05)
    yield made
    made.server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield made
        made.close()


def test_a_release_by_mouse_then_a_change_by_keyboard(server, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, said, asked = context.new_page(), [], []
    page.set_default_timeout(_PATIENCE)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.address)
    page.get_by_role("button", name="people.csv").click()
    page.get_by_label("Role of <b>name</b>").select_option("identifier")
    page.get_by_label("Role of age").select_option("key")
    page.get_by_label("Role of sex").select_option("key")
    page.get_by_label("Role of illness").select_option("sensitive")
    page.get_by_role("button", name="To the desk").click()
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    box = page.get_by_label("k", exact=True)
    box.fill("25")
    box.press("Enter")
    page.get_by_role("button", name="k=25", exact=False).or_(page.get_by_text("k=25")).first.wait_for()
    page.get_by_role("link", name="Release", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Make the release").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="It was written to").wait_for()
    assert page.locator("b").count() == 0  # a name of a column is text
    assert said == []
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in asked)
    for width in (768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.locator("html").evaluate("html => html.scrollWidth - html.clientWidth")
        assert wide <= 0
    context.close()
