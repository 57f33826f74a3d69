"""A ledger that is read while somebody writes to it: nothing looks tampered with."""

import errno
import itertools
import os
import threading

import pytest

from tacita.privacy import BrokenLedger, Ledger
from tacita.privacy.ledger import back_up, end, restore, store
from tests.privacy.test_privacy_ledger import charge, opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def test_a_backup_and_an_account_are_of_one_moment(path, tmp_path, monkeypatch):
    """Somebody charges a letter after every single read, where it is let."""
    opened(path, epsilon=100.0).close()
    numbers, real, inside = itertools.count(), os.pread, []

    with Ledger(path, patience=0.0) as writer:

        def pread(*where):
            found = real(*where)
            if not inside:
                inside.append(True)
                try:
                    charge(writer, next(numbers))
                except BrokenLedger as error:
                    assert "another program is writing" in str(error)
                inside.clear()
            return found

        monkeypatch.setattr(store.os, "pread", pread)
        copy = tmp_path / "copy"
        rows = back_up(path, copy)
        with Ledger(path, read_only=True) as reader:
            heads = {reader.head() for _ in range(3)}
            told = {reader.verify(), len(reader.rows()), reader.end[0]}
        monkeypatch.undo()
        assert writer.verify() > rows  # it did write meanwhile
    assert len(heads) == len(told) == 1
    assert restore(copy, tmp_path / "other.db").rows == rows


def test_a_ledger_that_is_just_being_made_is_waited_for(path):
    for file in (path, end.path_of(path)):
        file.touch()
    maker = threading.Timer(0.02, lambda: opened(path).close())
    maker.start()
    with Ledger(path, read_only=True) as reader:
        assert reader.verify() >= 1
    maker.join()


def test_rows_that_are_taken_back_were_seen_by_nobody(path, monkeypatch):
    """The disk is full while another program looks."""
    opened(path, epsilon=100.0).close()
    with Ledger(path) as writer, Ledger(path, patience=0.0) as other:

        def full(file):
            with pytest.raises(BrokenLedger, match="another program is writing"):
                other.head()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(store, "sync_file", full)
        with pytest.raises(BrokenLedger, match="nothing may leave"):
            charge(writer, 0)
        monkeypatch.undo()
        charge(writer, 1, content=b"another letter, as long as it takes")
        assert other.head() == writer.head()
