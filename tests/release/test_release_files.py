"""Test that the files for packaging, citation and publishing agree with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML

import materia_nb
import release_check

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WORKFLOWS = ROOT / ".github" / "workflows"
PYTHONS = [
    line.rpartition(" ")[2]
    for line in PROJECT["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
]


def read(path: str) -> Any:
    return YAML(typ="safe", pure=True).load((ROOT / path).read_text(encoding="utf-8"))


# -- the recipe for conda --------------------------------------------------------------


@pytest.fixture(scope="module")
def recipe() -> Any:
    """Return recipe.yaml with its context variables expanded."""

    def filled(value: Any, names: dict[str, str]) -> Any:
        if isinstance(value, dict):
            return {key: filled(one, names) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one, names) for one in value]
        if isinstance(value, str):
            return re.sub(r"\$\{\{ (\w+) \}\}", lambda match: names.get(match[1], match[0]), value)
        return value

    raw = read("recipe/recipe.yaml")
    return filled(raw, raw["context"])


def by_name(lines: list[str]) -> dict[str, SpecifierSet]:
    """Return requirements by name in the notation of the package index; conda writes "name >=1,<2"."""
    asked = [line.partition(" ") for line in lines]
    return {canonicalize_name(name): SpecifierSet(versions) for name, _, versions in asked}


def test_recipe_has_the_dependencies_of_the_package(recipe):
    run = by_name(recipe["requirements"]["run"])
    assert run.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert run == {canonicalize_name(one.name): one.specifier for one in map(Requirement, PROJECT["dependencies"])}


def test_recipe_uses_the_build_backend_of_the_package(recipe):
    host = recipe["requirements"]["host"]
    backend = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
    wanted = {
        f"python {recipe['context']['python_min']}.*",
        "pip",
        *(f"{b.name} {b.specifier}" for b in backend),
    }
    assert set(host) == wanted
    assert recipe["build"]["noarch"] == "python"


def test_recipe_has_the_metadata_of_the_package(recipe):
    assert recipe["package"] == {"name": PROJECT["name"], "version": materia_nb.__version__}
    about, urls = recipe["about"], PROJECT["urls"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert (about["homepage"], about["repository"], about["documentation"]) == (
        urls["Homepage"],
        urls["Source"],
        urls["Documentation"],
    )


# -- the citation ----------------------------------------------------------------------


def test_citation_names_the_current_version_and_the_authors():
    cited = read("CITATION.cff")
    assert Version(str(cited["version"])) == Version(materia_nb.__version__)
    assert " AND ".join(cited["license"]) == PROJECT["license"]
    assert cited["authors"] == PROJECT["authors"]
    assert (cited["url"], cited["repository-code"]) == (
        PROJECT["urls"]["Homepage"],
        PROJECT["urls"]["Source"],
    )


# -- the home ----------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the files that contain the project owner and addresses."""
    for path in {path for path, *_ in release_check.PLACES} | {path for path, *_ in release_check.OUTDATED_STATEMENTS}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    return tmp_path


def test_owner_and_addresses_in_all_files_match_one_table():
    found = [one for one in release_check.missing(ROOT) if "--write" in one]
    assert found == []


def test_every_address_in_a_file_comes_from_the_table(copy):
    before = list(release_check.missing(copy))
    assert len([one for one in before if "is a placeholder" in one]) == len(release_check.home(copy)) - 1
    project = copy / "pyproject.toml"
    head, _, rest = project.read_text().partition("[tool.home]")
    table, _, rest = rest.partition("[project.urls]")
    table = table.replace("materia-nb.invalid", "nb.example.org").replace("Materia NB contributors", "Ada & Co")
    project.write_text(f"{head}[tool.home]{table}[project.urls]{rest}")
    assert "CITATION.cff: https://materia-nb.invalid is not the homepage of [tool.home]" in "\n".join(
        release_check.missing(copy)
    )
    release_check.write(copy)
    assert [one for one in release_check.missing(copy) if "after the release" not in one] == []
    for path in {path for path, *_ in release_check.PLACES}:
        assert "materia-nb.invalid" not in (copy / path).read_text(), path
    assert tomllib.loads(project.read_text())["project"]["authors"] == [{"name": "Ada & Co"}]


def test_bundled_third_party_files_have_a_licence(tmp_path, monkeypatch):
    assert [licence for licence in release_check.licences(ROOT) if "MISSING" in licence] == []
    assert {one[2] for one in release_check.THIRD_PARTY_FILES.values()} <= set(PROJECT["license-files"])
    monkeypatch.setattr(release_check, "bundled", lambda _: ["node_modules/somebodys"])
    (tmp_path / "materia_nb").mkdir()
    (tmp_path / "materia_nb" / "letters.woff2").touch()
    (tmp_path / "package-lock.json").write_text('{"packages": {"node_modules/somebodys": {"license": "BSD-3-Clause"}}}')
    told = list(release_check.licences(tmp_path))
    assert ("materia_nb/letters.woff2", "MISSING", "add it to THIRD_PARTY_FILES") in told
    assert told[-1][1] == "BSD-3-Clause"


# -- the workflows ---------------------------------------------------------------------


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in read(f".github/workflows/{workflow}")["jobs"].values() for step in job.get("steps", [])]


def test_every_supported_python_is_tested():
    jobs = read(".github/workflows/ci.yml")["jobs"]
    assert PYTHONS == ["3.11", "3.12", "3.13", "3.14"]
    assert jobs["wheel"]["strategy"]["matrix"]["python"] == PYTHONS
    whole = jobs["test"]["steps"][1]["with"]["python-version"]
    assert sorted([whole, *jobs["unit"]["strategy"]["matrix"]["python"]]) == PYTHONS
    assert all(f"{python}.0" in SpecifierSet(PROJECT["requires-python"]) for python in PYTHONS)


def test_commands_used_by_the_workflows_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for name in ("ci.yml", "release.yml") for step in steps(name) if "run" in step]
    made = {match for command in commands for match in re.findall(r"make ([a-z-]+)", command)}
    assert made <= targets
    assert {"unit", "wheel-test", "dist"} <= made
    assert ".ci/run" in commands
    assert (ROOT / ".ci" / "run").exists()


def test_only_the_publishing_job_has_publishing_permission():
    release = read(".github/workflows/release.yml")
    assert release["on"] == {"push": {"tags": ["v*"]}}
    asking = {name for name, job in release["jobs"].items() if "write" in (job.get("permissions") or {}).values()}
    assert asking == {"publish"}
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert [job.get("needs") for job in release["jobs"].values()] == [None, "test", "build"]
    for name in ("ci.yml", "release.yml"):
        assert read(f".github/workflows/{name}")["permissions"] == {"contents": "read"}
        assert "secrets." not in (WORKFLOWS / name).read_text(), "no token is stored"
