"""A real browser for tests: the system's Chromium, without a window, by its own protocol."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import needs
from websockets.sync.client import ClientConnection, connect

LIMIT_S = 60


class Tab:
    """One page of the browser.

    Attributes:
        problems: Errors that the page's console showed, uncaught exceptions, refused content.
        asked: Addresses of everything that the page loaded or tried to.
    """

    def __init__(self, line: ClientConnection) -> None:
        self._line = line
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.asked: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        found = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Load an address and wait until the page's own script has drawn it."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        self.until("document.documentElement.dataset.ready === 'true'")

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives; a promise is waited for."""
        found = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression holds, looked at once a frame or so."""
        while True:
            found = self._call(
                "Runtime.evaluate",
                expression=f"new Promise((done) => {{ const look = () => {{ let held = false; try "
                f"{{ held = Boolean({expression}); }} catch {{}} held ? done(true) : "
                "setTimeout(look, 10); }; look(); })",
                returnByValue=True,
                awaitPromise=True,
            )
            if found.get("result", {}).get("value") is True:
                return  # else the page was replaced meanwhile

    def press(self, key: str) -> None:
        """Press and let go of one key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path) -> Path:
        """Write what the page looks like as a PNG file; return its path."""
        found = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def dark(self, *, dark: bool) -> None:
        """Have the system prefer a dark or a light page."""
        wanted = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[wanted])

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._line.send(json.dumps(message))
        while True:
            found = json.loads(self._line.recv(timeout=LIMIT_S))
            if found.get("id") == self._number:
                if "error" in found and method == "Runtime.evaluate":
                    return {}  # the page that it was asked of is gone
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self._told(found.get("method"), found.get("params") or {})

    def _told(self, method: str | None, params: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                self.problems.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.problems.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            case _:
                pass


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Start Chromium with a profile of its own; end it with the block."""
    program = needs("chromium")
    options = (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--mute-audio", "--autoplay-policy=no-user-gesture-required", "--hide-scrollbars"),
        *("--disable-dev-shm-usage", "--window-size=1300,1000", f"--user-data-dir={profile}"),
    )
    with subprocess.Popen(
        [program, *options, "about:blank"], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            place = next(
                line.split()[-1] for line in process.stderr if line.startswith("DevTools listening")
            )
            with connect(place, max_size=None, ping_interval=None) as line:
                tab = Tab(line)
                yield tab
                line.send(json.dumps({"id": 0, "method": "Browser.close"}))
                process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
