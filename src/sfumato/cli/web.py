"""Open a page in the browser, on this machine only: see the trade-off, move along it, release."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli import _options
from sfumato.cli._screen import say
from sfumato.errors import MissingDependencyError, ReadError


@click.command("web", help=__doc__, epilog="The page needs no network, and only you can open it.")
@click.argument("source", required=False)
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port (default: a free one).")
@_options.quiet_option
def command(source: str | None, *, no_browser: bool, port: int, quiet: bool) -> None:
    """Open a page."""
    try:
        from sfumato.web.serve import PageServer
    except ImportError:
        raise MissingDependencyError(
            "The page needs the extra `web`.", hint="pip install 'sfumato[web]'"
        ) from None
    place = Path(source) if source and not source.startswith("builtin:") else None
    if place is not None and not place.exists():
        raise ReadError(f"File not found: {place}")
    folder = place.parent if place is not None and place.is_file() else place or Path()
    history = Path(click.get_app_dir("sfumato")) / "sessions.sqlite"
    server = PageServer(folder, history, port=port)
    server.run(browser=not no_browser, say=lambda text: say(text, quiet=quiet and "http" not in text))
