"""The few things that the live page's server answers; no path of a file among them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tacita.check import TacitaError
from tacita.watch.feed import EVERY, NOTHING, Feed, changes
from tacita.watch.view import Desk, Source

#: Bytes of a person's word on an offer, at most.
_MOST_WORD = 1_000
#: Updates without news after which a line is sent all the same: so that a reader who
#: is gone is noticed.
_PATIENCE = 15
#: What the page is made of; the report's style is the ground of its own.
_FILES = {
    "/": ("tacita.watch", "page.html", "text/html"),
    "/page.js": ("tacita.watch", "page.js", "text/javascript"),
    "/chart.js": ("tacita.watch", "chart.js", "text/javascript"),
    "/page.css": ("tacita.watch", "page.css", "text/css"),
    "/style.css": ("tacita.report", "style.css", "text/css"),
}


def make_app(
    source: Source, ended: Callable[[], bool], every: float = EVERY
) -> Starlette:
    """The application behind the guard.

    Args:
        source: Who looks at the folder.
        ended: Whether the server is being closed: streams end then.
        every: Seconds between two updates.
    """
    feed = Feed(source, every)

    async def events(request: Request) -> Response:
        news = _news(feed, ended, every)
        return StreamingResponse(news, media_type="text/event-stream")

    routes = [Route(path, _file(*where)) for path, where in _FILES.items()]
    routes.append(Route("/events", events))
    if hasattr(source, "decide"):
        routes.append(Route("/decide", _decide(source, feed), methods=["POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # it would lead away from the token
    return app


def _file(package: str, name: str, kind: str) -> Callable[[Request], Any]:
    content = resources.files(package).joinpath(name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


async def _news(
    feed: Feed, ended: Callable[[], bool], every: float
) -> AsyncIterator[str]:
    """All parts, then what changes in them, until the reader or the server leaves."""
    seen, quiet = NOTHING, 0
    yield "retry: 2000\n\n"
    while not ended():
        now = await asyncio.to_thread(feed.parts)
        told, seen = changes(seen, now), now
        quiet = 0 if told else quiet + 1
        if told:
            yield f"data: {told}\n\n"
        elif quiet % _PATIENCE == 0:
            yield ": still here\n\n"
        await asyncio.sleep(every)


def _decide(source: Any, feed: Feed) -> Callable[[Request], Any]:
    """What accepts and declines offers, where the folder is an agent's."""
    desk: Desk = source

    async def decide(request: Request) -> Response:
        word = await _word(request)
        if word is None:
            return JSONResponse({"error": "expected a run and a yes or no"}, 400)
        try:
            told = await asyncio.to_thread(desk.decide, *word)
        except (TacitaError, OSError) as error:
            return JSONResponse({"error": str(error).split("\n")[0]}, 409)
        feed.forget()
        return JSONResponse({"told": told})

    return decide


async def _word(request: Request) -> tuple[str, bool] | None:
    """The run and a person's word on it; None for anything else."""
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > _MOST_WORD:
            return None
    # A form of another page can send words, but none of this kind.
    if request.headers.get("content-type") != "application/json":
        return None
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or set(told) != {"run", "accept"}:
        return None
    if not isinstance(told["run"], str) or not isinstance(told["accept"], bool):
        return None
    return told["run"], told["accept"]
