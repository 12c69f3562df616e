"""The agents and pinned answers that a workbench uses for new casts (``wb.agents``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from materia_nb.agents import ModelAgent
from materia_nb.agents.interface import Agent
from materia_nb.agents.notebook_agents import (
    AgentLike,
    AgentTable,
    RecordedAgent,
    ScriptedAgent,
    names_of,
    require_name,
    unknown_name_error,
    utilities_of,
    utility_error,
)
from materia_nb.cast import Prepared, open_cast
from materia_nb.cast.edits import PinnedAnswer, require_pinned, resolve_pin
from materia_nb.cast.exports import agent_from_recording, read_recording, recording_of
from materia_nb.cast.library import Loadouts, copy_scripts
from materia_nb.cast.project_casts import Casts
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, as_object, with_value_at
from materia_nb.loadout.compose import Composition
from materia_nb.loadout.config_files import expand_path
from materia_nb.loadout.graph import Graph, PromptForm
from materia_nb.loadout.topology import materia_kind
from materia_nb.store.catalogue import find_cast

_RECORDED_PREFIX: Final = "recorded:"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class BenchPin(NamedTuple):
    """A pinned answer for new casts.

    Attributes:
        chosen: the pinned answer.
        loadout: the name of the loadout to which the pin of a socket is limited; None for the pin of a materia, which
            applies to all loadouts.
    """

    chosen: PinnedAnswer
    loadout: str | None


class Agents(AgentTable):
    """The agents of a workbench by name, together with its pinned answers.

    Args:
        loadouts: the loadouts whose sockets and materia can have agents.
        casts: a function that returns the casts of the project, which provide recorded answers and the current cast.

    Attributes:
        pins: the pinned answers for new casts, by socket or materia.
    """

    def __init__(self, loadouts: Loadouts, casts: Callable[[], Casts]) -> None:
        super().__init__(check=self.require_agent)
        self.pins: dict[str, BenchPin] = {}
        self._loadouts = loadouts
        self._casts = casts

    # -- agents ---------------------------------------------------------------------

    def decorator(self, name: str) -> Callable[[_Function], _Function]:
        """Return a decorator that sets a function as the agent of a socket or materia."""
        self.require_known_name(name)

        def decorate(function: _Function) -> _Function:
            self.set(name, function)
            return function

        return decorate

    def set(self, name: str, agent: AgentLike) -> Agent:
        """Set the agent of a socket or materia.

        Besides the usual kinds of agents, a string such as ``recorded:ID`` selects the recorded answers of a cast or of
        a recording file.
        """
        return super().set(name, self._resolve_agent(agent))

    def recorded(self, reference: str | Path) -> RecordedAgent:
        """Return an agent that replays the answers of an earlier cast.

        Args:
            reference: the path of a file written by ``cast.export.recording``, or a reference to a cast as in
                ``wb.open``.

        Raises:
            MateriaError: the file or cast does not exist, or the file is not a recording (``bad_recording``).
        """
        if (recording := self._read_recording(reference)) is not None:
            return recording
        cast = open_cast(find_cast(self._loadouts.casts_root, str(reference)))
        return agent_from_recording(recording_of(cast.now), f"recorded:{cast.id}")

    def _read_recording(self, reference: str | Path) -> RecordedAgent | None:
        """Read a recording, or return None if ``reference`` is neither an existing file nor a path to a JSON file."""
        path = self._loadouts.project / expand_path(reference)
        is_file = os.path.isfile(path)  # noqa: PTH113 - False also for an invalid path
        return read_recording(path) if path.suffix == ".json" or is_file else None

    def _resolve_agent(self, agent: AgentLike) -> AgentLike:
        """Return the recorded agent for a string that starts with ``recorded:``. Return any other agent unchanged."""
        if isinstance(agent, str) and agent.startswith(_RECORDED_PREFIX):
            return self.recorded(agent.removeprefix(_RECORDED_PREFIX))
        return agent

    def knows(self, name: str) -> bool:
        """Return True if ``name`` is ``*`` or the name of a materia or socket."""
        try:
            self.require_known_name(name)
        except MateriaError:
            return False
        return True

    def require_known_name(self, name: str) -> None:
        """Raise MateriaError (``unknown_materia``) unless ``name`` is ``*`` or the name of a materia or socket."""
        if name == "*":
            return
        document = self._loadouts.config.document
        materia = as_object(document.get("materia"))
        sockets = {
            socket
            for loadout in as_object(document.get("loadouts")).values()
            for socket in as_object(as_object(loadout).get("sockets"))
        }
        if name not in materia and name not in sockets:
            raise unknown_name_error(name, {*materia, *sockets})

    def require_agent(self, name: str) -> None:
        """Check that a materia or socket can have an agent.

        A socket is looked up in the selected loadout, or else in the current cast.

        Raises:
            MateriaError: the name is unknown (``unknown_materia``), or belongs to a utility (``not_an_agent``).
        """
        self.require_known_name(name)
        materia = as_object(self._loadouts.config.document.get("materia"))
        loadout = as_object(self._loadouts.config.document.get("loadouts", {}).get(self._loadouts.chosen))
        socket = as_object(as_object(loadout.get("sockets")).get(name))
        materia_id = name if name in materia else socket.get("materia")
        if isinstance(materia_id, str):
            utility = materia_kind(as_object(materia.get(materia_id))) == "utility"
        else:
            last = self._casts().last
            graph = None if last is None else last.graph
            utility = graph is not None and name in graph.sockets and graph.sockets[name].is_utility
        if utility:
            raise utility_error(name, name if materia_id in (name, None) else f"{name} ({materia_id})")

    # -- pins -----------------------------------------------------------------------

    def pin(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Pin a socket or materia to an answer, in the current cast and in later casts (R40).

        If a utility is pinned, no process is started. The pin of a socket applies only to the loadout of the socket.
        The pin of a materia applies to all loadouts::

            wb.pin("Detect-VCS", {"state": {"vcs": "git"}})
            wb.pin("Socket-3")  # pin its latest output in the current cast

        Args:
            name: the id of a socket in the current cast or in the selected loadout, or the id of a materia.
            to: the answer, as for ``cast.pins.add``. It can also be a string such as ``recorded:ID``, which selects the
                answers that were recorded for each visit in a cast or in a recording file.
            visit: the number of the visit whose output to use; by default the latest visit.

        Raises:
            MateriaError: the pin is refused, as for ``cast.pins.add``.
        """
        last = self._casts().last
        cast = last if last is not None and name in names_of(last.graph) else None
        loadout = None
        if name not in as_object(self._loadouts.config.document.get("materia")):
            graph = self._loadouts.graph() if cast is None else cast.graph
            require_name(graph, name)
            loadout = graph.name
        answer = resolve_pin(None if cast is None else cast.now, name, self._resolve_answer(to), visit)
        if cast is not None and cast.now.writable and cast.status != "complete":
            cast.pins.put(name, answer)
        self.pins[name] = BenchPin(answer, loadout)
        return answer.pin

    def unpin(self, name: str) -> None:
        """Remove a pin from the current cast, and from later casts.

        Raises:
            MateriaError: the socket or materia is not pinned (``not_pinned``).
        """
        last = self._casts().last
        pins = last.pins if last is not None and last.now.writable else None
        require_pinned(name, [*self.pins, *(pins or ())])
        if pins is not None and name in pins:
            pins.remove(name)
        self.pins.pop(name, None)

    def _resolve_answer(self, to: object) -> object:
        """Return the cast or recording for a string that starts with ``recorded:``; return any other value unchanged."""
        if not isinstance(to, str) or not to.startswith(_RECORDED_PREFIX):
            return to
        reference = to.removeprefix(_RECORDED_PREFIX)
        recording = self._read_recording(reference)
        return self._casts().load(reference) if recording is None else recording

    def prepare(
        self, graph: Graph, agents: Mapping[str, AgentLike] | None = None, pins: Mapping[str, object] | None = None
    ) -> Prepared:
        """Copy the scripts of a loadout to the profile, and return all settings of a cast except its request."""
        table = self.table(graph, agents)
        graph = with_prompt_forms(graph, table)
        copy_scripts(graph)
        return Prepared(self._casts().plan(graph), table, self.pins_for(graph, pins))

    # -- agents and pins of a new cast -------------------------------------------------------

    def table(self, graph: Graph, agents: Mapping[str, AgentLike] | None = None) -> AgentTable:
        """Return the agents of a new cast: the agents of the workbench, overridden by ``agents``.

        Raises:
            MateriaError: a name is unknown, or an agent is set for a utility (``not_an_agent``).
        """
        table, utilities = AgentTable(lower_table=self), utilities_of(graph)
        for key, agent in (agents or {}).items():
            self.require_known_name(key)
            if key in graph.sockets and key in utilities:
                raise utility_error(key, utilities[key])
            table.set(key, self._resolve_agent(agent))
        return _reject_utilities(graph, table)

    def table_of_link(self, composition: Composition, graph: Graph) -> AgentTable:
        """Return the agents of a cast that links several loadouts.

        The composition renames sockets, but each socket keeps the agent that is set for its original name.

        Args:
            composition: the linked loadouts and the new names of their sockets.
            graph: the resolved composition.

        Raises:
            MateriaError: an agent is set for a utility (``not_an_agent``).
        """
        old_names = {new: old for table in composition.sockets for old, new in table.items()} | dict(composition.copies)
        return _reject_utilities(graph, AgentTable(lower_table=self, renamed=old_names))

    def pins_for(self, graph: Graph, pins: Mapping[str, object] | None = None) -> dict[str, PinnedAnswer]:
        """Return the pinned answers of a new cast: the workbench's pins, overridden by ``pins``."""
        names = names_of(graph)
        chosen_pins = {
            name: pin.chosen for name, pin in self.pins.items() if name in names and pin.loadout in (None, graph.name)
        }
        for name, answer in (pins or {}).items():
            require_name(graph, name)
            chosen_pins[name] = resolve_pin(None, name, self._resolve_answer(answer))
        return chosen_pins


def with_prompt_forms(graph: Graph, table: AgentTable) -> Graph:
    """Set the prompt format of each socket that has no ``promptForm`` to the format that its model prefers (R50).

    The formats are also added to the config document, so that a resumed cast writes the same prompts.
    """
    forms: dict[str, PromptForm] = {}
    for id_, socket in graph.sockets.items():
        agent = table.for_turn(id_, socket.materia.id)
        if socket.prompt_form is None and not socket.is_utility and isinstance(agent, ModelAgent):
            forms |= {} if agent.prompt_form is None else {id_: agent.prompt_form}
    if not forms:
        return graph
    document: JSON = graph.document
    for id_, form in forms.items():
        document = with_value_at(document, ["loadouts", graph.name, "sockets", id_, "promptForm"], form)
    sockets = {
        id_: replace(socket, prompt_form=forms.get(id_, socket.prompt_form)) for id_, socket in graph.sockets.items()
    }
    return replace(graph, sockets=sockets, document=document)


def _reject_utilities(graph: Graph, agents: AgentTable) -> AgentTable:
    """Return ``agents`` after checking that no utility has an agent or a scripted answer.

    Only names of materia are checked, because the name of a socket may belong to another loadout.

    Raises:
        MateriaError: a utility has an agent (``not_an_agent``).
    """
    utilities = {socket.materia.id for socket in graph.sockets.values() if socket.is_utility}
    names = {line.name for line in agents.describe() if line.name is not None}
    if isinstance(agents.default, ScriptedAgent):
        names |= set(agents.default.names)
    for name in sorted(utilities & names):
        raise utility_error(name, name)
    return agents
