"""Who may ask, and how much: loopback, a session cookie, this page's own requests, counted bodies."""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAFE_VERBS = frozenset({"GET", "HEAD"})
#: Bytes of a form; a file that is dropped has a limit of its own.
MAX_FORM_BYTES = 1_000_000
#: Bytes beyond the limit that are read and forgotten.
_SLACK_BYTES = 4_000_000

#: Characters of an address; the longest of ours has fewer than a hundred.
_MAX_PATH = 2_000

#: Scripts, styles, pictures and requests come from this page alone, and nothing is evaluated.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Lets in whoever has the token, once, and then their cookie; refuses other hosts, origins and sizes."""

    def __init__(
        self, app: ASGIApp, *, hosts: frozenset[str], port: int, upload_bytes: int = 0, scheme: str = "http",
        entry: str = "/",
    ) -> None:  # fmt: skip
        self.app, self.hosts, self.port, self.scheme, self.entry = app, hosts, port, scheme, entry
        self.token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.upload_bytes = upload_bytes

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: of its port, so that two servers do not share one."""
        return f"sfumato-{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page of ours asks for a socket
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send, _Body(scope, receive, 0)))
            return
        limit = self.upload_bytes if scope["path"] == "/upload" else MAX_FORM_BYTES
        body = _Body(scope, receive, limit)
        await self.app(scope, body.read, _with_headers(send, body))

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered instead of the page; None if it may be shown."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(scope["path"]) > _MAX_PATH:
            return PlainTextResponse("This address is too long.", 414)
        if host not in self.hosts:
            return PlainTextResponse("This address is not the one the page was opened at.", 421)
        if scope["method"] not in _SAFE_VERBS and not self._is_own(headers, host):
            return PlainTextResponse("Only this page itself may send this.", 403)
        if self._has_cookie(headers):
            return None
        return self._enter(scope)

    def _is_own(self, headers: Headers, host: str) -> bool:
        """Whether a request that changes something comes from a page of this server."""
        own, site = f"{self.scheme}://{host}", headers.get("sec-fetch-site")
        if site is None:
            return headers.get("origin") == own
        # Without a referrer a browser names no origin with a form: then it vouches for the site alone.
        return site == "same-origin" and headers.get("origin") in {own, "null"}

    def _has_cookie(self, headers: Headers) -> bool:
        # Cookies of other servers on this machine come along: whatever they hold must not hide ours.
        found = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        return hmac.compare_digest(found.encode(), self._session.encode())

    def _enter(self, scope: Scope) -> Response:
        """Take the token, which opens the page once, for a cookie."""
        given = dict(_pairs(scope["query_string"].decode("latin-1"))).get("token", "")
        if not self.token or not hmac.compare_digest(given.encode(), self.token.encode()):
            return PlainTextResponse("Open the address that `sfumato web` printed; it works once.", 403)
        self.token = ""
        response = RedirectResponse(self.entry, 303)
        response.set_cookie(
            self.cookie, self._session, httponly=True, samesite="strict", secure=self.scheme == "https"
        )
        return response


def _pairs(query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, sign, value in (each.partition("=") for each in query.split("&")) if sign]


class _Body:
    """What comes in with a request, until it is more than is taken: counted while it is read."""

    def __init__(self, scope: Scope, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._count = receive, limit, 0
        headers = Headers(scope=scope)
        self.is_whole = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"

    async def read(self) -> Message:
        message = await self._next()
        if self._count > self._limit:
            # A little more is read, since a browser shows no answer before it has sent all.
            while not self.is_whole and self._count < self._limit + _SLACK_BYTES:
                await self._next()
            raise HTTPException(413)
        return message

    async def _next(self) -> Message:
        message = await self._receive()
        self._count += len(message.get("body", b""))
        self.is_whole = not message.get("more_body", False)
        return message


def _with_headers(send: Send, body: _Body) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                own.setdefault(name, value)
            if not body.is_whole:  # whoever still sends is not listened to
                own["connection"] = "close"
        await send(message)

    return sending
