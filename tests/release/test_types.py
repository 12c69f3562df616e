"""Test that pyright, like mypy in ``make lint``, accepts correct user code and finds every mistake."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from wheel_helpers import ROOT

PYRIGHT = ROOT / "node_modules" / "pyright" / "index.js"
USER_CODE = ROOT / "tests" / "helpers" / "user_code.py"


@pytest.mark.skipif(not PYRIGHT.exists() or shutil.which("node") is None, reason="npm ci installs pyright")
def test_pyright_accepts_correct_code_and_finds_every_error(tmp_path):
    lines = USER_CODE.read_text("utf-8").splitlines()
    bare = tmp_path / "bare.py"
    bare.write_text("\n".join(re.sub(r"\s*# type: ignore.*", "", line) for line in lines), "utf-8")
    shutil.copy(USER_CODE, tmp_path / "user_code.py")
    settings = {
        "include": ["bare.py", "user_code.py"],
        "extraPaths": [str(ROOT)],
        "pythonVersion": "3.11",
        "reportUnnecessaryComparison": True,
        "reportUnnecessaryTypeIgnoreComment": True,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = ["node", PYRIGHT, "-p", tmp_path, "--pythonpath", sys.executable, "--outputjson"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == 2
    found = {
        (diagnostic["file"].endswith("bare.py"), diagnostic["range"]["start"]["line"])
        for diagnostic in report["generalDiagnostics"]
    }
    assert found == {(True, number) for number, line in enumerate(lines) if "# type: ignore" in line}
