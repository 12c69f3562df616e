"""Build the site that runs the notebooks without a server in build/lite: ``python scripts/make_lite.py``.

JupyterLite is JupyterLab as a static page, with Python (Pyodide) in the browser. The site contains every file that the
page loads at run time: Pyodide from npm, and wheels from PyPI for Pyodide's Python.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from email.parser import HeaderParser
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = ROOT / "build" / "lite"
PARTS: Final = ROOT / "build" / "lite-parts"
EXTENSIONS_FOLDER: Final = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
KERNEL: Final = EXTENSIONS_FOLDER / "@jupyterlite" / "pyodide-kernel-extension"

EXTENSIONS: Final = {
    "jupyterlab-widgets": "@jupyter-widgets/jupyterlab-manager",
    "ipycytoscape": "jupyter-cytoscape",
    "anywidget": "anywidget",
}
"""Packages with front-end extensions of the page, in the versions that this environment has."""

KERNEL_NEEDS: Final = ("comm", "ipykernel", "ipython", "jedi", "micropip", "piplite", "pyodide-kernel")
"""Packages that the kernel imports at its start, in addition to the requirements of materia-nb."""

OMITTED_FILES: Final = {
    "ipycytoscape": re.compile(r"ipycytoscape/(labextension|nbextension|tests)/.*(?<!\.py)$|[^/]+\.data/"),
    "jedi": re.compile(r"jedi/|[^/]+/RECORD$"),  # its RECORD lists 5,600 files
}
"""Files that are removed from a wheel. The page has the front end of ipycytoscape as an extension, and IPython completes
names without jedi. The kernel installs a package named jedi at its start, so its empty wheel remains."""

INTERPRETER: Final = "pyodide_kernel/interpreter.py"
COMPLETER: Final = "self.Completer.use_jedi = "
"""Text in ``INTERPRETER`` before the value of the setting with which the kernel requires jedi."""

START_NOTE: Final = (
    "\n\n*This page first loads Python (about 30 MB), which takes half a minute to two minutes. Until the kernel has started, "
    "the cells that you run wait with `[*]`.*"
)
"""Text at the end of the first cell of each notebook of the site."""

RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
CONTENTS: Final = ("*.ipynb", "*.py", "loadouts/*.json", "recordings/*.json")


class Wheel(NamedTuple):
    """A wheel in the site: its file, its version, and the names of its requirements."""

    path: Path
    version: str
    needs: Sequence[str]


def main() -> int:
    """Build the site from scratch; return the exit code."""
    if shutil.which("npm") is None or not KERNEL.is_dir():
        print(
            "make_lite: this script needs npm (it comes with Node.js) and the packages of materia-nb[lite].",
            file=sys.stderr,
        )
        return 1
    shutil.rmtree(PARTS, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    runtime = PARTS / "pyodide-npm"
    pyodide_folder = PARTS / "site" / "static" / "pyodide"
    pyodide_folder.mkdir(parents=True)
    unpack_pyodide(runtime)
    for name in RUNTIME:
        shutil.copy(runtime / name, pyodide_folder)
    platform = json.loads((runtime / "pyodide-lock.json").read_text())["info"]
    wheels = gather(PARTS / "wheels", platform)
    wheels = {name: wheel._replace(path=copy_wheel(name, wheel.path, pyodide_folder)) for name, wheel in wheels.items()}
    (pyodide_folder / "pyodide-lock.json").write_text(json.dumps(lock_file(wheels, platform)))
    (PARTS / "site" / "jupyter-lite.json").write_text(json.dumps(settings(wheels), indent=1))
    contents(PARTS / "files")
    extensions = [
        KERNEL,
        *(EXTENSIONS_FOLDER / extension_path for name, extension_path in EXTENSIONS.items() if name in wheels),
    ]
    build(extensions)
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) / 1e6
    print(f"The site: {SITE} ({size:.0f} MB). Serve it: {sys.executable} -m http.server -d {SITE}")
    return 0


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; if it fails, print its output and exit."""
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"make_lite: {Path(str(command[0])).name} failed:\n{done.stdout}")


# -- what goes in -----------------------------------------------------------------------------


def unpack_pyodide(target: Path) -> None:
    """Download the version of Pyodide that the kernel was built for."""
    from jupyterlite_pyodide_kernel.constants import PYODIDE_VERSION

    target.mkdir(parents=True)
    run("npm", "pack", "--silent", f"pyodide@{PYODIDE_VERSION}", "--pack-destination", target)
    (archive,) = target.glob("pyodide-*.tgz")
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            member.name = member.name.removeprefix("package/")
            if "/" not in member.name:
                tar.extract(member, target, filter="data")


def gather(folder: Path, platform: dict[str, str]) -> dict[str, Wheel]:
    """Collect the wheels of this package and of all its requirements, for Pyodide's Python."""
    own, kernel = folder / "own", KERNEL / "static" / "pypi"
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", own, ROOT)
    markers = {
        "sys_platform": "emscripten",
        "platform_system": "Emscripten",
        "platform_machine": platform["arch"],
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": platform["python"].rpartition(".")[0],
        "python_full_version": platform["python"],
        "extra": "",
    }
    wheels: dict[str, Wheel] = {}
    unresolved = [Requirement("materia-nb"), *map(Requirement, KERNEL_NEEDS)]
    # There is also a wheel of widgetsnbextension for ipywidgets 7; its name is sorted before the newer wheel.
    at_hand = {name_of(path): path for path in sorted([*own.glob("*.whl"), *kernel.glob("*.whl")])}
    level = 0
    while unresolved:
        ask: dict[str, list[str]] = {}
        for need in unresolved:
            name: str = canonicalize_name(need.name)
            if name in wheels:
                if not need.specifier.contains(wheels[name].version, prereleases=True):
                    sys.exit(f"make_lite: {need} is required, but {wheels[name].path.name} was selected")
            elif name not in at_hand:
                ask.setdefault(name, []).append(str(need.specifier))
        paths = [at_hand[name] for name in {canonicalize_name(need.name) for need in unresolved} & set(at_hand)]
        if ask:
            level += 1
            paths += download(ask, folder / str(level), platform)
        unresolved = []
        for path in paths:
            if (name := name_of(path)) not in wheels:
                needs = [need for need in requirements(path) if applies(need, markers)]
                names = sorted({canonicalize_name(need.name) for need in needs})
                wheels[name] = Wheel(path, str(parse_wheel_filename(path.name)[1]), names)
                unresolved += needs
    return dict(sorted(wheels.items()))


def download(ask: dict[str, list[str]], folder: Path, platform: dict[str, str]) -> list[Path]:
    """Download packages with pip but without their requirements, which pip would resolve for this system."""
    pins = {name: f"=={version(name)}" for name in ("ipywidgets", *EXTENSIONS) if name in ask}
    specs = [f"{name}{pins.get(name) or ','.join(filter(None, how))}" for name, how in ask.items()]
    python = platform["python"].rpartition(".")[0]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    pip += ["--platform", f"pyemscripten_{platform['abi_version']}_{platform['arch']}"]
    pip += ["--python-version", python, "--implementation", "cp", "--abi", "cp" + python.replace(".", "")]
    run(*pip, "--dest", folder, *specs)
    return sorted(folder.glob("*.whl"))


def copy_wheel(name: str, path: Path, folder: Path) -> Path:
    """Copy a wheel to a folder without the files that the kernel does not need; return the path of the copy."""
    target, omitted = folder / path.name, OMITTED_FILES.get(name)
    if omitted is None and name != "pyodide-kernel":
        return Path(shutil.copy(path, target))
    with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in wheel.infolist():
            if entry.filename != INTERPRETER and (omitted is None or not omitted.match(entry.filename)):
                copy.writestr(entry, wheel.read(entry))
        if omitted is None:
            copy.writestr(INTERPRETER, interpreter_without_jedi(wheel))
    return target


def interpreter_without_jedi(kernel: zipfile.ZipFile) -> str:
    """Return the module ``INTERPRETER`` of the kernel with a completer that does not use jedi.

    Exits if the module does not contain the setting, because the completion of names would then fail in the site.
    """
    code = kernel.read(INTERPRETER).decode() if INTERPRETER in kernel.namelist() else ""
    if f"{COMPLETER}True" not in code:
        sys.exit(
            f"make_lite: {INTERPRETER} of {Path(str(kernel.filename)).name} does not contain `{COMPLETER}True`, so the "
            "site cannot replace it. Find out how this version of the kernel uses jedi, and change COMPLETER."
        )
    return code.replace(f"{COMPLETER}True", f"{COMPLETER}False")


def name_of(path: Path) -> str:
    """Return the normalized project name of a wheel."""
    return parse_wheel_filename(path.name)[0]


def requirements(path: Path) -> Iterator[Requirement]:
    """Return the requirements that a wheel declares."""
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        head = HeaderParser().parsestr(wheel.read(name).decode())
    for line in head.get_all("Requires-Dist") or []:
        yield Requirement(line)


def applies(need: Requirement, markers: dict[str, str]) -> bool:
    """Return True if a requirement applies in Pyodide without extras."""
    return need.marker is None or need.marker.evaluate(markers)


# -- what the site says of itself ---------------------------------------------------------------


def lock_file(wheels: dict[str, Wheel], platform: dict[str, str]) -> dict[str, Any]:
    """Return Pyodide's lock file with exactly these packages."""
    packages = {
        name: {
            "name": name,
            "version": wheel.version,
            "file_name": wheel.path.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.path.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": [],
            "depends": list(wheel.needs),
            "unvendored_tests": False,
        }
        for name, wheel in wheels.items()
    }
    return {"info": platform, "packages": packages}


def settings(wheels: dict[str, Wheel]) -> dict[str, Any]:
    """Return the settings with which the kernel uses only files of the site."""
    from jupyterlite_pyodide_kernel.constants import PYODIDE_KERNEL_PLUGIN_ID

    kernel = {
        "pyodideUrl": "./static/pyodide/pyodide.mjs",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {
            "lockFileURL": "./static/pyodide/pyodide-lock.json",
            "packages": list(wheels),
        },
    }
    page = {
        "appName": "Materia NB",
        "exposeAppInBrowser": True,  # the browser tests read the state of the page
        "litePluginSettings": {PYODIDE_KERNEL_PLUGIN_ID: kernel},
    }
    return {"jupyter-lite-schema-version": 0, "jupyter-config-data": page}


def contents(site_folder: Path) -> None:
    """Copy the notebooks and the files that they load.

    Each notebook gets the kernel of the site, and a note that the kernel takes time to start.
    """
    for pattern in CONTENTS:
        for path in sorted((ROOT / "notebooks").glob(pattern)):
            target = site_folder / path.relative_to(ROOT / "notebooks")
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix != ".ipynb":
                shutil.copy(path, target)
                continue
            notebook = json.loads(path.read_text())
            notebook["metadata"]["kernelspec"] = {
                "name": "python",
                "display_name": "Python (Pyodide)",
                "language": "python",
            }
            first = notebook["cells"][0]
            first["source"] = "".join(first["source"]) + START_NOTE
            target.write_text(json.dumps(notebook, ensure_ascii=False, indent=1))


def build(extensions: list[Path]) -> None:
    """Build the site with JupyterLite."""
    config = {
        "LiteBuildConfig": {
            "federated_extensions": [str(path) for path in extensions],
            "ignore_sys_prefix": True,
            "apps": ["lab", "notebooks", "tree"],
            "contents": [str(PARTS / "files")],
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
            "output_dir": str(SITE),
            "cache_dir": str(PARTS / "cache"),
        }
    }
    (PARTS / "site" / "jupyter_lite_config.json").write_text(json.dumps(config, indent=1))
    lite = Path(sys.executable).with_name("jupyter-lite")
    run(lite, "build", "--lite-dir", ".", cwd=PARTS / "site")


if __name__ == "__main__":
    sys.exit(main())
