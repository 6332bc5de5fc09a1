"""A headless Chromium driven by its own DevTools protocol, without any package.

Commands and events travel as JSON over a pipe (`--remote-debugging-pipe`). For tests of the
report page and for its screenshots.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # as root there is no sandbox to be had
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)
# The shell gives the browser the pipe on descriptors 3 and 4, where it expects it.
_SHELL = 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1'
_END = b"\0"
PATIENCE = 60
"""Seconds to wait for an answer; a busy machine takes a few to start a browser."""


def find() -> str | None:
    """Return the path of a Chromium on this machine, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextlib.contextmanager
def opened(program: str) -> Iterator[Tab]:
    """Give a tab of a browser of its own that ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["/bin/sh", "-c", _SHELL, "sh", program, *FLAGS, f"--user-data-dir={profile}"]
        with subprocess.Popen(  # noqa: S603  (our own browser)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            try:
                yield Tab(process)
            finally:
                process.kill()


class Tab:
    """One tab: commands out, answers and events in."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self._session: str | None = None
        self._unread = b""
        self.events: list[dict[str, Any]] = []
        """Everything the page reported, in order."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Return the answer to a command; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        self._send(message)
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, url: str) -> None:
        """Load a page and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._receive())

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Show the page as a screen of so many pixels would."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,  # noqa: PLR2004  (phones are narrower)
        )

    def prefer(self, scheme: str, media: str = "") -> None:
        """Ask for ``light`` or ``dark`` colors, on the screen or in ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  (whatever the page returns)
        """Return the value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def screenshot(self, path: str | Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        """Return the page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the browser has no pipe")
        self._process.stdin.write(json.dumps(message).encode() + _END)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        if self._process.stdout is None:
            raise RuntimeError("the browser has no pipe")
        pipe = self._process.stdout.fileno()
        while _END not in self._unread:
            if not select.select([pipe], [], [], PATIENCE)[0]:
                raise RuntimeError(f"the browser did not answer within {PATIENCE} s")
            part = os.read(pipe, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self._unread += part
        text, _, self._unread = self._unread.partition(_END)
        message: dict[str, Any] = json.loads(text)
        return message
