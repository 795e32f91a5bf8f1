"""The page in a real browser: from a messy file to a verified release by mouse, then by keyboard alone."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pages import serving

pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CLINIC = Path(__file__).parents[2] / "examples" / "clinic.py"
#: A messy file to go through instead of that of the clinic; its records must have no name that is looked for below.
MESSY_FILE = os.environ.get("SFUMATO_MESSY_FILE", "")
#: The checks of accessibility (MPL-2.0): fetched for the tests, not part of this package.
AXE = "axe-core@4.14.0"
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here"),
]
_PATIENCE = 300_000  # milliseconds: a busy machine compiles on the way


@pytest.fixture(scope="module")
def axe(request, tmp_path_factory):
    """The text of axe-core, from the cache of an earlier run or from npm; nothing where it cannot be had."""
    place = request.config.cache.mkdir("axe-core")
    try:
        if not (place / "axe.min.js").is_file():
            words, beside = ["npm", "pack", "--silent", AXE], tmp_path_factory.mktemp("axe")
            made = subprocess.run(words, cwd=beside, check=True, capture_output=True, text=True, timeout=60)
            with tarfile.open(beside / made.stdout.split()[-1]) as archive:
                archive.extract("package/axe.min.js", beside, filter="data")
            shutil.copy(beside / "package" / "axe.min.js", place / f"{beside.name}.part")
            (place / f"{beside.name}.part").replace(place / "axe.min.js")  # another process may do the same
        return (place / "axe.min.js").read_text()
    except (OSError, subprocess.SubprocessError, tarfile.TarError):
        return ""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A page on a messy file: as a clinic has it, with few of its patients; one column has a name of tags."""
    folder = tmp_path_factory.mktemp("served")
    if MESSY_FILE:
        shutil.copy(MESSY_FILE, folder / "stays.csv")
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(CLINIC), str(folder / "stays.csv")])
            runpy.run_path(str(CLINIC), run_name="__main__")
        lines = (folder / "stays.csv").read_bytes().splitlines(keepends=True)[:200]
        lines[0] = lines[0].replace(b"name", b"<b>name</b>")
        (folder / "stays.csv").write_bytes(b"".join(lines))
    with serving(folder, tmp_path_factory.mktemp("history") / "sessions.sqlite") as made:
        yield made


@pytest.fixture(scope="module")
def context(server):
    """A browser that has taken the token for its cookie, and reaches nothing but the page."""
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = made.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(_PATIENCE)
        home = f"http://127.0.0.1:{server.port}/"
        others = re.compile(f"^(?!{re.escape(home)})")  # a pattern: only what it fits waits for this process
        context.route(others, lambda route: route.abort())
        context.new_page().goto(server.address)
        yield context
        made.close()


@pytest.fixture
def page(context, server):
    """A page at the start, whose console stays silent, and that asks this machine alone."""
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{server.port}/")
    yield page
    assert said == []
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in asked)
    assert "Anna" not in " ".join(asked)  # a name of a patient
    page.close()


def looks_right(page, axe):
    """No page is wider than its window or hard to perceive, light or dark; a name of a column is text."""
    assert page.locator("b").count() == 0
    assert "Anna" not in page.title()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        for width in (768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") <= 0
            assert violations(page, axe) == [], f"{page.url}, {scheme}, {width} pixels"
        back = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert (sum(map(int, back.strip("rgb()").split(",")[:3])) > 384) == (scheme == "light")


def violations(page, axe):
    """What axe finds: the rule, and where it is broken."""
    if not axe:
        return []
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]


def test_accessibility_is_checked(axe):
    if not axe:
        pytest.skip(f"{AXE} cannot be had here: npm or its registry is out of reach")


def test_a_release_by_mouse(page, axe):
    looks_right(page, axe)
    page.get_by_role("button", name="stays.csv", exact=True).click()
    page.get_by_role("heading", name="Three questions").wait_for()
    looks_right(page, axe)
    page.get_by_label("Minutes").fill("0.2")
    while (undecided := page.locator("select:invalid")).count():
        undecided.first.select_option("other")
    page.get_by_role("button", name="Make a release").click()
    page.get_by_role("heading", name="It was written to").wait_for()
    looks_right(page, axe)
    page.get_by_role("button", name="Verify it").click()
    page.get_by_text("Verified: every file is as it was written").wait_for()
    for name in ("Internal report", "Public report"):
        with page.context.expect_page() as opened:
            page.get_by_role("link", name=name).click()
        opened.value.get_by_role("heading").first.wait_for()
        opened.value.close()
    with page.expect_download() as download:
        page.get_by_role("link", name="Python file").click()
    assert "sfumato.release(" in Path(download.value.path()).read_text()
    page.get_by_role("link", name="Desk").click()
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    looks_right(page, axe)


def tab_to(page, place):
    """Press Tab until something has the focus."""
    for _ in range(400):
        if place.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{place} is not reached by Tab")


def test_a_release_by_keyboard_alone(page):
    outline = "one => getComputedStyle(one).outlineStyle"
    tab_to(page, page.get_by_role("button", name="stays.csv", exact=True))
    assert page.locator(":focus").evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Three questions").wait_for()
    while (undecided := page.locator("select:invalid")).count():
        tab_to(page, undecided.first)
        page.keyboard.type("other")
    tab_to(page, page.get_by_label("Role of plz" if MESSY_FILE else "Role of zip"))
    page.keyboard.type("key")
    tab_to(page, page.get_by_role("button", name="To the desk"))
    page.keyboard.press("Space")
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    box = page.get_by_label("k", exact=True).first
    tab_to(page, box)
    page.keyboard.press("Control+a")
    page.keyboard.type("6")
    page.keyboard.press("Enter")
    page.get_by_text("k=6").first.wait_for()
    tab_to(page, page.get_by_role("link", name="Release", exact=True))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="May a release of stays.csv leave?").wait_for()
    tab_to(page, page.get_by_label("What is it called?"))
    page.keyboard.type("Stays")
    page.keyboard.press("Enter")
    page.locator("input[value=Stays]").wait_for()  # the page as it comes back
    reason = page.get_by_label("Release it all the same")
    if reason.count():
        tab_to(page, reason)
        page.keyboard.type("a test of the keyboard")
    tab_to(page, page.get_by_role("button", name="Make the release"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="It was written to").wait_for()
    tab_to(page, page.get_by_role("button", name="Verify it"))
    page.keyboard.press("Enter")
    page.get_by_text("Verified: every file is as it was written").wait_for()
