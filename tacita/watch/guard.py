"""Who may ask the live page: a browser on this machine that was told the token.

Before anything else every request is checked:

    its Host is this machine       a foreign name that leads here is refused, so that
                                   no web page can read this one by a trick of names
    its path begins with the token else there is nothing here
    its Origin, if it names one    is this very page; what changes something must

What is answered may load and reach nothing but this server.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_RAW = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]


class Guard:
    """Lets a request through, or answers it.

    Args:
        app: What is behind; it sees paths without the token.
        token: The secret part of the address.
        hosts: Names of this server, with its port.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_RAW]}
            await send(message)

        if scope["type"] != "http":
            return  # no lifespan, no web sockets
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        inner = {**scope, "path": self._split(scope)[1]}
        await self._app(inner, receive, guarded)

    def _split(self, scope: Scope) -> tuple[str, str]:
        """The token that a path begins with, and the rest."""
        token, slash, rest = scope["path"][1:].partition("/")
        return token, slash + rest

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        # A header that stands twice is nobody's honest request.
        hosts = [v for k, v in scope["headers"] if k == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if host not in self._hosts:
            return PlainTextResponse("this page is for 127.0.0.1 only\n", 421)
        given = self._split(scope)[0].encode()
        if not hmac.compare_digest(given, self._token.encode()):
            told = "nothing is here; use the whole address that was printed\n"
            return PlainTextResponse(told, 404)
        origins = [v for k, v in scope["headers"] if k == b"origin"]
        changes = scope["method"] not in ("GET", "HEAD")
        if (origins or changes) and origins != [f"http://{host}".encode()]:
            return PlainTextResponse("only the page itself may ask for this\n", 403)
        return None
