"""Test that importing the package is cheap, because slow libraries are loaded on first use."""

import subprocess
import sys

import pytest

SLOW = (
    "ipycytoscape",
    "ipywidgets",
    "IPython",
    "jupyterlab",
    "pandas",
    "nbformat",
    "playwright",
    "pydantic",
    "pydantic_ai",
    "openai",
)


@pytest.mark.parametrize(
    "statement",
    [
        "import materia_nb",
        "import materia_nb.cast.workbench",
        "import materia_nb.agents.model_agent",
        "import materia_nb.widgets.cast_parts",  # the help of the verbs reads it
    ],
)
def test_importing_the_package_loads_no_slow_library(statement: str):
    code = f"{statement}\nimport sys\nprint([name for name in {SLOW!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
