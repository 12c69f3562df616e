"""Launch a headless Chromium for the browser tests and the benchmark."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

FLAGS: Final = [
    # Chromium's own sandbox does not start as root, which CI machines often are.
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextlib.contextmanager
def launched(path: str) -> Iterator[Browser]:
    """Launch the Chromium at ``path`` and close it at the end of the context."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
