"""Find a Chromium for the browser tests, and install one where that can be done without asking.

``python scripts/chromium.py`` is what ``make test`` runs before the tests. It ends with an error where
CI is set and no browser is to be had; elsewhere the browser tests are skipped, and it says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Playwright's driver needs libatomic1; without a font the pages, and so the screenshots, have no letters.
APT = ("chromium", "fonts-dejavu-core", "libatomic1")
MACOS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def find_chromium() -> str | None:
    """Path of a Chromium: $MATERIA_CHROMIUM, one of the system, or the one that Playwright keeps."""
    if chosen := os.environ.get("MATERIA_CHROMIUM"):
        return chosen
    for name in (*NAMES, *MACOS):
        if path := shutil.which(name):
            return path
    return playwrights_own()


def playwrights_own() -> str | None:
    """Path of the Chromium that ``playwright install`` fetched, if it did."""
    from playwright.sync_api import sync_playwright

    if not driver_starts():
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def driver_starts() -> bool:
    """Whether Playwright's driver, a program of its own, finds the system libraries that it needs."""
    version = [sys.executable, "-m", "playwright", "--version"]
    return subprocess.run(version, check=False, capture_output=True).returncode == 0


def install() -> None:
    """Try the system's package manager as root, else Playwright's download."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        apt = ["apt-get", "-qq", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300"]
        for command in ([*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *APT]):
            subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    else:
        subprocess.run(
            [sys.executable, "-m", "playwright", "install", "chromium"], check=False, stdin=subprocess.DEVNULL
        )


def main() -> int:
    """Find or install; 1 where CI needs a browser and there is none."""
    if driver_starts() and find_chromium():
        return 0
    say("no Chromium that Playwright can drive, trying to install one")
    install()
    if driver_starts() and (path := find_chromium()):
        say(path)
        return 0
    say(
        "=" * 60,
        "NO BROWSER: the browser tests are SKIPPED. Install Chromium or Chrome",
        "(Debian, Ubuntu: apt-get install " + " ".join(APT) + "), or set",
        "MATERIA_CHROMIUM to the path of one, and run this again.",
        "=" * 60,
    )
    return 1 if os.environ.get("CI") else 0


def say(*lines: str) -> None:
    """Tell it at once, apart from what the commands print."""
    for line in lines:
        print(f"chromium: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
