"""Ctrl-C that ends a command, whatever Python was doing at that moment."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from typing import Any

#: Seconds until the callback that lost an interrupt has surely ended.
_SOON = 0.05


def keep_interrupts() -> None:
    """Repeat an interrupt that Python lost in a callback, where nothing can be raised.

    JAX has one at every collection of garbage, and a signal that arrives while a
    program compiles or runs is most often heard there: the run would go on.
    """
    before = sys.unraisablehook

    def unraisable(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        timer = threading.Timer(_SOON, _interrupt)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = unraisable


def _interrupt() -> None:
    if os.name == "posix":  # a signal ends a wait too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
