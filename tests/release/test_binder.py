"""Test that the files in binder/ are valid for repo2docker; binder_checks.py builds an environment from them."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KNOWN_PYTHONS = [f"3.{minor}" for minor in range(5, 15)]  # the versions in repo2docker of April 2026
BINDER_PACKAGES = {"notebook"}
"""Pinned packages that the project does not require; Binder installs versions that must be compatible with the pinned JupyterLab."""


def pins() -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in (BINDER / "requirements.txt").read_text().splitlines())
    found = [Requirement(line) for line in lines if line]
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def python_of_binder() -> str:
    match = re.fullmatch(r"python-(3\.\d+)\n", (BINDER / "runtime.txt").read_text())
    assert match, "runtime.txt is one line: python-3.x"
    return match[1]


# -- the files ------------------------------------------------------------------------


def test_binder_folder_has_only_known_files():
    """An environment.yml, Pipfile or Dockerfile would override requirements.txt, and a .binder folder is an error."""
    assert {path.name for path in BINDER.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}
    assert not (ROOT / ".binder").exists()


def test_binder_python_is_supported():
    assert python_of_binder() in KNOWN_PYTHONS
    assert f"{python_of_binder()}.0" in SpecifierSet(PROJECT["requires-python"])


def test_post_build_stops_at_the_first_failure():
    path = BINDER / "postBuild"
    lines = path.read_text().splitlines()
    assert os.access(path, os.X_OK)
    assert lines[0] == "#!/usr/bin/env bash"
    commands = [line for line in lines if not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"


def test_every_dependency_is_pinned_within_its_range():
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
    wanted = {one.name: one.specifier for one in map(Requirement, asked)}
    assert set(pins()) - BINDER_PACKAGES == set(wanted)
    for name, pin in pins().items():
        [exactly] = pin.specifier
        assert exactly.operator == "==", name
        assert exactly.version in wanted.get(name, SpecifierSet()), name
