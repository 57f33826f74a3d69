"""The post over NATS: core messages only, nothing kept by the broker.

The network lives on a thread of its own, so that a long computation does not let the
connection die. Letters leave one after the other, in order; whoever writes faster than
the broker reads has to wait. Those over 4 MB travel in pieces; a piece that is lost
costs the whole letter, which its reader then asks for again.

Pieces are held before anybody can check who wrote them: of every sender one letter, and
no more of it than this party would read.
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
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from nats.aio.client import Client

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation.invitation import Invitation
from tacita.federation.post import Post, take_all
from tacita.federation.seal import OVERHEAD

PIECE = 4 << 20
#: Bytes that wait to be sent; then whoever writes has to wait, so many seconds at most.
_MOST_QUEUED, _MOST_WAIT = 64 << 20, 60.0
#: Bytes of one sender's letters that wait to be read, besides the largest one.
_MOST_UNREAD = 4 << 20
_HEAD = struct.Struct("<16sII")
# The event loop remarks on every TLS connection that ends, which is no news.
logging.getLogger("asyncio").addFilter(lambda said: "eof_received" not in str(said.msg))


class _Open(NamedTuple):
    """A letter of which some pieces are here."""

    mark: bytes
    pieces_in_all: int
    pieces: dict[int, bytes]


class Pieces:
    """Cuts letters, and puts their pieces together again.

    Args:
        size: Bytes of a piece.
        most_bytes: Bytes of a letter that is put together.
    """

    def __init__(self, size: int = PIECE, most_bytes: int = PIECE) -> None:
        self._size, self.most_bytes = size, most_bytes
        #: By sender: nobody can spoil or crowd out another one's letter.
        self._open: dict[str, _Open] = {}
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
        if not self._acceptable(message):
            self.dropped += 1
            return None
        mark, number, count = _HEAD.unpack_from(message)
        body = message[_HEAD.size :]
        if count == 1:
            return body
        known = self._open.get(sender)
        if known is None or (known.mark, known.pieces_in_all) != (mark, count):
            # Letters come one after the other: the older one lost a piece.
            self.dropped += known is not None
            known = self._open[sender] = _Open(mark, count, {})
        known.pieces[number] = body
        if len(known.pieces) < count:
            return None
        del self._open[sender]
        return b"".join(known.pieces[i] for i in range(count))

    def _acceptable(self, message: bytes) -> bool:
        """Whether it is a piece, as long as it must be, of a letter not too long."""
        if len(message) < _HEAD.size:
            return False
        _, number, count = _HEAD.unpack_from(message)
        length = len(message) - _HEAD.size
        if count == 1:
            return number == 0 and length <= min(self._size, self.most_bytes)
        full = length == self._size
        last = number == count - 1 and 0 < length <= self._size
        within = (count - 1) * self._size < self.most_bytes
        return number < count and within and (full or last)

    def under_way(self) -> dict[str, tuple[int, int]]:
        """Of the letter that each sender is sending: pieces here, pieces in all."""
        # Copied in one step: letters come in on another thread.
        found = dict(self._open).items()
        return {sender: (len(one.pieces), one.pieces_in_all) for sender, one in found}


class NatsPost(Post):
    """One party's connection to the broker; comes back by itself when that returns.

    Args:
        invitation: Where the broker is, and who we are.
        patience: Seconds to wait for the first connection.
    """

    def __init__(self, invitation: Invitation, patience: float = 30.0) -> None:
        self._invitation = invitation
        self._letters: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._unread: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._pieces = Pieces()
        self._outgoing: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._queued, self._room = 0, threading.Condition()
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
            # Beyond this, publishing waits until the broker has read.
            "pending_size": 2 * PIECE,
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
        self._sender = asyncio.create_task(self._send_all())

    def _refuse_connection(self, error: Exception) -> NoReturn:
        reason = _short(self._last_error or error)
        refuse(
            f"no connection to the broker at {self._invitation.server}: {reason}; is "
            "the hub running, or was this certificate revoked? tacita federation doctor"
        )

    async def _on_message(self, message: Any) -> None:
        sender = message.subject.rpartition(".")[2]
        if sender not in self._invitation.others:
            return
        letter = self._pieces.join(sender, message.data)
        if letter is None:
            return
        with self._lock:
            most = self._pieces.most_bytes + _MOST_UNREAD
            if self._unread[sender] + len(letter) > most:
                self._pieces.dropped += 1
                return
            self._unread[sender] += len(letter)
        self._letters.put((sender, letter))

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

    def expect(self, most_bytes: int) -> None:
        """Put no larger letters together than these."""
        self._pieces.most_bytes = most_bytes + OVERHEAD

    def know(self, invitation: Invitation) -> None:
        """Members came or went."""
        self._invitation = invitation

    def deliver(self, to: str, content: bytes) -> None:
        """Send; while the broker is away, letters are dropped and asked for later."""
        me = self._invitation
        subject = f"tacita.{me.federation}.{to}.{me.name}"
        with self._room:
            room = self._room.wait_for(lambda: self._queued < _MOST_QUEUED, _MOST_WAIT)
            if not room:
                return  # the broker does not read: the letter is asked for later
            self._queued += len(content)
        self._loop.call_soon_threadsafe(self._outgoing.put_nowait, (subject, content))

    async def _send_all(self) -> None:
        """One letter after the other, for their order tells what was lost."""
        while True:
            subject, content = await self._outgoing.get()
            try:
                await self._publish(subject, content)
            finally:
                with self._room:
                    self._queued -= len(content)
                    self._room.notify()
                self._outgoing.task_done()

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
        found = take_all(self._letters, seconds)
        with self._lock:
            for sender, letter in found:
                self._unread[sender] -= len(letter)
        return [letter for _, letter in found]

    def close(self) -> None:
        """Send what is still under way, and leave."""
        try:
            self._wait(self._outgoing.join(), 5)
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

        async def hang_up() -> None:
            # A client that was cut off in the midst of its end leaves the line open.
            line = getattr(self._client, "_transport", None)
            if line is not None:
                line.close()
                await asyncio.wait_for(line.wait_closed(), 1)

        try:
            for work in (stop(), cancel(), hang_up()):
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
