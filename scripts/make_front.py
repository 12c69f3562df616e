"""Bundle the front end: ``python scripts/make_front.py``, which ``make front`` calls. Needs npm.

``--check`` bundles nothing. It checks types and style, runs the tests of the front end, and reports whether the bundle
is current. If npm is missing or cannot download its tools, the check says so and passes, because Python developers need
neither.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "materia_nb" / "widgets" / "front"
ICONS: Final = ROOT / "materia_nb" / "display" / "icons.json"
BUNDLE: Final = ROOT / "materia_nb" / "widgets" / "bundle"
TOOLS: Final = ROOT / "node_modules"
LOCK: Final = ROOT / "package-lock.json"
ESBUILD: Final = (
    "--bundle",
    "--minify",
    "--target=es2022,chrome111,firefox115,safari16.4",
    "--log-level=error",
)


def digest(sources: Path = SOURCES) -> str:
    """Return a digest of the sources. The first line of the bundle contains it."""
    digest = hashlib.sha256()
    for path in sorted([*sources.glob("*.js"), *sources.glob("*.css"), ICONS]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def is_stale(bundle: Path = BUNDLE) -> bool:
    """Return True if the sources have changed since the bundle was built."""
    return not (bundle / "front.js").read_text("utf-8").startswith(f"/* {digest()} */")


def build(into: Path) -> None:
    """Write ``front.js`` with all views, ``loader.js`` with the code that each widget contains, and the player ``play.js``.

    The views and ``play.js`` contain their style sheets.
    """
    into.mkdir(parents=True, exist_ok=True)
    front = _esbuild("index.js", "--format=esm", _styles("index.css"))
    (into / "play.js").write_text(_esbuild("play.js", "--format=iife", _styles("play.css")), "utf-8")
    (into / "front.js").write_text(f"/* {digest()} */\n{front}", "utf-8")
    (into / "loader.js").write_text(_esbuild("loader.js", "--format=esm"), "utf-8")


def _styles(sheet: str) -> str:
    return f"--define:STYLES={json.dumps(_esbuild(sheet).strip())}"


def _esbuild(entry: str, *options: str) -> str:
    command: list[str | Path] = [TOOLS / ".bin" / "esbuild", SOURCES / entry, *ESBUILD, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT)
    return str(done.stdout)


def get_tools() -> str:
    """Install the packages of package-lock.json if they are missing. Return the reason if this fails, otherwise ""."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "npm is not installed (it comes with Node.js)"
    stamp = TOOLS / ".package-lock.json"
    if stamp.exists() and stamp.stat().st_mtime >= LOCK.stat().st_mtime:
        return ""
    done = subprocess.run([npm, "ci", "--no-fund", "--no-audit"], check=False, capture_output=True, text=True, cwd=ROOT)
    return f"npm cannot install its tools: {done.stderr.strip()[-300:]}" if done.returncode else ""


def check() -> int:
    """Check types and style, run the tests, and compare the bundle; return the number of failed checks."""
    tests = sorted(str(path) for path in (ROOT / "tests" / "front").glob("*.test.js"))
    bin_ = TOOLS / ".bin"
    commands: list[list[str | Path]] = [[bin_ / "tsc"], [bin_ / "eslint"], ["node", "--test", *tests]]
    failed = 0
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", cwd=ROOT)
        if done.returncode:
            sys.stdout.write(done.stdout + done.stderr)
            failed += 1
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        bundles = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    if bundles != {path.name: path.read_bytes() for path in BUNDLE.iterdir()}:
        sys.stdout.write("The front-end bundle is out of date. Run `make front` to rebuild it.\n")
        failed += 1
    return failed


def main() -> int:
    """Build the bundle, or check it with ``--check``."""
    parser = argparse.ArgumentParser(description="Bundle the front end.")
    parser.add_argument("--check", action="store_true", help="check the sources and the bundle without building")
    only_check = parser.parse_args().check
    if lacking := get_tools():
        sys.stdout.write(f"The front end was not {'checked' if only_check else 'bundled'}: {lacking}.\n")
        return 0 if only_check else 1
    if only_check:
        return check()
    build(BUNDLE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
