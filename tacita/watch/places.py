"""The live page's places: who asks nothing keeps nobody else out.

Connections are limited, and any program on this machine may open one without knowing
the token. So whoever comes when all places are taken gets that of the connection that
has been there longest without a request that is being answered.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at once, streams among them; requests beyond are told to come later.
MOST_AT_ONCE = 64


class Place(H11Protocol):
    """One connection."""

    #: When it came, by the clock of its loop.
    came = 0.0

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered: no request came, or not a whole one."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, transport: asyncio.Transport
    ) -> None:
        """Take a place; the limit of the server counts this one too."""
        self.came = self.loop.time()
        others = [one for one in self.connections if isinstance(one, Place)]
        if len(others) + 2 > MOST_AT_ONCE:
            waiting = [one for one in others if one.idle]
            if waiting:
                oldest = min(waiting, key=lambda one: one.came)
                oldest.transport.abort()
                self.connections.discard(oldest)
        super().connection_made(transport)
