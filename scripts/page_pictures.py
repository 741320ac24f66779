"""Pictures of the pages of a server, as a desk and a phone show them.

    python scripts/page_pictures.py FOLDER [--url URL] [PART ...]

Without a URL the demo is served for as long as it takes; a part is what follows the # of an address. Needs
Chromium, as the tests of the page do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import serve_demo
from playwright.sync_api import sync_playwright

import headrace as hr

WIDTHS: Final = (1280, 390)
"""Of the pictures, in pixels: a desk's and a phone's."""
PARTS: Final = (
    "queries",
    "queries/pace",
    "queries/dear",
    "plan",
    "streams",
    "streams/bid",
    "sinks",
    "editor",
)
EVENTS: Final = """
CREATE QUERY IF NOT EXISTS dear AS SELECT auction, price, channel FROM bid WHERE price > 1000000;
ALTER STREAM bid RETAIN 10 MINUTES
"""
PATIENCE: Final = 120.0
"""Seconds that a first epoch has, which compiles."""


def main() -> int:
    """Take the pictures; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    parser.add_argument("parts", nargs="*", default=PARTS, help="parts of the page")
    parser.add_argument("--url", help="of a server; the demo if it is left out")
    parser.add_argument("--wait", type=float, default=15.0, help="seconds before the first picture")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    options = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("HEADRACE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        print("there is no Chromium (hint: apt-get install chromium)", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    with server(options.url) as url:
        threading.Event().wait(options.wait)
        take(url, options.parts, options.folder, browser, "dark" if options.dark else "light")
    return 0


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """The server of a URL, or one of the demo's, with a query of events and rows that are retained."""
    if url is not None:
        yield url
        return
    stopped = threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_demo.serving(Path(folder, "store"), 0, "inline") as process,
    ):
        found = serve_demo.url_of(process)
        assert found is not None, "the demo is not served"
        hr.Client(found, timeout=PATIENCE).execute(EVENTS)
        sender = threading.Thread(
            target=serve_demo.send_bids, args=(hr.Client(found, timeout=PATIENCE), 100, stopped)
        )
        sender.start()
        try:
            yield found
        finally:
            stopped.set()
            sender.join()


def take(url: str, parts: list[str], folder: Path, browser: str, scheme: Literal["light", "dark"]) -> None:
    """Write a picture of each part in each width."""
    with sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for width in WIDTHS:
            context = opened.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
            page = context.new_page()
            page.on("pageerror", lambda error: print(error, file=sys.stderr))
            for part in parts:
                page.goto(f"{url}/#/{part}")
                page.reload()
                page.wait_for_timeout(3_000)
                path = folder / f"{part.replace('/', '-')}-{width}.png"
                page.screenshot(path=path, full_page=True)
                wide = page.evaluate("document.documentElement.scrollWidth")
                print(f"{path}{f': {wide} px wide' if wide > width else ''}")
            context.close()
        opened.close()


if __name__ == "__main__":
    sys.exit(main())
