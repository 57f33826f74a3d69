"""The post over NATS: core messages only, nothing kept by the broker.

The network lives on a thread of its own, so that a long computation does not let the
connection die. Letters over 4 MB travel in pieces; a piece that is lost costs the whole
letter, which its reader then asks for again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import ssl
import struct
import tempfile
import threading
from pathlib import Path
from typing import Any, NoReturn

from nats.aio.client import Client

from tacita.check import refuse
from tacita.federation.invitation import Invitation
from tacita.federation.post import Post, take_all
from tacita.federation.seal import write_private

PIECE = 4 << 20
#: Letters of one sender that are put together at a time; older ones are given up.
_MOST_OPEN = 2
#: Pieces of one letter: with 4 MB each, 512 MB.
_MOST_PIECES = 128
_HEAD = struct.Struct("<16sII")
# The event loop remarks on every TLS connection that ends, which is no news.
logging.getLogger("asyncio").addFilter(lambda said: "eof_received" not in str(said.msg))


class Pieces:
    """Cuts letters, and puts their pieces together again."""

    def __init__(self, size: int = PIECE, most_open: int = _MOST_OPEN) -> None:
        self._size, self._most_open = size, most_open
        #: By sender, mark and number of pieces.
        self._open: dict[tuple[str, bytes, int], dict[int, bytes]] = {}
        self.dropped = 0

    def cut(self, content: bytes) -> list[bytes]:
        """The messages of one letter."""
        mark = os.urandom(16)
        count = max(1, -(-len(content) // self._size))
        return [
            _HEAD.pack(mark, i, count) + content[i * self._size : (i + 1) * self._size]
            for i in range(count)
        ]

    def join(self, sender: str, message: bytes) -> bytes | None:
        """The letter, once its last missing piece is there."""
        whole = _HEAD.size <= len(message) <= _HEAD.size + self._size
        mark, number, count = _HEAD.unpack_from(message) if whole else (b"", 0, 0)
        body = message[_HEAD.size :]
        if not number < count <= _MOST_PIECES:
            self.dropped += 1
            return None
        if count == 1:
            return body
        # Kept apart by sender: nobody can spoil or crowd out another one's letter.
        pieces = self._open.setdefault((sender, mark, count), {})
        pieces[number] = body
        if len(pieces) == count:
            del self._open[sender, mark, count]
            return b"".join(pieces[i] for i in range(count))
        mine = [key for key in self._open if key[0] == sender]
        if len(mine) > self._most_open:
            del self._open[mine[0]]
            self.dropped += 1
        return None

    def under_way(self) -> dict[str, tuple[int, int]]:
        """Of the letter that each sender is sending: pieces here, pieces in all."""
        # Copied in one step: letters come in on another thread.
        found = dict(self._open).items()
        return {sender: (len(pieces), count) for (sender, _, count), pieces in found}


class NatsPost(Post):
    """One party's connection to the broker; comes back by itself when that returns.

    Args:
        invitation: Where the broker is, and who we are.
        patience: Seconds to wait for the first connection.
    """

    def __init__(self, invitation: Invitation, patience: float = 30.0) -> None:
        self._invitation = invitation
        self._letters: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._pieces = Pieces()
        self._loop = asyncio.new_event_loop()
        self._client: Any = Client()
        self._last_error: Exception | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._wait(self._connect(patience), patience + 1)
        except TimeoutError as error:  # the client does not always let itself be ended
            self._end()
            self._refuse_connection(error)
        except BaseException:
            self._end()
            raise

    def _wait(self, work: Any, seconds: float) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _connect(self, patience: float) -> None:
        me = self._invitation
        options: dict[str, Any] = {
            "servers": [f"tls://{server}" for server in me.roster.brokers],
            "tls": _context(me),
            "name": me.name,
            "inbox_prefix": f"tacita.{me.federation}.{me.name}".encode(),
            "allow_reconnect": True,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.2,
            "pending_size": 1 << 30,
            "error_cb": self._on_error,
        }
        try:
            # The client itself tries again and again; we say how long.
            await asyncio.wait_for(self._client.connect(**options), patience)
        except Exception as error:
            self._refuse_connection(error)
        await self._client.subscribe(
            f"tacita.{me.federation}.{me.name}.*",
            cb=self._on_message,
            pending_msgs_limit=-1,
            pending_bytes_limit=-1,
        )
        await self._client.flush()

    def _refuse_connection(self, error: Exception) -> NoReturn:
        reason = _short(self._last_error or error)
        refuse(
            f"no connection to the broker at {self._invitation.server}: {reason}; is "
            "the hub running, or was this certificate revoked? tacita federation doctor"
        )

    async def _on_message(self, message: Any) -> None:
        sender = message.subject.rpartition(".")[2]
        letter = self._pieces.join(sender, message.data)
        if letter is not None:
            self._letters.put(letter)

    async def _on_error(self, error: Exception) -> None:
        """Connections break and return; what was lost is asked for again."""
        self._last_error = error

    def under_way(self) -> dict[str, tuple[int, int]]:
        """Large letters that are coming in: pieces here and in all, by sender."""
        return self._pieces.under_way()

    @property
    def dropped(self) -> int:
        """Messages that are no pieces of letters, and letters given up half-way."""
        return self._pieces.dropped

    @property
    def connected(self) -> bool:
        """Whether the broker is reached right now."""
        return self._client.is_connected

    def know(self, invitation: Invitation) -> None:
        """Members came or went."""
        self._invitation = invitation

    def deliver(self, to: str, content: bytes) -> None:
        """Send; while the broker is away, letters are dropped and asked for later."""
        me = self._invitation
        subject = f"tacita.{me.federation}.{to}.{me.name}"
        asyncio.run_coroutine_threadsafe(self._publish(subject, content), self._loop)

    async def _publish(self, subject: str, content: bytes) -> None:
        if not self._client.is_connected:
            return
        for piece in self._pieces.cut(content):
            try:
                await self._client.publish(subject, piece)
            except Exception:
                return  # the letter is lost: its reader asks again

    def collect(self, seconds: float) -> list[bytes]:
        """What came, after waiting for something at most so long."""
        return take_all(self._letters, seconds)

    def close(self) -> None:
        """Send what is still under way, and leave."""
        try:
            if self._client.is_connected:
                self._wait(self._client.drain(), 5)
        except Exception:
            pass  # the broker is gone: nothing more can be sent
        self._end()

    def _end(self) -> None:
        async def stop() -> None:
            if not self._client.is_closed:
                await asyncio.wait_for(self._client.close(), 1)

        async def cancel() -> None:
            # Again and again: a client that is just reconnecting overhears it once.
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=0.1)

        try:
            for work in (stop(), cancel()):
                try:
                    self._wait(work, 3)
                except Exception:
                    pass  # the broker is gone, and so are we
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
            if not self._thread.is_alive():
                self._loop.close()


def _context(me: Invitation) -> ssl.SSLContext:
    """TLS 1.3, our authority only, our own certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=me.authority.decode())
    # The standard library reads keys from files only: the owner's, and gone at once.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "access.pem"
        write_private(path, me.access.certificate + me.access.key)
        context.load_cert_chain(path)
    return context


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__).split("\n")[0]
