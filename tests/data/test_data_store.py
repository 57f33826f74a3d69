"""Where files come from: folder, cache, web; and that nothing is half-written."""

import gzip
import hashlib
import io
import os
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tacita.check import TacitaError
from tacita.data import sources
from tacita.data.catalog import DataFile, Source
from tacita.data.download import download
from tacita.data.unpack import UnpackError, gunzip, line_feeds, zip_member
from tests.patience import HANG

CONTENT = b"one,two\n1,2\n" * 50


def file_of(*sources, path="toy/table.csv", content=CONTENT):
    return DataFile(
        path=path,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        sources=sources,
    )


def zipped(name, content):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return memory.getvalue()


def files_under(folder):
    return [p for p in folder.rglob("*") if p.is_file()] if folder.exists() else []


def test_a_good_file_is_downloaded_once_then_read_from_the_cache(cache, server):
    server.files["/table.csv"] = ("good", CONTENT)
    file = file_of(Source(url=f"{server.url}/table.csv"))
    assert sources.read(file) == CONTENT
    assert files_under(cache) == [cache / "toy/table.csv"]
    assert sources.read(file) == CONTENT
    assert server.requests == ["/table.csv"]


def test_an_answer_without_a_stated_length_is_fine(cache, server):
    server.files["/table.csv"] = ("good", CONTENT)
    handler = server.RequestHandlerClass
    original = handler.send_header
    handler.send_header = lambda self, key, value: None
    try:
        assert sources.read(file_of(Source(url=f"{server.url}/table.csv"))) == CONTENT
    finally:
        handler.send_header = original


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("good", CONTENT.replace(b"2", b"3"), "wrong checksum"),
        ("good", CONTENT[:-1], "wrong checksum"),
        ("good", b"", "wrong checksum"),
        ("missing", CONTENT, "HTTP 404"),
        ("cut off", CONTENT, "cut off after 600 of 1600 bytes"),
        ("silent", CONTENT, "no answer within 0.2 s"),
        ("slow", CONTENT, "too slow"),
    ],
)
def test_a_bad_download_is_refused_in_one_line_and_leaves_nothing(
    cache, server, kind, payload, words
):
    server.files["/table.csv"] = (kind, payload)
    file = file_of(Source(url=f"{server.url}/table.csv"))
    # Only who tests a limit has one: a busy machine answers late.
    limits = {"timeout": HANG, "deadline": HANG}
    if kind in ("silent", "slow"):
        limits = {"timeout": 0.2, "deadline": 0.4}
    with pytest.raises(TacitaError, match=words) as caught:
        download(file, cache, **limits)
    message = str(caught.value)
    assert "\n" not in message
    assert "TACITA_DATA" in message and "toy/table.csv" in message
    assert files_under(cache) == []


def test_a_closed_port_and_a_strange_address_are_refused(cache, server):
    for url in ("http://127.0.0.1:1/table.csv", "file:///etc/hostname", "nonsense"):
        with pytest.raises(TacitaError, match="could not download"):
            download(file_of(Source(url=url)), cache, timeout=HANG)
    assert files_under(cache) == []


def test_a_terminal_sees_a_bar_for_a_large_file(cache, server, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    content = bytes(2 << 20)
    server.files["/big.bin"] = ("good", content)
    server.files["/table.csv"] = ("good", CONTENT)
    monkeypatch.setattr("sys.stderr", Terminal())
    sources.read(file_of(Source(url=f"{server.url}/table.csv")))
    assert sys.stderr.getvalue() == ""
    file = file_of(
        Source(url=f"{server.url}/big.bin"), path="toy/big.bin", content=content
    )
    assert sources.read(file) == content
    assert "big.bin" in sys.stderr.getvalue()


def test_the_next_source_is_tried_when_one_fails(cache, server):
    server.files["/b.csv"] = ("good", CONTENT)
    file = file_of(Source(url=f"{server.url}/a.csv"), Source(url=f"{server.url}/b.csv"))
    assert sources.read(file) == CONTENT
    assert server.requests == ["/a.csv", "/b.csv"]


def test_members_of_archives_and_other_line_ends_are_unpacked(cache, server):
    inner = zipped("folder/table.csv", CONTENT)
    server.files["/outer.zip"] = ("good", zipped("inner.zip", inner))
    steps = (zip_member("inner.zip"), zip_member("folder/table.csv"))
    nested = Source(url=f"{server.url}/outer.zip", unpack=steps)
    assert sources.read(file_of(nested)) == CONTENT
    # Kept compressed although it was not published as a gzip file: same bytes always.
    packed = file_of(nested, path="toy/table.csv.gz")
    assert sources.read(packed) == CONTENT
    kept = (cache / "toy/table.csv.gz").read_bytes()
    assert kept == gzip.compress(CONTENT, mtime=0)
    server.files["/mac.csv"] = ("good", CONTENT.replace(b"\n", b"\r")[:-1])
    returns = Source(url=f"{server.url}/mac.csv", unpack=(line_feeds,))
    assert sources.read(file_of(returns, path="toy/mac.csv")) == CONTENT


def test_a_gzip_file_is_accepted_whatever_its_header_says(cache, server):
    file = file_of(
        Source(url=f"{server.url}/t.gz", unpack=(gunzip,)), path="toy/table.csv.gz"
    )
    for stamp in (0, 123456789):
        published = gzip.compress(CONTENT, mtime=stamp)
        server.files["/t.gz"] = ("good", published)
        assert sources.read(file) == CONTENT
        assert (cache / "toy/table.csv.gz").read_bytes() == published
        (cache / "toy/table.csv.gz").unlink()


def test_unpacking_never_produces_more_than_expected():
    bomb = gzip.compress(bytes(10_000_000))
    for step, payload in (
        (gunzip, bomb),
        (zip_member("a"), zipped("a", bytes(10_000_000))),
        (line_feeds, bytes(101)),
    ):
        with pytest.raises(UnpackError, match="more than"):
            step(payload, 100)
    with pytest.raises(UnpackError, match="ends too early"):
        gunzip(gzip.compress(CONTENT)[:-20], len(CONTENT))
    with pytest.raises(UnpackError, match="not a gzip"):
        gunzip(CONTENT, len(CONTENT))
    with pytest.raises(UnpackError, match="no member 'b'"):
        zip_member("b")(zipped("a", b""), 10)
    with pytest.raises(UnpackError, match="not a readable zip"):
        zip_member("a")(zipped("a", CONTENT)[:-30], len(CONTENT))


def test_a_mirror_replaces_every_source(cache, server, monkeypatch):
    monkeypatch.setenv("TACITA_MIRROR", f"{server.url}/mirror/")
    server.files["/mirror/toy/table.csv"] = ("good", CONTENT)
    server.files["/mirror/toy/table.csv.gz"] = ("good", gzip.compress(CONTENT))
    outside = Source(url=f"{server.url}/outside.csv")
    assert sources.read(file_of(outside)) == CONTENT
    assert sources.read(file_of(outside, path="toy/table.csv.gz")) == CONTENT
    assert all(path.startswith("/mirror/") for path in server.requests)


def test_the_data_folder_comes_first_and_is_checked_too(
    cache, server, tmp_path, monkeypatch
):
    folder = tmp_path / "data"
    (folder / "toy").mkdir(parents=True)
    (folder / "toy/table.csv").write_bytes(CONTENT)
    monkeypatch.setenv("TACITA_DATA", str(folder))
    file = file_of(Source(url=f"{server.url}/table.csv"))
    assert sources.read(file) == CONTENT
    assert server.requests == [] and files_under(cache) == []
    (folder / "toy/table.csv").write_bytes(CONTENT.replace(b"1", b"7"))
    with pytest.raises(
        TacitaError, match=r"data/toy/table\.csv has the wrong checksum"
    ):
        sources.read(file)
    # What the folder lacks comes from the cache or the web.
    (folder / "toy/table.csv").unlink()
    server.files["/table.csv"] = ("good", CONTENT)
    assert sources.read(file) == CONTENT
    assert files_under(folder) == []


def test_broken_folders_and_files_are_refused(cache, tmp_path, monkeypatch):
    file = file_of(path="toy/table.csv.gz")
    target = cache / "toy/table.csv.gz"
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(CONTENT)[:30])
    with pytest.raises(TacitaError, match="ends too early; delete it"):
        sources.read(file)
    target.unlink()
    target.mkdir()
    with pytest.raises(TacitaError, match="cannot read"):
        sources.read(file)
    monkeypatch.setenv("TACITA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(TacitaError, match="is not a folder"):
        sources.read(file)


def test_a_relative_cache_is_ignored_and_a_missing_home_refused(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert sources.cache_folder() == Path.home() / ".cache" / "tacita"

    def homeless():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(TacitaError, match="no home folder"):
        sources.cache_folder()


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing(cache, server, monkeypatch, failing):
    server.files["/table.csv"] = ("good", CONTENT)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    file = file_of(Source(url=f"{server.url}/table.csv"))
    with pytest.raises(TacitaError, match="No space left on device; make room"):
        sources.read(file)
    monkeypatch.undo()
    assert files_under(cache) == []


def test_an_interrupt_leaves_nothing(cache, server, monkeypatch):
    server.files["/table.csv"] = ("good", CONTENT)

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sources.read(file_of(Source(url=f"{server.url}/table.csv")))
    assert files_under(cache) == []


def test_two_downloads_at_once_both_end_well(cache, server):
    server.files["/table.csv"] = ("good", CONTENT)
    file = file_of(Source(url=f"{server.url}/table.csv"))
    threads = [threading.Thread(target=download, args=(file, cache)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files_under(cache) == [cache / "toy/table.csv"]
    assert sources.read(file) == CONTENT
