"""Options for other files that a verb uses, and all that its options ask for as one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._options import about_of, reading_of, roles_of, split
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.releasing.request import Request

hierarchy_option = click.option(
    "--hierarchy",
    "hierarchy_files",
    multiple=True,
    metavar="COLUMN=FILE",
    help="The hierarchy of a column, to generalise it (see `sfumato hierarchy`); proposed when not given.",
)
resource_option = click.option(
    "--resource",
    "resource_files",
    multiple=True,
    metavar="NAME=FILE",
    help="A table that a method or measure uses under this name, such as the population.",
)
control_option = click.option(
    "--control",
    default="",
    metavar="SHARE|FILE",
    help="The control group for attacks: a share of the people to hold out (0.2), or a file of other people.",
)


def request_of(source: str | None, options: Mapping[str, Any], **more: Any) -> Request:
    """What the options of a verb ask for; what they mean is found out in `releasing.prepare`."""
    from sfumato.releasing.request import Request

    asked: dict[str, Any] = {
        "plan": options.get("plan_path"),
        "roles": roles_of(options.get("roles", ())),
        "columns": split(options.get("columns", ())),
        "require": tuple(options.get("require", ())),
        "profile": options.get("profile"),
        "matters": split(options.get("matters", ())),
        "hierarchies": _pairs(options.get("hierarchy_files", ()), "--hierarchy", "COLUMN"),
        "resources": _pairs(options.get("resource_files", ()), "--resource", "NAME"),
        "control": options.get("control", ""),
        "pseudonym_key": options.get("pseudonym_key") or "",
        "reading": reading_of(source or "", options),
        "about": about_of(options),
        "only": options.get("only") or "",
    }
    return Request(source=source, **{**asked, **more})


def files_of_request(request: Request) -> list[str]:
    """The files that a request names, which must not be overwritten."""
    from sfumato.releasing.request import share_of

    control = str(request.control)
    files = [str(request.source), *request.hierarchies.values(), *request.resources.values()]
    files += [str(request.plan)] if request.plan else []
    files += [control] if control and share_of(control) is None else []
    return [path for path in files if not path.startswith("builtin:")]


def _pairs(values: tuple[str, ...], option: str, left: str) -> dict[str, str]:
    """Read ``name=file``; a name may hold an equals sign only if the file's does not."""
    pairs = {}
    for value in values:
        name, sign, path = value.rpartition("=")
        if not sign or not name or not path:
            raise ParameterError(f"`{option}` must be written {left}=FILE, got: `{value}`")
        pairs[name] = path
    return pairs
