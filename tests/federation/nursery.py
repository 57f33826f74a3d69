"""Commands as processes that start at once: forked from one that imported everything.

A program that is killed and started again by the hundred spends its life on imports
otherwise. JAX is imported there, but has computed nothing, so that forking is safe.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import tacita
from tacita.cli import main

# Commands import what they need when they need it; here all of it is there before.
for _module in pkgutil.walk_packages(tacita.__path__, "tacita."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)
for _name in ("dp_accounting", "networkx"):
    importlib.import_module(_name)

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
# JAX warns of forks in general; the server of this nursery has no other threads.
warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)


class Forked:
    """A command of `tacita` as a process; used as `subprocess.Popen` is.

    Args:
        words: What stands behind `tacita`.
        log: Where its output goes.
    """

    def __init__(self, words: list[str], log: Path) -> None:
        self._words = words
        self._process = _FORKS.Process(target=_run, args=(words, log))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it is over."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, one: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, one)

    def terminate(self) -> None:
        """End it kindly."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _run(words: list[str], log: Path) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.argv = ["tacita", *words]
    main()
