"""Who may ask the live page's server, and for what."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
import pytest

import tacita
from tacita.federation.audit_log import AuditLog
from tacita.federation.offers import OfferBook
from tacita.watch import LivePage, federation_source, run_source
from tacita.watch.app import make_app
from tacita.watch.guard import Guard
from tests.patience import HANG
from tests.watch import folders

TOKEN, HOST = "secret-token", "127.0.0.1:8000"
HERE = f"http://{HOST}"


class Browser:
    """Asks the application as if over the network; streams need a real server."""

    def __init__(self, folder: Path, source: Any = federation_source) -> None:
        app = make_app(source(folder), lambda: True, 0.01)
        hosts = {HOST, "localhost:8000"}
        self._transport = httpx.ASGITransport(Guard(app, TOKEN, hosts))

    def __call__(
        self, path: str, method: str = "GET", host: str = HOST, **more: Any
    ) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport) as client:
                headers = {"Host": host, **more.pop("headers", {})}
                return await client.request(
                    method, f"http://{HOST}{path}", headers=headers, **more
                )

        return asyncio.run(ask())

    def decide(self, run: Any, accept: Any, **headers: str | None) -> httpx.Response:
        sent = {"Origin": HERE, "Content-Type": "application/json", **headers}
        content = json.dumps({"run": run, "accept": accept})
        given = {k: v for k, v in sent.items() if v is not None}
        return self(f"/{TOKEN}/decide", "POST", headers=given, content=content)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.agent(tmp_path_factory.mktemp("oslo"), offers=1, releases=1)


@pytest.fixture(scope="module")
def ask(shared: Path) -> Browser:
    """Asks of an agent's folder in which nobody decides anything."""
    return Browser(shared)


def waiting(home: Path) -> str:
    return next((home / "offers").glob("*.json")).stem


def test_the_page_is_served_to_who_knows_the_token(ask: Browser):
    for name, kind in (
        ("", "text/html"),
        ("page.js", "text/javascript"),
        ("chart.js", "text/javascript"),
        ("page.css", "text/css"),
        ("style.css", "text/css"),
        ("events", "text/event-stream"),
    ):
        answer = ask(f"/{TOKEN}/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", "//", "/events", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/events", "/é/"],
)
def test_a_wrong_token_finds_nothing(ask: Browser, path: str):
    answer = ask(path)
    assert answer.status_code == 404 and "use the whole address" in answer.text


@pytest.mark.parametrize(
    "host",
    ["evil.example:8000", "127.0.0.1", "127.0.0.1:9", "127.0.0.1:8000.evil.org", ""],
)
def test_a_foreign_name_that_leads_here_is_refused(ask: Browser, host: str):
    assert ask(f"/{TOKEN}/", host=host).status_code == 421
    assert ask(f"/{TOKEN}/events", host=host).status_code == 421


def test_another_name_of_this_machine_is_not(ask: Browser):
    assert ask(f"/{TOKEN}/", host="localhost:8000").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "../status.json",
        "..%2fstatus.json",
        "%2e%2e/%2e%2e/etc/passwd",
        "status.json",
        "ledger.db",
        "../../../../etc/passwd",
        "/etc/passwd",
        "page.html",
        "server.py",
        "events/",
    ],
)
def test_no_path_leads_to_a_file(ask: Browser, path: str):
    answer = ask(f"/{TOKEN}/{path}")
    assert answer.status_code == 404
    assert "oslo" not in answer.text and "root:" not in answer.text


def test_a_page_of_another_origin_is_refused(ask: Browser, shared: Path):
    run = waiting(shared)
    for origin in ("http://evil.example", "null", "https://127.0.0.1:8000", None):
        assert ask.decide(run, True, Origin=origin).status_code == 403
    # Another server on this machine is another origin.
    assert ask.decide(run, True, Origin="http://127.0.0.1:8001").status_code == 403
    assert ask(f"/{TOKEN}/events", headers={"Origin": "http://x"}).status_code == 403
    assert OfferBook(shared, AuditLog(shared)).decision(run) is None


def test_a_person_accepts_by_the_page(tmp_path: Path):
    oslo = folders.agent(tmp_path, offers=1, releases=0)
    run = waiting(oslo)
    answer = Browser(oslo).decide(run, True)
    assert answer.status_code == 200 and "is accepted" in answer.json()["told"]
    assert OfferBook(oslo, AuditLog(oslo)).decision(run) is True
    assert AuditLog(oslo).events()[-1]["word"] == "accept"


@pytest.mark.parametrize(
    "run, accept",
    [
        (None, True),
        ("ab", True),
        ("../../x", False),
        ("", True),
        ("WHOLE", "yes"),
        ("WHOLE", 1),
    ],
)
def test_a_word_on_no_offer_changes_nothing(ask: Browser, shared: Path, run, accept):
    before = AuditLog(shared).head()
    answer = ask.decide(waiting(shared) if run == "WHOLE" else run, accept)
    assert answer.status_code in (400, 409) and answer.json()["error"]
    assert AuditLog(shared).head() == before


def test_words_of_another_kind_or_size_are_refused(ask: Browser, shared: Path):
    run = waiting(shared)
    form = {"Content-Type": "text/plain"}
    assert ask.decide(run, True, **form).status_code == 400
    assert ask.decide(run + "x" * 2000, True).status_code == 400
    for method in ("GET", "PUT", "DELETE"):
        answer = ask(f"/{TOKEN}/decide", method, headers={"Origin": HERE})
        assert answer.status_code == 405
    assert ask(f"/{TOKEN}/", "POST", headers={"Origin": HERE}).status_code == 405


def test_a_run_or_a_hub_has_nothing_to_decide(tmp_path: Path):
    ask = Browser(folders.going_run(tmp_path / "r"), run_source)
    assert ask.decide("ab", True).status_code == 404


def test_the_page_may_reach_nothing_but_its_server(ask: Browser):
    for path in (f"/{TOKEN}/", f"/{TOKEN}/events", "/wrong/"):
        headers = ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "*" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers and "server" not in headers


def test_the_page_names_no_other_server_and_holds_no_script():
    for room in ("tacita.watch", "tacita.report"):
        for file in resources.files(room).iterdir():
            if file.name.endswith((".html", ".css", ".js")):
                text = file.read_text().replace("http://www.w3.org/2000/svg", "")
                assert not re.search(r"https?:|//\w+\.|@import|url\(", text), file.name
    page = resources.files("tacita.watch").joinpath("page.html").read_text()
    assert not re.search(r"<script(?! src)|<style| on\w+=| style=", page)
    script = "".join(
        resources.files("tacita.watch").joinpath(name).read_text()
        for name in ("page.js", "chart.js")
    )
    # Others' words become text, never markup or code.
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|eval\(|Function\(", script
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_only_loopback_is_listened_on(tmp_path: Path, host: str):
    source = run_source(folders.going_run(tmp_path / "r"))
    with pytest.raises(tacita.TacitaError, match="for this machine only"):
        LivePage(source, host)


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path):
    source = run_source(folders.going_run(tmp_path / "r"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(tacita.TacitaError, match=f"cannot listen on port {port}"):
            LivePage(source, port=port)
    with pytest.raises(tacita.TacitaError, match="choose another with --port"):
        LivePage(source, port=70_000)


def next_event(lines: Any) -> dict[str, Any]:
    return json.loads(next(x for x in lines if x.startswith("data: "))[6:])


def test_changes_are_streamed_until_the_page_is_closed(tmp_path: Path, capfd):
    folder = folders.going_run(tmp_path / "r", done=10)
    page = LivePage(run_source(folder), every=0.05)
    token = page.address.split("/")[-2]
    with page, httpx.stream("GET", page.address + "events", timeout=HANG) as answer:
        lines = answer.iter_lines()
        first = next_event(lines)
        assert first["order"][0] == "head" and first["head"]["done"] == 10
        folders.going_run(folder, done=20)
        assert next_event(lines)["head"]["done"] == 20
        page._server.should_exit = True
        assert all(not line.startswith("data") for line in lines)  # it ends
    with pytest.raises(httpx.ConnectError):
        httpx.get(page.address)
    said = capfd.readouterr()
    assert token not in said.out + said.err and not said.err
    assert len(token) >= 40 and page.address.startswith("http://127.0.0.1:")


def test_who_asks_nothing_keeps_nobody_out(tmp_path: Path):
    page = LivePage(run_source(folders.going_run(tmp_path / "r")), every=0.05)
    where = httpx.URL(page.address)
    idle: list[socket.socket] = []
    with page, httpx.stream("GET", page.address + "events", timeout=HANG) as answer:
        lines = answer.iter_lines()
        next_event(lines)
        try:
            for k in range(150):
                idle.append(socket.create_connection((where.host, where.port or 0)))
                # Some say nothing, some half of a request, some are told to go away.
                half = (b"", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\n\r\n")[
                    k % 3
                ]
                idle[-1].sendall(half)
            assert httpx.get(page.address, timeout=HANG).status_code == 200
            folders.going_run(tmp_path / "r", done=20)
            assert next_event(lines)["head"]["done"] == 20  # the stream has its place
        finally:
            for one in idle:
                one.close()


@pytest.mark.long
def test_the_command_prints_the_address_and_ends_cleanly(tmp_path: Path):
    folder = folders.going_run(tmp_path / "r")
    command = [sys.executable, "-u", "-m", "tacita", "watch", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        address = program.stdout.readline().removeprefix("live page: ").strip()
        with httpx.stream("GET", f"{address}events", timeout=HANG) as answer:
            assert next_event(answer.iter_lines())["head"]["title"] == "digits"
            program.send_signal(2)
            assert program.wait(HANG) == 0
        assert program.stderr.read() == ""
        assert program.stdout.read().endswith("the live page is closed\n")
