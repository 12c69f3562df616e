"""Find a Chromium for the browser tests, or install one if no confirmation is needed.

``make test`` runs ``python scripts/chromium.py`` before the tests. Without a browser, the script fails in CI; elsewhere
it reports that the browser tests will be skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

# The headless shell, which Debian packages, needs a fifth less time for the same tests.
APT_BROWSERS = ("chromium-headless-shell", "chromium")
NAMES = (*APT_BROWSERS, "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Playwright's driver needs libatomic1; without a font the pages, and so the screenshots, have no letters.
APT_NEEDS = ("fonts-dejavu-core", "libatomic1")
MACOS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def find_chromium() -> str | None:
    """Return the value of $MATERIA_CHROMIUM, or else the path of an installed Chromium or of Playwright's Chromium."""
    if chosen := os.environ.get("MATERIA_CHROMIUM"):
        return chosen
    for name in (*NAMES, *MACOS):
        if path := shutil.which(name):
            return path
    return playwright_chromium()


def playwright_chromium() -> str | None:
    """Return the path of the Chromium that ``playwright install`` downloaded, or None."""
    from playwright.sync_api import sync_playwright

    if not driver_starts():
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def driver_starts() -> bool:
    """Return True if the driver program of Playwright starts, which requires its system libraries."""
    version = [sys.executable, "-m", "playwright", "--version"]
    return subprocess.run(version, check=False, capture_output=True).returncode == 0


def install() -> None:
    """Install Chromium with the system's package manager if the user is root, otherwise through Playwright."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        apt = ["apt-get", "-qq", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300"]
        run = partial(subprocess.run, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        run([*apt, "update"])
        for browser in APT_BROWSERS:
            if not run([*apt, "install", "-y", "--no-install-recommends", browser, *APT_NEEDS]).returncode:
                return
    else:
        subprocess.run(
            [sys.executable, "-m", "playwright", "install", "chromium"], check=False, stdin=subprocess.DEVNULL
        )


def main() -> int:
    """Find or install a browser. Return 1 if there is none in CI."""
    if driver_starts() and find_chromium():
        return 0
    log("Found no Chromium that Playwright can drive; trying to install one.")
    install()
    if driver_starts() and (path := find_chromium()):
        log(path)
        return 0
    log(
        "=" * 60,
        "NO BROWSER: the browser tests are SKIPPED. Install Chromium or Chrome",
        "(Debian, Ubuntu: apt-get install chromium " + " ".join(APT_NEEDS) + "), or set",
        "MATERIA_CHROMIUM to the path of a browser, and run this command again.",
        "=" * 60,
    )
    return 1 if os.environ.get("CI") else 0


def log(*lines: str) -> None:
    """Print lines to stderr."""
    for line in lines:
        print(f"chromium: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
