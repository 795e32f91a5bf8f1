"""Make the pictures of the guide "In the browser" anew: invented patients, 1280 pixels wide, light.

python docs/pictures/make.py [FOLDER]      (needs Chromium and the extra `test`; by default docs/_static/web)
"""

import runpy
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH, HEIGHT = 1280, 660
#: So long a search or comparison may take, in milliseconds.
PATIENCE = 600_000


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "_static" / "web"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        served = Path(place) / "clinic"
        served.mkdir()
        sys.argv = ["clinic.py", str(served / "stays.csv")]
        runpy.run_path(str(ROOT / "examples" / "clinic.py"), run_name="__main__")
        take_pictures(served, Path(place) / "sessions.sqlite", folder)


def take_pictures(served: Path, history: Path, folder: Path) -> None:
    from sfumato.web.serve import PageServer

    server = PageServer(served, history)
    thread = threading.Thread(target=server.server.run, kwargs={"sockets": [server._socket]}, daemon=True)  # noqa: SLF001
    thread.start()
    while not server.server.started:
        time.sleep(0.1)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.set_default_timeout(PATIENCE)
        page.goto(server.address)
        walk(page, folder)
        browser.close()
    server.server.should_exit = True
    thread.join(20)


def walk(page: Page, folder: Path) -> None:
    """From the file to a verified release, with a picture of each page on the way."""

    def picture(name: str, part: str = "") -> None:
        if part:
            page.locator(f"section:has(#{part})").scroll_into_view_if_needed()
            page.locator(f"#{part}").evaluate("part => window.scrollTo(0, part.offsetTop - 12)")
            page.wait_for_timeout(2_000)  # charts are drawn once they are seen
        page.screenshot(path=folder / f"{name}.png")

    picture("start")
    page.get_by_role("button", name="stays.csv", exact=True).click()
    page.get_by_role("heading", name="Three questions").wait_for()
    picture("questions")
    page.get_by_role("button", name="To the desk").click()
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    picture("desk")
    page.get_by_role("link", name="Release", exact=True).click()
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name="It was written to").wait_for()
    page.get_by_role("button", name="Verify it").click()
    page.get_by_text("Verified: every file").wait_for()
    picture("release")
    page.get_by_role("link", name="Desk", exact=True).click()
    page.get_by_label("Methods to compare").select_option(["rank-swapping", "mdav"])
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("heading", name="Can someone be singled out").wait_for()
    page.locator("#map").wait_for()
    picture("map", "map")
    page.get_by_role("button", name="Measure and draw").click()
    page.get_by_role("heading", name="How does it look").wait_for()
    page.locator("section:has(#pictures) summary").first.click()
    picture("pictures", "pictures")


if __name__ == "__main__":
    main()
