"""Keeps the addresses of pages that have moved: each old one is a tiny page that leads to the new one."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

#: Old address to new one, without suffix.
MOVED = {
    "concepts/what-joins-records": "concepts/linked-records-and-inferred-keys",
    "concepts/words": "concepts/glossary",
    "guides/by-hand": "guides/protect-with-one-method",
    "guides/link-records": "guides/record-linkage",
    "guides/publish-again": "guides/longitudinal-releases",
    "guides/take-values-apart": "guides/de-associative-methods",
}

_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url={url}">
<link rel="canonical" href="{url}">
<p>This page has moved to <a href="{url}">{url}</a>.</p>
"""


def write(app, exception) -> None:
    """Write the old pages after a build that went well."""
    if exception or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        if new not in app.env.found_docs:
            raise ValueError(f"`{old}` moved to `{new}`, which is not a page")
        place = Path(app.outdir) / f"{old}.html"
        up = "../" * (len(PurePosixPath(old).parts) - 1)
        place.write_text(_PAGE.format(url=f"{up}{new}.html"), encoding="utf-8")


def setup(app):
    """Tell Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
