"""The loadouts of a workbench: config layers, definitions in the notebook, and the selected loadout."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from materia_nb.cast.views.loadout_views import LoadoutView, loadouts_view
from materia_nb.display.blocks import Block, Displayable
from materia_nb.errors import MateriaError, counted, did_you_mean, needs_one_of
from materia_nb.handoff import protocol
from materia_nb.jsonvalue import JSON, Object, as_list, as_object
from materia_nb.loadout import Graph, LayeredConfig, Report, load_layers, read_config, read_text
from materia_nb.loadout.config_files import expand_path, is_config_file, path_exists, resolve_path
from materia_nb.loadout.graph_import import import_graph
from materia_nb.loadout.items import with_advances
from materia_nb.loadout.layers import PROJECT_FILE, placed_definitions, profile_directory, with_removed_fields
from materia_nb.loadout.report import MISSING_COMMAND, Problem
from materia_nb.loadout.topology import loadout_facts, materia_kind
from materia_nb.platform import recording_folder
from materia_nb.store.files import write_file
from materia_nb.utilities import utility_step
from materia_nb.utilities.utility_step import missing_program, moved_definition, with_absolute_paths

if TYPE_CHECKING:
    from materia_nb.loadout.design import Design
    from materia_nb.store.design_autosave import SavedDraft

DEFAULT_ARTIFACT_DIR: Final = ".pi/pi-materia"
REFERENCE: Final = "pi-materia"
"""Name of the reference engine. ``check`` can report the parts of a loadout that this engine would refuse."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 _.-]{0,63}")


class Loadouts(Mapping[str, str], Displayable):
    """The loadouts and materia of a workbench, available as ``wb.loadouts``.

    A mapping from the name of each loadout to the name of the config layer that defines it.

    Args:
        project: the directory of the config file; copies and new loadouts are written to that file.
        bundled: False to exclude the loadouts of the package.

    Attributes:
        refused: the name of the most recently defined loadout if it was not selected because of problems, or None.
    """

    def __init__(self, project: Path, *, bundled: bool = True) -> None:
        self._project = project
        self._bundled = bundled
        self._loaded: str | Path | Mapping[str, JSON] | None = None
        self._notebook: dict[str, dict[str, JSON]] = {"loadouts": {}, "materia": {}}
        self._chosen: str | None = None
        self.refused: str | None = None
        self._lost: dict[str, str] = {}  # loadouts that are no longer loaded, with the name of their file
        self._config: LayeredConfig | None = None

    @property
    def project(self) -> Path:
        """The project directory."""
        return self._project

    def reload(self) -> LayeredConfig:
        """Read every config layer again, and return the merged config."""
        self._config = self.read(self._loaded)
        return self._config

    @property
    def config(self) -> LayeredConfig:
        """The merged config of all layers. It is read on first use; :meth:`load` reads it again."""
        return self.reload() if self._config is None else self._config

    def read(self, loaded: str | Path | Mapping[str, JSON] | None) -> LayeredConfig:
        """Read and merge all config layers, with the file or mapping ``loaded`` as the topmost file layer."""
        notebook = self._notebook if any(self._notebook.values()) else None
        return load_layers(loaded, project=self.project, bundled=self._bundled, notebook=notebook).frozen()

    def definitions(self) -> tuple[Mapping[str, JSON], Mapping[str, Path]]:
        """Return the current definition and the config directory of each materia, as two mappings by materia id."""
        config = self.read(self._loaded)
        return config.document.get("materia", {}), config.folders

    @property
    def casts_root(self) -> Path:
        """The directory that contains the run directories: ``artifactDir`` of the config, relative to the project.

        In a browser, the run directories are kept in memory.

        Raises:
            MateriaError: the directory is outside the project (``artifact_dir``).
        """
        directory = self.config.document.get("artifactDir")
        folder = directory if isinstance(directory, str) and directory else DEFAULT_ARTIFACT_DIR
        root = self.project / folder
        try:
            is_inside = root.resolve().is_relative_to(self.project.resolve())
        except (OSError, ValueError, RuntimeError):  # a loop of symbolic links, or an invalid file name
            is_inside = False
        if not is_inside:
            raise MateriaError(
                "The directory for run directories is outside the project directory.",
                where=f"artifactDir: {folder}"[:500],
                hint='write a path in the project, such as ".pi/pi-materia"; a symbolic link must not point outside of it',
                kind="artifact_dir",
            )
        return recording_folder(root)

    def load(self, path: str | Path | Mapping[str, JSON] | None = None) -> LoadoutView:
        """Load a config file on top of the other layers, and select its active loadout.

        Without a path, read all layers again. A running cast keeps the loadout with which it was started.

        Args:
            path: the path of a .json, .jsonc, .yaml or .yml file, relative to the project or to the current directory;
                or a config as a mapping.

        Raises:
            MateriaError: the file cannot be read; the loaded config does not change.
        """
        if path is None:
            self.reload()
            return self._copy_scripts_and_show()
        source = path if isinstance(path, Mapping) else self.find(Path(path))
        config = self.read(source)
        before = self._loaded, self._config, self._chosen
        lost = {} if self._config is None else _removed_loadouts(self._config, config)
        self._loaded, self._config, self._chosen = source, config, config.active
        try:
            view = self._copy_scripts_and_show()
        except MateriaError:  # neither the file nor a lower layer has a loadout
            self._loaded, self._config, self._chosen = before
            raise
        self.refused = None
        self._lost = {name: label for name, label in {**self._lost, **lost}.items() if name not in config.loadout_names}
        notes = (f"{name} from {label} is no longer loaded: the new file replaces it" for name, label in lost.items())
        return view.with_notes(*notes)

    def _copy_scripts_and_show(self) -> LoadoutView:
        """Copy the shipped scripts of the selected loadout to the profile, and return a view of the loadout."""
        view = self.show()
        return view if view.graph is None else view.with_notes(*copy_scripts(view.graph))

    def find(self, path: Path) -> Path:
        """Return the path of a file in the project, or in the current directory if the project does not contain it."""
        path = expand_path(path)
        project_path = self.project / path
        return project_path if path_exists(project_path) or not path_exists(path) else resolve_path(path)

    def __getitem__(self, name: str) -> str:
        """Return the name of the config layer that defines a loadout."""
        if name not in self.config.loadout_names:
            raise KeyError(name)
        return self.config.origin("loadout", name).name

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the loadouts."""
        return iter(self.config.loadout_names)

    def __len__(self) -> int:
        """Return the number of loadouts."""
        return len(self.config.loadout_names)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'loadout')} of {self.project.name}: {self.chosen or 'no loadout'} chosen>"

    def _blocks(self) -> list[Block]:
        return [loadouts_view(self, self.chosen, self.config)]

    @property
    def chosen(self) -> str | None:
        """The name of the loadout that ``wb.cast`` uses by default, or None."""
        if self._chosen in self.config.loadout_names:
            return self._chosen
        return self.config.active

    def use(self, name: str) -> LoadoutView:
        """Select the loadout to cast, and return a view of it."""
        self.require_loadout(name)
        self._chosen, self.refused = name, None
        return self._copy_scripts_and_show()

    def show(self, name: str | None = None) -> LoadoutView:
        """Return a view of a loadout and its problems, by default of the selected loadout."""
        name = self.require_loadout(name or self.chosen)
        report = self.check(name)
        graph = None if report.problems else self.graph(name)
        return LoadoutView(name, self.config.origin("loadout", name).name, graph, report)

    def check(self, name: str | None = None, *, engine: str | None = None) -> Report:
        """Return the problems and hints of a loadout, by default of the selected loadout.

        Unlike ``wb.loadouts.config.check``, this also reports programs and scripts that are missing on this machine.

        Args:
            name: the name of the loadout.
            engine: ``pi-materia`` to also report what the reference engine refuses or interprets differently (R74).

        Raises:
            MateriaError: the loadout (``unknown_loadout``) or the engine (``unknown_engine``) does not exist.
        """
        name = self.require_loadout(name or self.chosen)
        report = self.config.check(name)
        if engine is None:
            return Report(report.problems, (*report.hints, *self._missing_commands(name)))
        needs_one_of(engine, (REFERENCE,), f"Loadouts cannot be checked for the engine {engine!r}.", "unknown_engine")
        other = self.config.check_for_reference(name)
        return Report((*report.problems, *other.problems), (*report.hints, *self._missing_commands(name), *other.hints))

    def _missing_commands(self, name: str) -> Iterator[Problem]:
        for id_, definition in placed_definitions(self.config.document, name).items():
            if materia_kind(definition) != "utility":
                continue
            missing = missing_program(definition, self.config.folders.get(id_), self.project)
            if missing is not None:
                message = f"the program {missing!r} is not installed on this machine, so the utility cannot start"
                advice = "install it, put it next to the config file, or pin the utility to an output"
                yield Problem(MISSING_COMMAND, f"materia.{id_}.command", message, advice, name, "hint")

    def graph(self, name: str | Path | None = None) -> Graph:
        """Return a loadout in resolved form.

        Args:
            name: the name of a loadout, or the path of a config file, whose active loadout is returned without loading
                the file; by default the selected loadout.

        Raises:
            MateriaError: the loadout does not exist, has problems or uses an unknown handoff protocol; the file cannot
                be read, or neither defines nor selects a loadout (``no_loadout``).
        """
        if isinstance(name, Path) or (name and name not in self.config.loadout_names and is_config_file(name)):
            return require_known_protocols(self._graph_of_file(self.find(Path(name))))
        return require_known_protocols(self.config.graph(self.require_loadout(name or self.chosen)))

    def _graph_of_file(self, path: Path) -> Graph:
        """Read a config file on top of the other layers, and return its active loadout."""
        config = self.read(path)
        graph = config.graph()
        layer = next(layer for layer in config.layers if layer.name == "given")
        if not layer.loadouts and layer.document.get("activeLoadout") is None:
            hint = "add a loadout to the field `loadouts`, or write the name of a loadout in `activeLoadout`"
            raise MateriaError("The config file has no loadout.", where=str(path), hint=hint, kind="no_loadout")
        return graph

    def define(self, name: str, body: str | Mapping[str, JSON]) -> LoadoutView:
        """Define a loadout in this notebook, and select it unless it has problems.

        If the new loadout has problems, the previous loadout stays selected, and the next cast shows a note about it.

        Args:
            name: the name of the loadout.
            body: the fields of the loadout (``entry``, ``sockets``, ``loops``) as a mapping, or as a string in JSON or
                YAML. The definitions in a field ``materia`` are added to this notebook.

        Raises:
            MateriaError: the name or the string is invalid, or the body is not an object.
        """
        _check_name(name, "loadout")
        document = read_text(body, where=name) if isinstance(body, str) else dict(body)
        if not isinstance(document, dict):
            raise MateriaError("A loadout must be an object.", where=name, hint="set the fields entry and sockets")
        materia = document.pop("materia", {})
        if not isinstance(materia, dict):
            raise MateriaError("`materia` must be an object that contains definitions.", where=f"{name}.materia")
        if "sockets" in document:  # a complete loadout, not a change of the same loadout in a lower layer
            document = self.override_all_fields("loadout", name, document)
        self._notebook["loadouts"][name] = document
        self._notebook["materia"].update(materia)
        before, self._config = self.chosen, None
        view = self.show(name)
        if not view.report.problems:
            self._chosen, self.refused = name, None
            return view
        self._chosen, self.refused = before if before != name else None, name
        chosen_note = f"; {self.chosen} stays chosen" if self.chosen not in (None, name) else ""
        return view.with_notes(f"{name} was defined but cannot be cast, so it was not chosen{chosen_note}")

    def import_graph(self, source: object, name: str = "Imported") -> LoadoutView:
        """Convert a graph of another tool to a loadout, with a note about each node that has no equivalent.

        Args:
            source: a compiled LangGraph graph, its JSON, a Mermaid flowchart, or the path of a file with one of these.
            name: the name of the new loadout.

        Raises:
            MateriaError: the source is not a supported graph (``bad_graph``).
        """
        imported = import_graph(source)
        notes = (f"{note.node}: {note.text}" for note in imported.notes)
        return self.define(name, imported.document).with_notes(*notes)

    def drafts(self, name: str | None = None) -> tuple[SavedDraft, ...]:
        """Return the saved drafts of designs that have unsaved changes and are not open, newest first.

        Args:
            name: the name of the loadout whose drafts are returned; by default the drafts of all loadouts.
        """
        from materia_nb.store.design_autosave import list_drafts

        return list_drafts(self.casts_root, name)

    def design(
        self, name: str | None = None, *, new: bool = False, draft: bool | SavedDraft = False, by: str = ""
    ) -> Design:
        """Open a loadout for editing and return its design. By default, the selected loadout is opened.

        Config files only change when you call :meth:`save`, and a running cast keeps the loadout with which it was
        started. Every unsaved change is stored in a draft, so that no changes are lost if the kernel crashes.

        Args:
            name: the name of the loadout.
            new: True to create an empty loadout with this name, which :meth:`save` adds to the project's config file.
            draft: a draft to continue: an element of :meth:`drafts`, or True for the newest draft of the loadout.
            by: the name of the coding agent that edits the design; "" for a person.

        Raises:
            MateriaError: the loadout or the draft does not exist, the loadout already exists (with ``new``), or a file
                cannot be read.
        """
        from materia_nb.loadout.design.saving import new_design, open_design
        from materia_nb.store.design_autosave import autosave

        self.reload()
        if draft is True:
            drafts = self.drafts(name or self.chosen)
            if not drafts:
                hint = "list the drafts that are not open in a designer with `wb.loadouts.drafts()`"
                raise MateriaError(f"{name or self.chosen} has no draft.", hint=hint, kind="no_draft")
            draft = drafts[0]
        if draft is not False:
            design = self.design(draft.name, new=draft.name not in self.config.loadout_names, by=by)
            draft.continue_in(design)
            return design
        if new:
            _check_name(name or "", "loadout")
            design = new_design(self.config, name or "", self.project)
        else:
            if name is not None and name not in self.config.loadout_names:
                hint = f"{did_you_mean(name, self.config.loadout_names)}; create it with `design --new {name}`"
                raise MateriaError(f"The loadout {name!r} does not exist.", hint=hint, kind="unknown_loadout")
            design = open_design(self.config, self.require_loadout(name or self.chosen), self.project)
        return autosave(design, self.casts_root, by)

    def save(self, design: Design, to: str | Path | None = None, *, anyway: bool = False) -> str:
        """Save a design to its own file, to this notebook, or to the project's config file.

        Args:
            design: a design that :meth:`design` returned.
            to: ``"notebook"``, or the path of another file to save a copy to. The copy includes the materia that the
                loadout uses, except for unchanged bundled materia.
            anyway: True to save the design even if it has problems or is locked.

        Returns:
            A message that states where the design was saved.

        Raises:
            MateriaError: the design has problems or is locked, its file was changed by another program, or the file cannot be
                written.
        """
        from materia_nb.loadout.design.saving import materia_without_file, reject_locked, reject_problems, save_design

        if to == "notebook" or (to is None and design.home.path is None):
            reject_problems(design, anyway=anyway)
            if to is None and not anyway:
                reject_locked(design)
            _check_name(design.name, "loadout")
            for id_, raw in design.changed_materia.items():
                _check_name(id_, "materia")
                self._notebook["materia"][id_] = None if raw is None else self.override_all_fields("materia", id_, raw)
            self._notebook["loadouts"][design.name] = self.override_all_fields("loadout", design.name, design.document)
            self._config, self._chosen, self.refused = None, design.name, None
            design.mark_saved()
            return "saved in this notebook"
        is_new = design.name not in self.config.loadout_names
        selected_name = design.name if is_new else self.chosen
        path = design.home.path if to is None else self.find(Path(to))
        used, scripts = self._materia_and_scripts_to_copy(design, path)
        path = save_design(design, path, copied_materia=used, anyway=anyway)
        self.reload()
        self._chosen = selected_name
        if is_new:
            self.refused = None
        message = f"saved in {path}{_describe_copies(path, used, scripts)}"
        if design.name not in self.config.loadout_names:
            message += "; load it to cast it"
        elif (layer := self.config.origin("loadout", design.name)).path != path:
            message += f"; the layer {layer.name} overrides it"
        elif is_new:
            message += f"; {design.name} is now chosen"
        elif design.name != selected_name:
            message += f"; select it with `use {design.name}`"
        if not used and (missing := materia_without_file(self.config, design)):
            message += f"; no file defines the materia {', '.join(missing)}"
        return message

    def _materia_and_scripts_to_copy(self, design: Design, path: Path | None) -> tuple[dict[str, Object], list[str]]:
        """Return the materia that must be saved with a copy of a design, and the scripts that these materia run."""
        if path is None or path == design.home.path:
            return {}, []
        used: dict[str, Object] = {}
        scripts: list[str] = []
        for id_, raw in placed_definitions(design.full_config, design.name).items():
            owner = self.config.folders.get(id_)
            used[id_] = moved_definition(raw, owner, path.parent)
            command = as_list(raw.get("command"))
            scripts += [name for name in as_list(with_absolute_paths(raw, owner).get("command")) if name not in command]
        return used, list(dict.fromkeys(scripts))

    def define_materia(self, name: str, definition: Mapping[str, JSON]) -> None:
        """Define a materia in this notebook. Omitted fields are inherited from lower config layers (R33)."""
        _check_name(name, "materia")
        self._notebook["materia"][name] = dict(definition)
        self._config = None

    def define_utility(
        self, name: str, script: str, *, parse: str = "json", generator: bool = False, **fields: JSON
    ) -> Path:
        """Write a Python script to a file, and define a utility materia in this notebook that runs it.

        The script reads a JSON object from stdin and writes its result to stdout.

        Args:
            name: the name of the materia.
            script: the Python source code.
            parse: ``json`` or ``text``: how the output of the script is read.
            generator: True if the utility is a generator.
            fields: further fields of the materia.

        Returns:
            The path of the script.

        Raises:
            MateriaError: the name is invalid (``bad_name``), or the script or ``parse`` is invalid (``bad_utility``).
        """
        _check_name(name, "utility")
        if parse not in ("json", "text"):
            raise MateriaError(f"`parse` must be json or text, not {parse!r}.", where=name, kind="bad_utility")
        try:
            compile(script, f"<utility {name}>", "exec")
        except SyntaxError as error:
            raise MateriaError(
                f"The script of the utility is not Python: {error.msg}.",
                where=f"{name}, line {error.lineno}",
                kind="bad_utility",
            ) from None
        path = self.casts_root / "notebook-utilities" / f"{name}.py"
        write_file(path, script.encode(), "write the script of the utility")
        command = [sys.executable, str(path)]
        definition: dict[str, JSON] = {"type": "utility", "command": command, "parse": parse}
        if generator:
            definition["generator"] = True
        self.define_materia(name, self.override_all_fields("materia", name, {**definition, **fields}))
        return path

    def override_all_fields(
        self, kind: Literal["loadout", "materia"], name: str, definition: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """Return a definition that overrides or removes every field that lower config layers define."""
        return with_removed_fields(definition, self.config.definition_below(kind, name, "notebook"))

    def copy(self, name: str, new: str | None = None, *, materia: bool = False) -> LoadoutView:
        """Copy a loadout to the project's ``.pi/pi-materia.json``, where it can be edited, and select the copy.

        The rest of the file does not change, and the file is written atomically. After you have edited the file, call
        :meth:`load` without arguments to read it again.

        Args:
            name: the name of the loadout, in any layer. Bundled loadouts can only be changed in a copy.
            new: the name of the copy; by default the same name followed by ``-Copy``.
            materia: True to also copy the materia that the loadout uses, under the same names. They then apply to all
                loadouts of the project. Materia that the file already defines do not change.

        Raises:
            MateriaError: the loadout does not exist, the new name is already used, or the file cannot be written.
        """
        name, new = self.require_loadout(name), new or f"{name}-Copy"
        _check_name(new, "loadout")
        if new in self:
            message = f"The layer {self[new]} already has a loadout {new!r}."
            raise MateriaError(message, hint="choose another name", kind="bad_name")
        path, config = self.project / PROJECT_FILE, self.config
        placed = placed_definitions(config.document, name) if materia else {}
        definitions = {id_: moved_definition(raw, config.folders.get(id_), path.parent) for id_, raw in placed.items()}
        from materia_nb.loadout.design.saving import add_loadout

        add_loadout(path, new, with_advances(loadout_facts(config.document, name)), definitions)
        self._config, self._chosen, self.refused = None, new, None
        return self.show()

    def require_loadout(self, name: str | None) -> str:
        """Return ``name`` if a loadout with this name exists.

        Raises:
            MateriaError: the name is None (``no_loadout``), or the loadout does not exist (``unknown_loadout``).
        """
        names = self.config.loadout_names
        if name is None:
            raise MateriaError(
                "No loadout is loaded.", hint="load a config file with `%materia load FILE`", kind="no_loadout"
            )
        if name in self._lost and name not in names:
            message = f"The loadout {name!r} of {self._lost[name]} is no longer loaded."
            hint = f"load {self._lost[name]} again; only one file is loaded at a time"
            raise MateriaError(message, hint=hint, kind="unknown_loadout")
        if name not in names:
            is_active = self.config.document.get("activeLoadout") == name
            where = f"activeLoadout in {self.config.origin('setting', 'activeLoadout')}" if is_active else None
            message, hint = f"The loadout {name!r} does not exist.", did_you_mean(name, names)
            raise MateriaError(message, where=where, hint=hint, kind="unknown_loadout")
        return name


def _describe_copies(path: Path, used: Mapping[str, Object], scripts: Sequence[str]) -> str:
    """Describe the materia that were saved with a loadout, and the scripts that were not copied."""
    definitions = as_object(as_object(read_config(path)).get("materia")) if used else {}
    saved_ids = [id_ for id_ in used if id_ in definitions]
    message = f" with the materia {', '.join(saved_ids)}" if saved_ids else ""
    if not scripts:
        return message
    return f"{message}; these scripts were not copied, so they run from their current location: {', '.join(scripts)}"


def _removed_loadouts(before: LayeredConfig, now: LayeredConfig) -> dict[str, str]:
    """Return the loadouts that are in ``before`` but not in ``now``, each with the name of the file that defined it."""
    removed_names = set(before.loadout_names).difference(now.loadout_names)
    layers = {name: before.origin("loadout", name) for name in before.loadout_names if name in removed_names}
    return {name: layer.path.name if layer.path else layer.label for name, layer in layers.items()}


def require_known_protocols(graph: Graph) -> Graph:
    """Return the graph, or raise MateriaError if one of its sockets uses an unknown handoff protocol."""
    for socket in graph.sockets.values():
        protocol(socket.handoff)
    return graph


def copy_scripts(graph: Graph) -> list[str]:
    """Copy the shipped scripts of a loadout to the profile.

    Returns:
        Notes about copies that the user had changed and that are no longer used.
    """
    if not any(socket.materia.script for socket in graph.sockets.values()):
        return []
    copies: list[utility_step.ScriptCopy] = []
    for folder in utility_folders():
        before = utility_step.list_copies(folder)
        utility_step.synchronize(folder)
        copies += [new for new in utility_step.list_copies(folder) if new.status == "set aside" and new not in before]
    return [
        f"{copy.path} is no longer used, because it was changed and the package has a newer {copy.script}"
        for copy in copies
    ]


def utility_folders() -> tuple[Path, ...]:
    """Return a tuple with the directory of the copied utility scripts, or an empty tuple if the user has no profile."""
    profile = profile_directory(os.environ)
    return () if profile is None else (profile / utility_step.SCRIPT_FOLDER,)


def _check_name(name: str, kind: str) -> None:
    """Raise MateriaError (``bad_name``) if ``name`` is not a valid name for a loadout, materia or utility."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise MateriaError(
            f"{name!r} cannot be the name of a {kind}.",
            hint="start with a letter; use at most 64 letters, digits, spaces, dots, dashes and underscores",
            kind="bad_name",
        )
