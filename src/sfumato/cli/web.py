"""Open a page in the browser, on this machine only: see the trade-off, move along it, release."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import click

from sfumato.cli import _options
from sfumato.cli._screen import say
from sfumato.errors import MissingDependencyError, ReadError

_FILE = click.Path(path_type=Path)


@click.command("web", help=__doc__, epilog="Without --host only you can open it, and it needs no network.")
@click.argument("source", required=False)
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port (default: a free one).")
@click.option(
    "--keep", is_flag=True, help="Keep files that are dropped on the page (default: deleted at the end)."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at; others need a certificate.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="What the host is called by others; may be repeated.",
)
@click.option("--tls-cert", "certificate", type=_FILE, help="The certificate of the host (PEM).")
@click.option("--tls-key", "key", type=_FILE, help="The private key of the certificate (PEM).")
@_options.quiet_option
def command(source: str | None, *, no_browser: bool, keep: bool, quiet: bool, **address: Any) -> None:
    """Open a page."""
    try:
        from sfumato.web.serve import PageAddress, PageServer
    except ImportError:
        raise MissingDependencyError(
            "The page needs the extra `web`.", hint="pip install 'sfumato[web]'"
        ) from None
    folder, name = _folder_and_name(source or "")
    # Of each folder its own: what is done in one is no concern of another.
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    history = Path(click.get_app_dir("sfumato")) / "sessions" / f"{digest}.sqlite"
    server = PageServer(folder, history, source=name, at=PageAddress(**address), keep=keep)
    server.run(browser=not no_browser, say=lambda text: say(text, quiet=quiet and "http" not in text))


def _folder_and_name(source: str) -> tuple[Path, str]:
    """The folder to serve, and the file or built-in data set to begin with."""
    if source.startswith("builtin:"):
        return Path(), source
    place = Path(source).resolve()
    if not place.exists():
        raise ReadError(f"File not found: {source}")
    return (place, "") if place.is_dir() else (place.parent, place.name)
