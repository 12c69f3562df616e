"""Test the settings of the browser-only site: its wheels, kernel and notebooks."""

from __future__ import annotations

import hashlib
import json
import zipfile
from importlib.util import find_spec

import pytest

import make_lite

needs_lite = pytest.mark.skipif(
    find_spec("jupyterlite_pyodide_kernel") is None, reason="materia-nb[lite] is not installed"
)
PLATFORM = {"abi_version": "2026_0", "arch": "wasm32", "platform": "emscripten", "python": "3.14.2"}


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "made_up-1.0-py3-none-any.whl"
    needs = [
        'there>=1; sys_platform == "emscripten"',
        'not_there; sys_platform == "linux"',
        'more; extra == "x"',
    ]
    metadata = "\n".join(["Name: made-up", "Version: 1.0", *(f"Requires-Dist: {need}" for need in needs)])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("made_up-1.0.dist-info/METADATA", metadata)
    return path


def test_environment_markers_select_requirements_in_a_browser(wheel):
    markers = {"sys_platform": "emscripten", "extra": ""}
    found = [need.name for need in make_lite.requirements(wheel) if make_lite.applies(need, markers)]
    assert found == ["there"]


def test_lock_file_lists_each_wheel_with_digest_and_requirements(wheel):
    wheels = {"made-up": make_lite.Wheel(wheel, "1.0", ["there"])}
    [(name, entry)] = make_lite.lock_file(wheels, PLATFORM)["packages"].items()
    assert (name, entry["file_name"], entry["depends"]) == ("made-up", wheel.name, ["there"])
    assert entry["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()


@needs_lite
def test_lite_page_loads_nothing_from_other_hosts():
    serialized = json.dumps(make_lite.settings({}))
    assert "http" not in serialized
    assert '"disablePyPIFallback": true' in serialized


def test_lite_notebooks_use_the_site_kernel_and_have_their_loadouts(tmp_path):
    make_lite.contents(tmp_path)
    books = sorted(tmp_path.glob("*.ipynb"))
    assert [book.name for book in books] == sorted(p.name for p in make_lite.ROOT.glob("notebooks/*.ipynb"))
    assert {json.loads(book.read_text())["metadata"]["kernelspec"]["name"] for book in books} == {"python"}
    assert (tmp_path / "loadouts" / "approval.json").is_file()
    first_cells = [json.loads(book.read_text())["cells"][0] for book in books]
    assert {cell["cell_type"] for cell in first_cells} == {"markdown"}
    assert all(cell["source"].endswith(make_lite.START_NOTE) for cell in first_cells)


@pytest.mark.parametrize(
    "name, files, copied",
    [
        ("jedi", ["jedi/__init__.py", "jedi-1.dist-info/METADATA"], ["jedi-1.dist-info/METADATA"]),
        (
            "ipycytoscape",
            [
                "ipycytoscape/cytoscape.py",
                "ipycytoscape/labextension/static/58.js",
                "ipycytoscape/nbextension/__init__.py",
                "ipycytoscape/nbextension/index.js",
                "ipycytoscape-1.data/data/share/jupyter/58.js",
            ],
            ["ipycytoscape/cytoscape.py", "ipycytoscape/nbextension/__init__.py"],
        ),
        ("other", ["jedi/__init__.py", "other/tests/a.py"], ["jedi/__init__.py", "other/tests/a.py"]),
    ],
)
def test_site_wheels_omit_files_that_kernels_do_not_need(tmp_path, name, files, copied):
    path = tmp_path / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, "")
    (tmp_path / "site").mkdir()
    copy = make_lite.copy_wheel(name, path, tmp_path / "site")
    assert copy == tmp_path / "site" / path.name
    assert zipfile.ZipFile(copy).namelist() == copied


@pytest.fixture
def kernel_wheel(tmp_path):
    """Return a function that writes a wheel of the kernel with the specified lines in the code of its completer."""

    def write(*completer_lines, module=make_lite.INTERPRETER):
        path = tmp_path / "pyodide_kernel-9-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("pyodide_kernel/__init__.py", "")
            archive.writestr(module, "\n".join(["import jedi", *completer_lines]))
        return path

    return write


def test_site_kernel_does_not_use_jedi(tmp_path, kernel_wheel):
    path = kernel_wheel("self.Completer.use_jedi = True", "self.Completer.use_jedi_names = True")
    (tmp_path / "site").mkdir()
    copy = zipfile.ZipFile(make_lite.copy_wheel("pyodide-kernel", path, tmp_path / "site"))
    assert sorted(copy.namelist()) == ["pyodide_kernel/__init__.py", "pyodide_kernel/interpreter.py"]
    lines = copy.read(make_lite.INTERPRETER).decode().splitlines()
    assert lines == ["import jedi", "self.Completer.use_jedi = False", "self.Completer.use_jedi_names = True"]


@pytest.mark.parametrize(
    "completer_line, module",
    [
        ("", make_lite.INTERPRETER),
        ("self.Completer.use_jedi=True", make_lite.INTERPRETER),
        ("self.Completer.use_jedi = True", "pyodide_kernel/completer.py"),
    ],
)
def test_build_fails_if_the_kernel_has_no_setting_for_jedi(tmp_path, kernel_wheel, completer_line, module):
    path = kernel_wheel(completer_line, module=module)
    (tmp_path / "site").mkdir()
    with pytest.raises(SystemExit) as error:
        make_lite.copy_wheel("pyodide-kernel", path, tmp_path / "site")
    assert error.value.code == (
        "make_lite: pyodide_kernel/interpreter.py of pyodide_kernel-9-py3-none-any.whl does not contain "
        "`self.Completer.use_jedi = True`, so the site cannot replace it. Find out how this version of the kernel uses "
        "jedi, and change COMPLETER."
    )


@needs_lite
def test_site_kernel_completes_names_without_jedi(tmp_path):
    [path] = (make_lite.KERNEL / "static" / "pypi").glob("pyodide_kernel-*.whl")
    copy = make_lite.copy_wheel("pyodide-kernel", path, tmp_path)
    code = zipfile.ZipFile(copy).read("pyodide_kernel/interpreter.py").decode()
    assert [line.strip() for line in code.splitlines() if "use_jedi" in line] == [f"{make_lite.COMPLETER}False"]
