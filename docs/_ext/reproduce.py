"""Makes the pages of the reruns: ``python docs/_ext/reproduce.py FOLDER`` (needs Chromium for the figures).

``FOLDER`` has the JSON files that ``sfumato reproduce`` wrote. Each becomes a page of ``docs/reproduce``, by
the code that writes the Markdown beside it, with its numbers as JSON; figures go to ``_static/reproduce``.
"""

import json
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from sfumato.report.page import as_json
from sfumato.reproduce.pages import markdown_of
from sfumato.reproduce.papers import FILES, paper_of

DOCS = Path(__file__).resolve().parents[1]
PAGES, FIGURES = DOCS / "reproduce", DOCS / "_static" / "reproduce"
SVG = "spec => new vega.View(vega.parse(vegaLite.compile(spec).spec), {renderer: 'none'}).toSVG()"
#: What only the page needs.
SHOWN = {"sections", "verdict", "kind", "title", "public"}


def drawings(page, specs):
    """The figures as SVG, drawn by the scripts of a report that is open."""
    sys.path.insert(0, str(Path(__file__).parent))
    from gallery import slim

    for name, spec in specs.items():
        if spec["data"]["values"]:
            yield name, spec["usermeta"]["title"], slim(page.evaluate(SVG, {**spec, "width": 520}))


def main(folder: Path) -> None:
    PAGES.mkdir(exist_ok=True)
    FIGURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for number in FILES:
            source = folder / f"{number}.json"
            if not source.exists():
                continue
            page = browser.new_page()
            page.goto(source.with_suffix(".html").resolve().as_uri())
            content, places = json.loads(source.read_text(encoding="utf-8")), {}
            for name, caption, svg in drawings(page, paper_of(number).figures(content["values"])):
                file = f"{number}-{name.replace(' ', '-')}.svg"
                (FIGURES / file).write_text(svg, encoding="utf-8")
                places[caption] = f"../_static/reproduce/{file}"
            (PAGES / f"{number}.md").write_text(markdown_of(content, places), encoding="utf-8")
            numbers = {key: value for key, value in content.items() if key not in SHOWN}
            (PAGES / f"{number}.json").write_text(as_json(numbers) + "\n", encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
