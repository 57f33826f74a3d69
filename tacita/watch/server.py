"""The live page's server: on loopback only, at an address that nobody can guess."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
from typing import Self

import uvicorn

from tacita.check import refuse
from tacita.watch.app import make_app
from tacita.watch.feed import EVERY
from tacita.watch.guard import Guard
from tacita.watch.places import MOST_AT_ONCE, Place
from tacita.watch.view import Source

HERE = "127.0.0.1"
#: Seconds that streams get to end when the server is closed.
_TO_END = 10


class LivePage:
    """A page for one source. As a context it is served from a thread of its own.

    Args:
        source: Who looks at the folder.
        host: A loopback address; others are refused.
        port: Where; 0 for one that is free.
        every: Seconds between two updates.

    Attributes:
        address: What to open in a browser. Who knows it may look, and where offers
            wait decide: it is shown once, and logged nowhere.
    """

    def __init__(
        self, source: Source, host: str = HERE, port: int = 0, every: float = EVERY
    ) -> None:
        self._socket = _listen(_loopback(host), port)
        address, port = self._socket.getsockname()[:2]
        own = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        hosts = {own, f"localhost:{port}"}
        token = secrets.token_urlsafe(32)
        self.address = f"http://{own}/{token}/"
        app = make_app(source, lambda: self._server.should_exit, every)
        self._server = uvicorn.Server(
            uvicorn.Config(
                Guard(app, token, hosts),
                log_config=None,
                access_log=False,  # it would write the token down
                lifespan="off",
                ws="none",
                http=Place,
                loop="asyncio",
                server_header=False,
                proxy_headers=False,
                limit_concurrency=MOST_AT_ONCE,
                timeout_graceful_shutdown=_TO_END,
            )
        )
        self._thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Serve until interrupted."""
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join(2.0 * _TO_END)
        self._socket.close()


def _loopback(host: str) -> str:
    address = HERE if host == "localhost" else host
    try:
        if ipaddress.ip_address(address).is_loopback:
            return address
    except ValueError:
        pass
    refuse(
        f"the live page is for this machine only: expected a loopback address such as "
        f"{HERE}, got host={host!r}; from elsewhere use ssh -L PORT:{HERE}:PORT"
    )


def _listen(address: str, port: int) -> socket.socket:
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(kind, socket.SOCK_STREAM)
    try:
        # Those of a page that was just closed may be used again; others may not.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen()
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or str(error)
        refuse(f"cannot listen on port {port}: {reason}; choose another with --port")
    return made
