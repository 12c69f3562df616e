"""Test config layers: their precedence, the origin of each value, and the effect of an error in one layer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.loadout import LoadoutError, check_config, load_layers, read_config
from materia_nb.loadout.layers import (
    BUNDLED,
    pi_profile_directory,
    placed_definitions,
    profile_directory,
)

AGENT = {"prompt": "p", "tools": "none"}


def loadout(materia="P", **fields):
    return {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": materia}}, **fields}


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def profile(tmp_path):
    return tmp_path / "profile"


@pytest.fixture
def env(profile):
    return {"MATERIA_PROFILE_DIR": str(profile)}


def test_bundled_config_has_no_problems_and_no_hints():
    report = check_config(read_config(BUNDLED))
    assert str(report) == "no problems, no hints"


def test_every_bundled_loadout_can_be_built(project, env):
    config = load_layers(project=project, env=env)
    assert {config.graph(name).name for name in config.loadout_names} == set(config.loadout_names)
    assert config.active in config.loadout_names
    graph = config.graph("Plan-Build-Eval")
    assert graph.sockets["Socket-4"].advance.when == "satisfied"
    assert graph.sockets["Socket-3"].edges[1].max_traversals == 3


def test_higher_layers_override_lower_definitions_of_the_same_name(tmp_path, project, profile, env):
    write(profile / "config.json", {"loadouts": {"A": loadout("p1"), "B": loadout()}, "materia": {"P": AGENT}})
    write(project / ".pi/pi-materia.json", {"loadouts": {"B": loadout("p2", x=1), "C": loadout()}})
    write(tmp_path / "env.json", {"loadouts": {"C": loadout("p3"), "D": loadout()}})
    write(tmp_path / "mine.json", {"loadouts": {"D": loadout("p4")}})
    env["MATERIA_CONFIG"] = str(tmp_path / "env.json")
    config = load_layers(tmp_path / "mine.json", project=project, env=env, bundled=False)
    assert config.loadout_names == ("A", "B", "C", "D")
    placed = [raw["sockets"]["Socket-1"]["materia"] for raw in config.document["loadouts"].values()]
    assert placed == ["p1", "p2", "p3", "p4"]
    assert [layer.name for layer in config.layers] == ["profile", "project", "environment", "given"]
    assert [config.origin("loadout", name).name for name in "ABCD"] == [
        "profile",
        "project",
        "environment",
        "given",
    ]


def test_null_in_a_higher_layer_removes_a_materia_or_a_loadout(project, profile, env):
    write(profile / "config.json", {"materia": {"P": AGENT, "Q": AGENT}, "loadouts": {"A": {}}})
    given = {"materia": {"Q": None}, "loadouts": {"A": None}}
    config = load_layers(given, project=project, env=env, bundled=False)
    assert config.document["materia"] == {"P": AGENT}
    assert config.loadout_names == ()
    assert "Q" not in config.folders


def test_materia_is_merged_by_field_and_null_removes_a_field_r33(project, profile, env):
    write(profile / "config.json", {"materia": {"P": {**AGENT, "label": "old", "thinking": "high"}}})
    write(project / ".pi/pi-materia.json", {"materia": {"P": {"model": "x", "label": None}}})
    config = load_layers(project=project, env=env, bundled=False)
    assert config.document["materia"] == {"P": {**AGENT, "thinking": "high", "model": "x"}}
    origins = {name: layer.name for name, layer in config.origins("materia", "P").items()}
    assert origins == {"prompt": "profile", "tools": "profile", "thinking": "profile", "model": "project"}
    assert config.origin("materia", "P").name == "project"


def test_model_of_a_bundled_materia_can_be_set_alone_r33(project, env):
    write(project / ".pi/pi-materia.json", {"materia": {"Build": {"model": "x"}}})
    config = load_layers(project=project, env=env)
    assert config.check("Full-Auto").ok
    assert config.graph("Full-Auto").sockets["Socket-4"].materia.model == "x"


def test_loadout_without_sockets_keeps_sockets_of_lower_layers_r33(project, profile, env):
    write(profile / "config.json", {"loadouts": {"A": loadout("p1", description="d", handoff="envelope")}})
    over = {"loadouts": {"A": {"description": "mine", "handoff": None}}}
    config = load_layers(over, project=project, env=env, bundled=False)
    assert config.document["loadouts"]["A"] == loadout("p1", description="mine")
    config = load_layers({"loadouts": {"A": {"sockets": {"Socket-9": {}}}}}, project=project, env=env, bundled=False)
    assert config.document["loadouts"]["A"]["sockets"] == {"Socket-9": {}}


def test_script_path_is_relative_to_the_config_that_defines_the_command_r24(tmp_path, project, profile, env):
    write(profile / "config.json", {"materia": {"A": {"command": ["./a.sh"]}, "B": {"command": ["./b.sh"]}}})
    write(tmp_path / "mine.json", {"materia": {"A": {"timeoutMs": 5}, "B": {"command": ["./c.sh"]}}})
    config = load_layers(tmp_path / "mine.json", project=project, env=env, bundled=False)
    assert config.folders == {"A": profile, "B": tmp_path}


def test_budget_and_limits_are_merged_by_key_and_settings_are_replaced(project, profile, env):
    write(
        profile / "config.json",
        {"artifactDir": "a", "limits": {"repairAttempts": 5}, "budget": {"maxTokens": 1}, "extra": {"x": 1}},
    )
    given = {"limits": {"maxEdgeTraversals": 9}, "artifactDir": "b", "extra": {"y": 1}}
    config = load_layers(given, project=project, env=env)
    assert config.document["limits"] == {"repairAttempts": 5, "maxNoAdvanceCycles": 3, "maxEdgeTraversals": 9}
    assert config.document["budget"] == {"warnAtPercent": 75, "maxTokens": 1}
    assert (config.document["artifactDir"], config.document["extra"]) == ("b", {"y": 1})


def test_loaded_config_sets_the_active_loadout(project, env):
    given = {"loadouts": {"Mine": loadout(), "Other": loadout()}, "materia": {"P": AGENT}}
    assert load_layers(given, project=project, env=env).active == "Mine"
    assert load_layers({**given, "activeLoadout": "Other"}, project=project, env=env).active == "Other"
    assert load_layers({"materia": {"P": AGENT}}, project=project, env=env).active == "Hello-Utility"


def test_folder_of_a_materia_is_the_directory_of_its_config_file_r24(tmp_path, project, profile, env):
    write(profile / "config.yaml", "materia: {A: {command: [./a.sh]}, B: {command: [./b.sh]}}")
    write(tmp_path / "sub" / "mine.json", {"materia": {"B": {"command": ["./b.sh"]}}})
    config = load_layers(tmp_path / "sub" / "mine.json", project=project, env=env, bundled=False)
    assert config.folders == {"A": profile, "B": tmp_path / "sub"}
    config.document["loadouts"] = {"T": loadout("B")}
    assert config.graph("T").sockets["Socket-1"].materia.folder == tmp_path / "sub"


@pytest.mark.parametrize("text", ["{", '{"loadouts": []}', "[]", '{"budget": 5}', '{"a": 1, "a": 2}'])
@pytest.mark.parametrize("where", ["profile", "project"])
def test_broken_layer_is_reported_and_the_other_layers_are_still_loaded(project, profile, env, text, where):
    path = profile / "config.json" if where == "profile" else project / ".pi/pi-materia.json"
    write(path, text)
    config = load_layers({"loadouts": {"Mine": loadout("Hello")}}, project=project, env=env)
    (error,) = config.faults
    assert str(path) in error.where
    assert error.hint
    assert [layer.name for layer in config.layers if layer.fault] == [where]
    assert config.active == "Mine"
    assert config.graph().name == "Mine"


def test_missing_config_given_by_path_raises_an_error(tmp_path, project, env):
    write(tmp_path / "mine.json", "{}")
    with pytest.raises(MateriaError, match="does not exist") as caught:
        load_layers(tmp_path / "mien.json", project=project, env=env)
    assert "'mine.json'" in caught.value.hint
    env["MATERIA_CONFIG"] = str(tmp_path / "gone.json")
    with pytest.raises(MateriaError) as caught:
        load_layers(project=project, env=env)
    assert "MATERIA_CONFIG" in caught.value.hint


@pytest.mark.parametrize("name", ["mine.json", "{mine}.json"])
def test_paths_are_relative_to_the_project(project, env, name):
    write(project / "configs" / name, {"loadouts": {"Mine": loadout()}})
    assert load_layers(f"configs/{name}", project=project, env=env).active == "Mine"


def test_invalid_document_is_not_merged(project, env):
    config = load_layers({"loadouts": []}, project=project, env=env)
    assert [problem.source for problem in config.check().problems] == ["loadouts"]
    with pytest.raises(LoadoutError):
        config.graph()


def test_loading_does_not_change_a_document(project, env):
    given = {"limits": {"repairAttempts": 2}, "materia": {"Hello": None}, "loadouts": {"Mine": loadout()}}
    before = json.dumps(given)
    load_layers(given, project=project, env=env)
    assert json.dumps(given) == before


def test_document_without_lower_layers_is_not_changed(project, env):
    given = {"activeLoadout": "A", "loadouts": {"A": loadout()}, "materia": {"P": AGENT}, "x": None}
    assert load_layers(given, project=project, env=env, bundled=False).document == given


def test_environment_variables_are_read_at_each_load(project, profile, monkeypatch):
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(profile))
    assert "Mine" not in load_layers(project=project).loadout_names
    write(profile / "config.jsonc", '{"loadouts": {"Mine": {}}} // mine')
    assert "Mine" in load_layers(project=project).loadout_names


def test_pi_profile_is_read_if_this_package_has_no_profile(tmp_path, project, profile, env):
    write(tmp_path / "pi/config.json", {"loadouts": {"FromPi": loadout()}})
    env["PI_MATERIA_PROFILE_DIR"] = str(tmp_path / "pi")
    assert load_layers(project=project, env=env).origin("loadout", "FromPi").name == "profile"
    write(profile / "config.json", {"loadouts": {"Mine": loadout()}})
    assert "FromPi" not in load_layers(project=project, env=env).loadout_names


def test_default_pi_profile_is_in_the_home_directory(tmp_path, project, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(tmp_path / "xdg/pi/pi-materia/config.json", {"loadouts": {"FromPi": loadout()}})
    config = load_layers(project=project, env={"XDG_CONFIG_HOME": str(tmp_path / "xdg")})
    assert config.origin("loadout", "FromPi").path == path


def test_default_profile_directory_depends_on_the_platform(project, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    home = Path("Library/Application Support") if sys.platform == "darwin" else Path("xdg")
    path = write(tmp_path / home / "materia-nb" / "config.json", {"loadouts": {"Mine": {}}})
    config = load_layers(project=project, env={})
    assert config.origin("loadout", "Mine").path == path


def test_settings_show_their_layer_and_overridden_values(project, profile, env):
    low = {
        "limits": {"repairAttempts": 2},
        "artifacts": "all",
        "materia": {"P": {**AGENT, "model": "a"}, "N": None},
    }
    write(profile / "config.json", low)
    high = {
        "limits": {"maxEdgeTraversals": 3},
        "loadouts": {"T": loadout()},
        "materia": {"P": {"model": "b", "label": "L"}},
    }
    write(project / ".pi/pi-materia.json", high)
    config = load_layers(project=project, env=env, bundled=False)
    assert [layer.materia for layer in config.layers] == [("P",), ("P",)]
    assert [config.origin("setting", name).name for name in ("artifacts", "limits")] == ["profile", "project"]
    assert config.definition_below("materia", "P", "project") == low["materia"]["P"]
    assert {key: layer.name for key, layer in config.origins("materia", "P").items()} == {
        "prompt": "profile",
        "tools": "profile",
        "model": "project",
        "label": "project",
    }
    assert placed_definitions(config.document, "T") == {"P": {**AGENT, "model": "b", "label": "L"}}
    assert placed_definitions(config.document, "Nowhere") == {}


def test_origin_of_an_unknown_name_raises_an_error_with_a_suggestion(project, env):
    with pytest.raises(MateriaError) as caught:
        load_layers(project=project, env=env).origin("loadout", "Hello-Utilty")
    assert "'Hello-Utility'" in caught.value.hint


def test_building_a_loadout_imports_no_slow_library():
    """The validation library is imported only when the first config is checked."""
    program = (
        "import sys, materia_nb.loadout as loadout;"
        "document = loadout.read_config(sys.argv[1]);"
        "assert 'pydantic' not in sys.modules;"
        "loadout.build_graph(document, 'Plan-Build-Eval');"
        "slow = {'ruamel', 'jsonpath_ng', 'platformdirs'} & sys.modules.keys();"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program, str(BUNDLED)], check=True)


def test_profile_is_omitted_if_there_is_no_home_directory(project, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "MATERIA_PROFILE_DIR", "PI_MATERIA_PROFILE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert load_layers(project=project, env={}).layers[0].name == "bundled"
    assert profile_directory({}) is None
    assert pi_profile_directory({}) is None


@pytest.mark.parametrize("named", ["..", "a/../..", "/elsewhere", "link/casts"])
def test_run_directories_are_never_outside_the_project_directory(tmp_path, project, named):
    (tmp_path / "elsewhere").mkdir()
    (project / "link").symlink_to(tmp_path / "elsewhere")
    config = {"loadouts": {"L": loadout()}, "materia": {"P": AGENT}}
    loadouts = Workbench(project).loadouts
    loadouts.load({**config, "artifactDir": named})
    with pytest.raises(MateriaError) as caught:
        loadouts.casts_root  # noqa: B018 - it is computed
    assert caught.value.kind == "artifact_dir"
    assert named in caught.value.where
    loadouts.load({**config, "artifactDir": "in/the project"})
    assert loadouts.casts_root == project / "in/the project"
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_unknown_active_loadout_error_names_its_file(tmp_path):
    (tmp_path / ".pi").mkdir()
    project_file = tmp_path / ".pi" / "pi-materia.json"
    project_file.write_text('{"activeLoadout": "Hojo"}', encoding="utf-8")
    with pytest.raises(MateriaError) as caught:
        Workbench(tmp_path).loadouts.check()
    assert caught.value.where == f"activeLoadout in project ({project_file})"
