"""How a page is answered: one dictionary as a page or as JSON, errors as sentences, scripts by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from sfumato.errors import SfumatoError, UnknownNameError
from sfumato.version import __version__
from sfumato.web.state import ServerState

_HERE = Path(__file__).parent
_STATIC = (_HERE / "static", _HERE.parent / "report" / "static")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
#: Fields of a form: some for each column.
MAX_FIELDS = 20_000
Handler = Callable[[ServerState, Request], Awaitable[Response]]


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    found.globals.update(static=static_address, version=__version__)
    found.filters["figure"] = _figure
    found.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return found


def _figure(value: Any) -> str:
    """A number in at most four digits that count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{int(value):,}" if isinstance(value, int) or value.is_integer() else f"{value:.4g}"


def wants_json(request: Request) -> bool:
    """Whether the JSON twin is asked for."""
    return "application/json" in request.headers.get("accept", "")


def show(request: Request, template: str, content: Mapping[str, Any], status: int = 200) -> Response:
    """A page, or the same as JSON."""
    if wants_json(request):
        return JSONResponse(dict(content), status)
    is_local = request.url.scheme == "http"  # other machines are let in by TLS only
    return HTMLResponse(render(template, {**content, "is_local": is_local}), status)


def render(template: str, content: Mapping[str, Any]) -> str:
    """A page or a part of one as HTML."""
    return _environment().get_template(f"{template}.html.j2").render(**content)


def go(request: Request, address: str) -> Response:
    """Lead on after something was done: a redirect, or the address as JSON."""
    if wants_json(request):
        return JSONResponse({"next": address})
    return RedirectResponse(address, 303)


def answering(handler: Handler) -> Handler:
    """A handler whose errors are sentences."""

    async def answer(state: ServerState, request: Request) -> Response:
        try:
            return await handler(state, request)
        except SfumatoError as error:
            status = 404 if isinstance(error, UnknownNameError) else 422
            return _refuse(request, error.message, error.hint, status, **_way_back(state, request))
        except OSError as error:  # a disk that is full, a folder that is gone, a name that is too long
            return _refuse(request, f"The file system says: {error.strerror}.", "your plan is kept", 422)

    return answer


def _way_back(state: ServerState, request: Request) -> dict[str, Any]:
    """Of a page that cannot be shown, what was done last: a plan that is at fault can be undone."""
    session = request.path_params.get("session")
    if request.method != "GET" or session is None:
        return {}
    try:
        version = state.history.present(session)
    except UnknownNameError:
        return {}
    return {"session": session, "undo": version.action if version and version.parent else ""}


def _refuse(request: Request, sentence: str, hint: str, status: int, **more: Any) -> Response:
    content = {"title": "That did not work", "sentence": sentence, "hint": hint, **more}
    return show(request, "error", content, status)


def texts_of(form: FormData, *names: str) -> dict[str, str]:
    """The texts of a form that were filled in."""
    return {name: value for name in names if isinstance(value := form.get(name), str) and value.strip()}


async def texts_by_name(request: Request) -> dict[str, list[str]]:
    """All texts of a form, each name with all that was sent under it."""
    async with request.form(max_fields=MAX_FIELDS) as form:
        return {name: [each for each in form.getlist(name) if isinstance(each, str)] for name in form}


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Scripts and styles by a name with their hash, so that a browser may keep them."""
    found = {}
    for folder in _STATIC:
        for path in sorted(folder.iterdir()):
            if path.suffix in _TYPES:
                data = path.read_bytes()
                found[f"{path.stem}.{hashlib.sha256(data).hexdigest()[:16]}{path.suffix}"] = (
                    data,
                    _TYPES[path.suffix],
                )
    return found


@cache
def static_address(name: str) -> str:
    """Where a script or style is."""
    stem, _, suffix = name.rpartition(".")
    found = [each for each in static_files() if each.startswith(f"{stem}.") and each.endswith(suffix)]
    return f"/static/{min(found, key=len)}"


async def static_file(state: ServerState, request: Request) -> Response:  # noqa: ARG001
    """A script or style."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        raise UnknownNameError("There is no such file.")
    data, kind = found
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=31536000, immutable"})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {
        404: "There is no such page.",
        405: "This page cannot be asked that way.",
        413: "This is too large.",
    }
    sentence = sentences.get(error.status_code, "This request was not understood.")
    return _refuse(request, sentence, "go back to the start", error.status_code)


async def _unexpected(request: Request, error: Exception) -> Response:
    """Of what nobody expected the type is told, no more."""
    return _refuse(
        request, f"Something went wrong inside sfumato ({type(error).__name__}).", "please report it", 500
    )


HANDLERS = {HTTPException: _http_error, Exception: _unexpected}
