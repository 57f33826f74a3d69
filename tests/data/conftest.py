"""Fixtures: a data folder if there is one, a cache of its own, a server of files."""

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.patience import HANG


@pytest.fixture(scope="session")
def real():
    """The folder with the real files; a test that needs it is skipped without it."""
    named = os.environ.get("TACITA_DATA")
    if not named:
        pytest.skip("TACITA_DATA names no folder with the data sets")
    return Path(named)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """No data folder and an empty cache, so that files have to be downloaded."""
    monkeypatch.delenv("TACITA_DATA", raising=False)
    monkeypatch.delenv("TACITA_MIRROR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache" / "tacita"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        kind, payload = self.server.files.get(self.path, ("missing", b""))
        if kind == "silent":
            self.server.closing.wait(HANG)
            return
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        longer = 1000 if kind == "cut off" else 0
        self.send_header("Content-Length", str(len(payload) + longer))
        self.end_headers()
        if kind == "slow":
            for byte in payload:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        else:
            self.wfile.write(payload)

    def log_message(self, *args):
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that hangs up on a slow answer is what the tests ask for."""


@pytest.fixture
def server():
    """Serves `files[path] = (kind, payload)`; its address is `url`."""
    with _Server(("127.0.0.1", 0), _Handler) as http:
        http.files, http.requests = {}, []
        http.closing = threading.Event()
        http.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield http
        finally:
            http.closing.set()
            http.shutdown()
            thread.join()
