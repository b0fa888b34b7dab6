"""A real browser for tests: the system's Chromium, without a window, driven by Playwright.

    with chromium() as browser, opened(browser) as tab:
        tab.open(page.as_uri())
        assert tab.problems == []

Playwright's calls must not be made where an event loop runs: an async test hands the whole block
to `asyncio.to_thread`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import needs
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

LIMIT_MS = 60_000

_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"),
    "--autoplay-policy=no-user-gesture-required",
)


class Tab:
    """One page of the browser.

    Attributes:
        page: Playwright's own, for everything that is not here.
        problems: Errors and warnings that the page's console showed, uncaught exceptions.
        asked: Addresses of everything that the page loaded or tried to.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("crash", lambda _: self.problems.append("the page crashed"))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address: str, ready: str = "true") -> None:
        """Load an address anew, also where only its part after # differs from the last.

        Args:
            address: Of the page.
            ready: An expression that holds once the page's own script has done its work.
        """
        self.page.goto("about:blank")
        self.page.goto(address)
        self.until(ready)

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives; a promise is waited for."""
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Wait until an expression holds, looked at once a frame or so."""
        self.page.evaluate(
            f"""new Promise((held, failed) => {{
                const end = performance.now() + {LIMIT_MS};
                const look = () => {{
                    let found = false;
                    try {{ found = Boolean({expression}); }} catch {{}}
                    if (found) held();
                    else if (performance.now() > end) failed(new Error("it never held"));
                    else setTimeout(look, 10);
                }};
                look();
            }})"""
        )

    def picture(self, path: Path) -> Path:
        """Write what the whole page looks like as a PNG file; return its path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=True)
        return path

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.problems.append(message.text)


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """Start the system's Chromium; end it with the block.

    Args:
        *options: More words of its command line, as `--use-fake-device-for-media-stream`.
    """
    program = needs("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*_OPTIONS, *options])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, **settings: Any) -> Iterator[Tab]:
    """Open a page with a profile of its own; close it with the block.

    Args:
        browser: Of `chromium`.
        **settings: Of Playwright's `new_context`, as `viewport`, `color_scheme`, `permissions`.
    """
    given: dict[str, Any] = {"viewport": {"width": 1300, "height": 1000}}
    context = browser.new_context(**(given | settings))
    try:
        yield Tab(context.new_page())
    finally:
        context.close()
