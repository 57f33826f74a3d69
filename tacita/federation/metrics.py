"""A program's numbers over HTTP, for monitoring: Prometheus text and health.

    GET /metrics    numbers, text format 0.0.4
    GET /healthz    200 "ok", or 503 and why not

On loopback only. An agent tells its own budget here, which is for its own house; a
coordinator tells nobody's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol, Self

from tacita.check import TacitaError, refuse
from tacita.federation.post import Post
from tacita.trace.epsilon_words import reasons

#: Seconds without a sign of life after which a program counts as stuck: one step of
#: an agent may take long.
_STUCK = 600.0
ADDRESS = "127.0.0.1"
#: Names of this machine. A web page of a foreign name that leads here, opened in a
#: browser of the house, would read the numbers otherwise.
_HERE = (ADDRESS, "localhost")


class Sample(NamedTuple):
    """One number."""

    name: str
    kind: str
    help: str
    value: float
    labels: Mapping[str, str] = {}


class Source(Protocol):
    """Who has numbers to tell."""

    def samples(self) -> Iterator[Sample]:
        """The numbers."""
        ...

    def trouble(self) -> str | None:
        """What is wrong, in one line; None if nothing is."""
        ...


def text_of(samples: Iterator[Sample]) -> str:
    r"""The numbers in Prometheus' text format.

    >>> print(text_of(iter([Sample("tacita_round", "gauge", "Round.", 3.0)])), end="")
    # HELP tacita_round Round.
    # TYPE tacita_round gauge
    tacita_round 3
    """
    lines: list[str] = []
    seen: set[str] = set()
    for one in samples:
        if one.name not in seen:
            seen.add(one.name)
            lines += [
                f"# HELP {one.name} {one.help}",
                f"# TYPE {one.name} {one.kind}",
            ]
        words = ",".join(f'{k}="{_escape(v)}"' for k, v in one.labels.items())
        labels = f"{{{words}}}" if words else ""
        lines.append(f"{one.name}{labels} {one.value:.17g}")
    return "\n".join(lines) + "\n"


def _escape(word: str) -> str:
    return word.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Pulse:
    """What a party's program says of itself: the last status, and that it lives.

    Args:
        party: Its name.
        more: Numbers besides the status: when the certificate ends, the roster.
    """

    def __init__(self, party: str, more: Callable[[], Mapping[str, float]]) -> None:
        self._party, self._more = party, more
        self._told: Mapping[str, Any] = {}
        self._beat, self._connected = time.monotonic(), True
        self._round: tuple[int, float] | None = None
        self._seconds = self._ended = 0.0

    def beat(self, post: Post, told: Mapping[str, Any] | None = None) -> None:
        """The program lives; `told` is its status, if it has one."""
        now = time.monotonic()
        self._beat, self._connected = now, post.connected
        if told is None:
            return
        self._told, number = told, int(told["round"])
        if self._round is None or number < self._round[0]:
            self._round = number, now
        elif number > self._round[0]:
            before, since = self._round
            self._seconds = (now - since) / (number - before)
            self._round, self._ended = (number, now), time.time()

    def trouble(self) -> str | None:
        """What is wrong."""
        silent = time.monotonic() - self._beat
        if silent > _STUCK:
            return f"no sign of life for {silent:.0f} s"
        return None if self._connected else "not connected to the broker"

    def samples(self) -> Iterator[Sample]:
        """The numbers."""
        me, told = {"party": self._party}, self._told
        more = self._more()
        for name, kind, words, value in (
            ("connected", "gauge", "Whether a broker is reached.", self._connected),
            (
                "certificate_end_timestamp_seconds",
                "gauge",
                "When the certificate ends.",
                more["certificate_ends"],
            ),
            (
                "roster_version",
                "gauge",
                "Version of the roster that is known.",
                more["roster_version"],
            ),
        ):
            yield Sample(f"tacita_{name}", kind, words, float(value), me)
        if not told:
            return
        for key, name, kind, words in _OF_STATUS:
            value = told.get(key, 0)
            value = sum(value.values()) if isinstance(value, Mapping) else value
            yield Sample(f"tacita_{name}", kind, words, float(value), me)
        yield Sample(
            "tacita_last_round_seconds", "gauge", "What it took.", self._seconds, me
        )
        yield Sample(
            "tacita_last_round_timestamp_seconds",
            "gauge",
            "When it ended.",
            self._ended,
            me,
        )
        yield from _budget(told, me)


#: Key of the status, name of the number, its kind, its meaning.
_OF_STATUS = (
    ("round", "round", "gauge", "The round of the run in progress."),
    ("rounds", "rounds", "gauge", "Rounds of the run in all."),
    ("finished", "finished", "gauge", "Whether the run is over."),
    ("sent", "letters_sent_total", "counter", "Letters sent."),
    ("received", "letters_received_total", "counter", "Letters received."),
    ("repeated", "letters_repeated_total", "counter", "Letters that came again."),
    ("refused", "letters_refused_total", "counter", "Letters refused."),
    ("dropped", "messages_dropped_total", "counter", "Messages that are no letters."),
    ("sent_bytes", "sent_bytes_total", "counter", "Bytes sent."),
    ("received_bytes", "received_bytes_total", "counter", "Bytes received."),
)


def _budget(told: Mapping[str, Any], me: Mapping[str, str]) -> Iterator[Sample]:
    """The agent's own budget, with all that an epsilon is about."""
    if "epsilon_spent" not in told:
        return
    about = {
        **me,
        "observer": str(told["observer"]),
        "unit": str(told["unit"]),
        "relation": str(told["relation"]),
        "delta": f"{told['delta']:g}",
    }
    # Not as labels: they grow with the runs, and every change would be a new series.
    why = reasons(told)
    for word in ("spent", "allowed"):
        words = f"Epsilon {word} over all runs of this ledger, {why}."
        value = float(told[f"epsilon_{word}"])
        yield Sample(f"tacita_epsilon_{word}", "gauge", words, value, about)


class MetricsServer:
    """Tells a source's numbers on loopback while it is used as a context.

    Args:
        port: Where; 0 for one that is free.
        source: Whose numbers.
    """

    def __init__(self, port: int, source: Source) -> None:
        handler = _handler(source)
        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            refuse(f"cannot tell metrics on port {port}: {reason}; choose another")
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _handler(source: Source) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0]
            if host not in _HERE:
                self._answer(403, "text/plain", "ask for http://127.0.0.1\n")
            elif self.path == "/metrics":
                kind = "text/plain; version=0.0.4; charset=utf-8"
                try:
                    self._answer(200, kind, text_of(source.samples()))
                except TacitaError as error:
                    self._answer(503, "text/plain", f"{error}\n")
            elif self.path == "/healthz":
                trouble = source.trouble()
                code = 200 if trouble is None else 503
                self._answer(code, "text/plain", f"{trouble or 'ok'}\n")
            else:
                self._answer(404, "text/plain", "see /metrics and /healthz\n")

        def _answer(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: monitoring asks every few seconds."""

    return Handler
