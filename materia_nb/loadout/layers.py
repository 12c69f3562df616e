"""Load the layers of a config and merge them into one config.

From lowest to highest priority, the layers are:

- ``bundled``: the config that is part of this package.
- ``profile``: the user's config, in ``MATERIA_PROFILE_DIR`` or in the platform's directory for configs, else the
  config in the profile of the reference engine.
- ``project``: the file ``.pi/pi-materia.json`` in the project directory.
- ``environment``: the file that the environment variable ``MATERIA_CONFIG`` names.
- ``given``: the config that the caller passes.
- ``notebook``: the definitions in notebook cells.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, TypeAlias

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_object, frozen, is_object
from materia_nb.loadout.config_files import EXTENSIONS, config_error, expand_path, read_config
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import Report, brief
from materia_nb.loadout.resolve import active_loadout, build_graph, check_config
from materia_nb.loadout.topology import loadout_facts

LayerName: TypeAlias = Literal["bundled", "profile", "project", "environment", "given", "notebook"]
DefinitionKind: TypeAlias = Literal["loadout", "materia"]

BUNDLED: Final = Path(__file__).with_name("bundled") / "default.json"
PROJECT_FILE: Final = Path(".pi") / "pi-materia.json"
_PROFILE_VARIABLE: Final = "MATERIA_PROFILE_DIR"
_PI_PROFILE_VARIABLE: Final = "PI_MATERIA_PROFILE_DIR"
"""Environment variable for the reference engine's profile, the fallback if this package's profile has no config."""

_CONFIG_VARIABLE: Final = "MATERIA_CONFIG"

_DEFINITIONS: Final = ("loadouts", "materia")
_MERGED_GROUPS: Final = ("budget", "limits", "prices", "mcpServers")


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a config.

    Attributes:
        name: the name of the layer.
        label: the name of the layer's source in messages: a path or the name of a cell.
        path: the path of the config file; None if the config was not read from a file.
        loadouts: the names of the loadouts that the layer defines.
        materia: the ids of the materia that the layer defines.
        document: the content of the layer.
        fault: the error that caused the layer to be skipped, or None.
    """

    name: LayerName
    label: str
    path: Path | None = None
    loadouts: tuple[str, ...] = ()
    materia: tuple[str, ...] = ()
    document: Mapping[str, JSON] = field(default_factory=dict, compare=False, repr=False)
    fault: MateriaError | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.label})"


@dataclass(frozen=True, slots=True)
class LayeredConfig:
    """A merged config and its layers.

    Attributes:
        document: the merged config.
        layers: all layers from lowest to highest priority, including layers that were skipped because of errors.
        folders: the directory of the config file that defines each materia, by materia id (R24).
    """

    document: Object
    layers: tuple[Layer, ...]
    folders: Mapping[str, Path]

    def __repr__(self) -> str:
        return f"<config of {counted(len(self.layers), 'layer')}, {counted(len(self.loadout_names), 'loadout')}>"

    def frozen(self) -> LayeredConfig:
        """Return an immutable copy of the config."""
        layers = tuple(replace(layer, document=frozen(layer.document)) for layer in self.layers)
        return LayeredConfig(frozen(self.document), layers, frozen(self.folders))

    @property
    def loadout_names(self) -> tuple[str, ...]:
        """The names of all loadouts, in the order of the layers."""
        loadouts = self.document.get("loadouts")
        return tuple(loadouts) if is_object(loadouts) else ()

    @property
    def active(self) -> str | None:
        """The name of the loadout that is cast by default, or None if the config has no loadouts."""
        return active_loadout(self.document)

    @property
    def faults(self) -> tuple[MateriaError, ...]:
        """The errors that caused layers to be skipped. Each error contains the path of its file."""
        return tuple(layer.fault for layer in self.layers if layer.fault is not None)

    def origin(self, kind: Literal["loadout", "materia", "setting"], name: str) -> Layer:
        """Return the layer of highest priority that defines a loadout, a materia or a top-level setting.

        Raises:
            MateriaError: no layer defines it.
        """
        known_names: list[str] = []
        for layer in reversed(self.layers):
            names = {"loadout": layer.loadouts, "materia": layer.materia, "setting": layer.document}[kind]
            if name in names:
                return layer
            known_names += names
        raise config_error(f"no layer defines the {kind} {name!r}", None, did_you_mean(name, set(known_names)))

    def origins(self, kind: DefinitionKind, name: str) -> Mapping[str, Layer]:
        """Return the layer that determines each field, by field (R33). The mapping is empty if ``name`` is unknown."""
        return self._merged(kind, name, self.layers)[1]

    def definition_below(self, kind: DefinitionKind, name: str, layer: LayerName) -> Object:
        """Return the definition of a loadout or materia merged only from the layers below ``layer``."""
        return self._merged(kind, name, takewhile(lambda lower: lower.name != layer, self.layers))[0]

    def _merged(self, kind: DefinitionKind, name: str, layers: Iterable[Layer]) -> tuple[Object, dict[str, Layer]]:
        group = "loadouts" if kind == "loadout" else kind
        merged_definition: JSON = None
        origins: dict[str, Layer] = {}
        for layer in layers:
            definitions = as_object(layer.document.get(group))
            if name in definitions:
                merged_definition = _merge_over(merged_definition, definitions[name])
                origins |= dict.fromkeys(as_object(definitions[name]), layer)
                origins = {key: origins[key] for key in as_object(merged_definition)}
        return as_object(merged_definition), origins

    def check(self, loadout: str | None = None) -> Report:
        """Check the whole merged config, or a single loadout with the materia that it uses."""
        return check_config(self.document, loadout)

    def check_for_reference(self, loadout: str) -> Report:
        """Check whether pi-materia, the reference engine, can run a loadout and runs it as this engine does (R74)."""
        from materia_nb.loadout.rules.reference_rules import reference_report

        files = [as_object(layer.document) for layer in self.layers if layer.name != "bundled"]
        return reference_report(self.document, loadout, files)

    def graph(self, loadout: str | None = None) -> Graph:
        """Return the resolved graph of a loadout, which defaults to the active loadout.

        Raises:
            LoadoutError: the loadout has problems.
        """
        return build_graph(self.document, loadout, self.folders)


def load_layers(
    path: str | Path | Mapping[str, JSON] | None = None,
    *,
    project: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    bundled: bool = True,
    notebook: Mapping[str, JSON] | None = None,
) -> LayeredConfig:
    """Read and merge the layers of a config.

    Loadouts and materia of the same name are merged field by field. A field that is missing keeps its value from the
    lower layers, and a field that is null is removed. A loadout or materia that is null is removed (R33). ``budget``,
    ``limits``, ``prices`` and ``mcpServers`` are merged key by key, and all other fields are replaced.

    Args:
        path: the path of the config for the layer ``given``, or the config itself. None omits the layer.
        project: the project directory, to which paths are relative; None selects the current directory.
        env: the environment variables; None selects the environment of the process.
        bundled: True to include the bundled config as the lowest layer.
        notebook: the definitions in notebook cells; None omits the layer.

    Raises:
        MateriaError: ``path`` or the file in ``MATERIA_CONFIG`` cannot be read. A profile or project file that cannot be
            read is skipped instead, and listed in :attr:`LayeredConfig.faults`.
    """
    base = Path.cwd() if project is None else expand_path(project).absolute()
    environment = os.environ if env is None else env
    merge = _LayerMerger()
    if bundled:
        merge.add("bundled", str(BUNDLED), BUNDLED, _bundled())
    profile = _profile_file(environment)
    if profile is not None:
        merge.add_file("profile", profile, tolerant=True)
    if _may_exist(base / PROJECT_FILE):
        merge.add_file("project", base / PROJECT_FILE, tolerant=True)
    env_file = environment.get(_CONFIG_VARIABLE)
    if env_file:
        merge.add_file("environment", base / expand_path(env_file), variable=_CONFIG_VARIABLE)
    if isinstance(path, Mapping):
        merge.add("given", "a document", None, dict(path))
    elif path is not None:
        merge.add_file("given", base / expand_path(path))
    if notebook:
        merge.add("notebook", "this notebook", None, dict(notebook))
    return LayeredConfig(merge.document, tuple(merge.layers), merge.folders)


@cache
def _bundled() -> JSON:
    """Return the bundled config, which is read once per process."""
    return frozen(read_config(BUNDLED))


def with_removed_fields(definition: Mapping[str, JSON], below: Mapping[str, JSON]) -> Object:
    """Return ``definition`` with null for each field that only ``below`` has, so that merging removes it (R33)."""
    return {**definition, **dict.fromkeys(key for key in below if key not in definition)}


def _profile_file(env: Mapping[str, str]) -> Path | None:
    """Return the path of the config in the user's profile, else in the reference engine's profile, else None."""
    directories = filter(None, (profile_directory(env), pi_profile_directory(env)))
    candidates = (directory / f"config{ending}" for directory in directories for ending in EXTENSIONS)
    return next((path for path in candidates if _may_exist(path)), None)


def profile_directory(env: Mapping[str, str]) -> Path | None:
    """Return the directory of the user's profile, which may not exist; None if the user has no home directory."""
    directory = env.get(_PROFILE_VARIABLE)
    if directory:
        return expand_path(directory).absolute()
    from platformdirs import user_config_path

    try:
        return user_config_path("materia-nb", appauthor=False)
    except RuntimeError:  # no HOME and no entry in the user database, as in many containers
        return None


def pi_profile_directory(env: Mapping[str, str]) -> Path | None:
    """Return the directory of the reference engine's profile, or None.

    The result is None if environment variables set only the profile of this package, or if the user has no home
    directory.
    """
    directory = env.get(_PI_PROFILE_VARIABLE)
    if directory:
        return expand_path(directory).absolute()
    if env.get(_PROFILE_VARIABLE):
        return None
    try:
        return Path(env.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "pi" / "pi-materia"
    except RuntimeError:
        return None


def _may_exist(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:  # a parent directory is not accessible; reading the file reports the error
        return True


@dataclass(slots=True)
class _LayerMerger:
    """A merged config under construction. The next higher layer can be merged over it."""

    document: Object = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)

    def add_file(self, name: LayerName, path: Path, *, tolerant: bool = False, variable: str | None = None) -> None:
        """Read a config file and merge it over the lower layers.

        Args:
            name: the name of the layer.
            path: the path of the file.
            tolerant: True to skip a file with errors and to record the error in the layer.
            variable: the environment variable that contains the path, for errors.

        Raises:
            MateriaError: the file cannot be used, and ``tolerant`` is False.
        """
        try:
            self.add(name, str(path), path, read_config(path))
        except MateriaError as error:
            if variable is not None:
                error.hint = f"{error.hint} (the path is the value of {variable})"
            if not tolerant:
                raise
            self.layers.append(Layer(name, str(path), path, fault=error))

    def add(self, name: LayerName, label: str, path: Path | None, document: JSON) -> None:
        """Merge a document over the lower layers; raise MateriaError if the document is malformed."""
        if not is_object(document):
            message = f"a config must be an object, not {brief(document)}"
            raise config_error(message, label, 'write {"loadouts": { ... }, "materia": { ... }}')
        for group in (*_DEFINITIONS, *_MERGED_GROUPS):
            if name in ("profile", "project") and not isinstance(document.get(group), dict | None):
                message = f"{group} cannot be {brief(document[group])}"
                raise config_error(message, f"{label}: {group}", "write an object")
        loadouts, materia = _defined_names(document.get("loadouts")), _defined_names(document.get("materia"))
        self.layers.append(Layer(name, label, path, loadouts, materia, document))
        self._merge(document, path)
        if name == "given" and loadouts and document.get("activeLoadout") is None:
            self.document["activeLoadout"] = loadouts[0]

    def _merge(self, document: Object, path: Path | None) -> None:
        for key, value in document.items():
            below = self.document.get(key)
            if key in _DEFINITIONS and is_object(value) and isinstance(below, dict | None):
                merged_group = dict(below or {})
                for id_, raw in value.items():
                    is_change = isinstance(raw, dict) and (id_ in merged_group or None in raw.values())
                    merged_group[id_] = _merge_over(merged_group.get(id_), raw) if is_change else raw
                self.document[key] = {id_: raw for id_, raw in merged_group.items() if raw is not None}
            elif key in _MERGED_GROUPS and is_object(value) and is_object(below):
                self.document[key] = {**below, **value}
            else:
                self.document[key] = value
        for id_, raw in as_object(document.get("materia")).items():
            if isinstance(raw, dict) and id_ in self.folders and "command" not in raw:
                continue  # its command comes from a lower file, whose directory contains the scripts (R24)
            self.folders.pop(id_, None)
            if path is not None and raw is not None:
                self.folders[id_] = path.parent


def _merge_over(below: JSON, raw: JSON) -> JSON:
    """Merge a definition over the definition in the lower layers, field by field; null removes a field (R33)."""
    if not isinstance(raw, dict):
        return raw
    merged_fields = {**as_object(below), **raw}
    return {key: value for key, value in merged_fields.items() if value is not None}


def _defined_names(group: JSON) -> tuple[str, ...]:
    """Return the names in a group of definitions, except names that are defined as null."""
    return tuple([name for name, raw in group.items() if raw is not None]) if is_object(group) else ()


def placed_definitions(document: Object, loadout: str) -> dict[str, Object]:
    """Return the definitions of the materia that a loadout places, by id; undefined materia are omitted."""
    facts = loadout_facts(document, loadout)
    return {name: raw for name in facts.placed_materia if is_object(raw := facts.definitions.get(name))}
