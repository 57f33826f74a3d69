"""Ctrl-C at a moment when Python can raise nothing."""

import gc
import os
import signal
import sys
import time

import pytest

from tacita.cli.interrupts import keep_interrupts


def test_an_interrupt_during_a_collection_of_garbage_is_repeated(monkeypatch):
    """As in JAX, whose callback at every collection would swallow it."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    heard = []

    def callback(phase, info):
        if not heard:
            heard.append(phase)
            os.kill(os.getpid(), signal.SIGINT)

    keep_interrupts()
    gc.callbacks.append(callback)
    try:
        with pytest.raises(KeyboardInterrupt):
            gc.collect()
            time.sleep(5)
    finally:
        gc.callbacks.remove(callback)
    assert heard == ["start"]


def test_all_else_is_told_as_before(monkeypatch):
    """To whoever listened: pytest, where a test calls the program."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    keep_interrupts()

    class Loud:
        def __del__(self):
            raise ValueError("loud")

    Loud()
    assert [str(one.exc_value) for one in told] == ["loud"]
