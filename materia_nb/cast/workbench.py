"""One notebook's bench: the config in its layers, the loadouts, who answers, and the casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from materia_nb.agents.agent_table import AgentTable
from materia_nb.agents.interface import Agent
from materia_nb.agents.notebook_agents import RecordedAgent, agent_from
from materia_nb.cast import Cast, Prepared
from materia_nb.cast.answerers import Answerers, BenchPin
from materia_nb.cast.asking import Asked, asked_alone
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.library import Library, copy_scripts, spoken
from materia_nb.cast.listing import CastList
from materia_nb.cast.project_casts import ProjectCasts
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.compare_view import CompareView, LoadoutCompareView, ReplaysView, StepCompareView
from materia_nb.cast.views.loadout_views import (
    ExploreView,
    LoadoutView,
    PromptsView,
    RehearsalView,
    loadouts_view,
)
from materia_nb.cast.views.tables import FoundView
from materia_nb.display.blocks import Block, Shown
from materia_nb.engine.labels import Label
from materia_nb.engine.outcome import PREVIOUS
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.odds import Chances, PerSocket
from materia_nb.insight.prompts import Prompts
from materia_nb.insight.rehearse import rehearse
from materia_nb.insight.space import MOST_STATES
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph, LayeredConfig, Report, build_graph
from materia_nb.loadout.compose import compose
from materia_nb.loadout.config_files import expanded, resolved
from materia_nb.sharing import Progress
from materia_nb.store.catalogue import CastEntry
from materia_nb.store.verifying import Verified

if TYPE_CHECKING:
    from materia_nb.cast.gallery import Gallery, Opened
    from materia_nb.cast.quests import QuestBoard
    from materia_nb.cast.sweep.results import Sweep
    from materia_nb.cast.sweep.verdicts import Check
    from materia_nb.loadout.design import Design
    from materia_nb.store.drafts import Draft

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Workbench(Shown):
    """Where a person works: load loadouts, say who answers, cast.

    Args:
        project: the directory that utilities and agents work in; where ``.pi/pi-materia.json`` is looked for.
        sync: force every step of a cast to the disk (fsync). Slower; a power failure then loses nothing either.
        bundled: whether the loadouts that come with the package are there too.
    """

    def __init__(self, project: str | Path = ".", *, sync: bool = False, bundled: bool = True) -> None:
        self.library = Library(resolved(project), bundled=bundled)
        agents = AgentTable(check=self._needs_agent)
        self._casts = ProjectCasts(self.library, agents, sync=sync)
        self._answerers = Answerers(self.library, self._casts, agents)
        self._quests: QuestBoard | None = None

    def __repr__(self) -> str:
        """Say which project and loadout; stable from run to run."""
        return f"<workbench of {self.project.name}: {self.chosen or 'no loadout'} chosen>"

    @property
    def title(self) -> str:
        """What it is, on the frame in which a notebook shows it."""
        return repr(self)

    def _blocks(self) -> list[Block]:
        return [loadouts_view(self.loadouts, self.chosen, self.config)]

    @property
    def project(self) -> Path:
        """The project directory. Loadouts, agents and casts were found by it: for another project make another bench."""
        return self.library.project

    # -- config -------------------------------------------------------------------

    @property
    def config(self) -> LayeredConfig:
        """The config of all layers, merged; read on first use and again by :meth:`load`."""
        return self.library.config

    def load(self, path: str | Path | Mapping[str, JSON] | None = None) -> LoadoutView:
        """Load a config file on top of the other layers, and choose its active loadout; without one, read all files again.

        A cast keeps the loadout that it started with.

        Args:
            path: a .json, .jsonc, .json5, .yaml or .yml file, relative to the project directory or to the current
                one, or a config as a mapping; left out, every layer is read again, after a file was changed.

        Raises:
            MateriaError: the file cannot be read; what was loaded before stays.
        """
        return self.library.load(path)

    @property
    def loadouts(self) -> Mapping[str, str]:
        """The name of every loadout and the layer that it comes from."""
        return self.library.loadouts

    @property
    def chosen(self) -> str | None:
        """The loadout that :meth:`cast` runs when it is not told another."""
        return self.library.chosen

    def use(self, name: str) -> LoadoutView:
        """Choose the loadout to cast."""
        return self.library.use(name)

    def loadout(self, name: str | None = None) -> LoadoutView:
        """Show a loadout, the chosen one by default, with its problems if it has some."""
        return self.library.loadout(name)

    def check(self, name: str | None = None) -> Report:
        """Return all problems and, apart from them, hints, of a loadout or of the chosen one.

        Other than ``wb.config.check`` it knows the machine, and hints at programs and scripts that are not there.
        """
        return self.library.check(name)

    def graph(self, name: str | None = None) -> Graph:
        """Resolve a loadout; raises MateriaError when it has problems or a handoff protocol is unknown."""
        return self.library.graph(name)

    def define_loadout(self, name: str, body: str | Mapping[str, JSON]) -> LoadoutView:
        """Define a loadout in this notebook, from a mapping or from JSON or YAML text.

        The body is a loadout (``entry``, ``sockets``, ``loops``); beside these it may hold
        ``materia``, which are then defined in this notebook too. It is chosen, unless it has problems:
        then the one chosen before is still cast, and the cast says so.
        """
        return self.library.define_loadout(name, body)

    def design(self, name: str | None = None, *, new: bool = False, draft: bool | Draft = False) -> Design:
        """Begin to edit a loadout, the chosen one by default, as its file has it now.

        No config file is changed before :meth:`save_design`, and a cast keeps the loadout that it started with. Each
        act is kept as a draft at once, until it is saved; a kernel that dies loses none of them.

        Args:
            name: the loadout.
            new: begin an empty one of that name, which the project's config file is to hold.
            draft: go on with a draft: one of :meth:`drafts`, or True for the newest of that loadout.

        Raises:
            MateriaError: there is no such loadout or draft, or with ``new`` there is one, or a file cannot be read.
        """
        return self.library.design(name, new=new, draft=draft)

    def drafts(self, name: str | None = None) -> tuple[Draft, ...]:
        """Return what was designed and neither saved nor thrown away, and that no design has open, the newest first.

        Args:
            name: of which loadout; of all if left out.
        """
        return self.library.drafts(name)

    def save_design(self, design: Design, to: str | Path | None = None, *, anyway: bool = False) -> str:
        """Save a design where it belongs: in its file, in this notebook, or in the project's config file.

        Args:
            design: what :meth:`design` returned.
            to: ``"notebook"``, or the name of another file for a copy.
            anyway: also with problems; see ``materia_nb.loadout.design.saving.save``.

        Returns:
            Where it is now, in words.

        Raises:
            MateriaError: it has problems, its file was changed meanwhile, or it cannot be written.
        """
        return self.library.save_design(design, to, anyway=anyway)

    def define_materia(self, name: str, definition: Mapping[str, JSON]) -> None:
        """Define a materia in this notebook; of one that other layers have, the fields given here are changed (R33)."""
        self.library.define_materia(name, definition)

    def define_utility(
        self, name: str, script: str, *, parse: str = "json", generator: bool = False, **fields: JSON
    ) -> Path:
        """Write a Python script beside the notebook and define a utility materia that runs it.

        The script reads one JSON object on stdin and writes its result to stdout. Returns its path.
        """
        return self.library.define_utility(name, script, parse=parse, generator=generator, **fields)

    def copy_loadout(self, name: str, new: str | None = None, *, materia: bool = False) -> LoadoutView:
        """Copy a loadout into the project's ``.pi/pi-materia.json``, to be edited there, and choose it.

        Everything else in the file stays, and the file is written whole or not at all. After
        editing it, :meth:`load` without a file reads it again.

        Args:
            name: which one, of whatever layer; bundled ones cannot be changed but in a copy.
            new: what the copy is called; left out, the same name with -Copy.
            materia: copy the materia that it places too, under their own names: the copies then count for every
                loadout of the project, and those that the file defines stay.

        Raises:
            MateriaError: there is no such loadout, there is one of the new name, or the file cannot be written.
        """
        return self.library.copy_loadout(name, new, materia=materia)

    # -- who answers ----------------------------------------------------------------

    @property
    def agents(self) -> AgentTable:
        """Who answers which socket or materia in casts that are not told another."""
        return self._answerers.agents

    @property
    def pins(self) -> Mapping[str, BenchPin]:
        """What casts begin with as pinned, by socket or materia; :meth:`pin` and :meth:`unpin` change it."""
        return MappingProxyType(self._answerers.pins)

    @overload
    def agent(self, name: str) -> Callable[[_Function], _Function]: ...
    @overload
    def agent(self, name: str, agent: object) -> Agent: ...
    def agent(self, name: str, agent: object = None) -> Any:
        """Say who answers a socket or materia; ``*`` means everyone not set otherwise.

        Without ``agent`` it is a decorator for a function, sync or async, that returns text or a dict::

            @wb.agent("Build")
            def build(turn):
                return f"built {turn.item_label}"
        """
        return self._answerers.decorator(name) if agent is None else self._answerers.set(name, agent)

    def _needs_agent(self, name: str) -> None:
        self._answerers.needs_agent(name)

    def pin(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Let what you choose answer a socket or materia: in the current cast, and in every one begun later (R40).

        A pinned utility starts no process. A socket is pinned in its loadout only, a materia in all::

            wb.pin("Detect-VCS", {"state": {"vcs": "git"}})
            wb.pin("Socket-3")  # what it said last in the current cast

        Args:
            name: a socket of the current cast or of the chosen loadout, or a materia.
            to: as for ``cast.pins.add``; ``"recorded:"`` and a cast or a recording's file answers visit by visit.
            visit: the one visit whose output is meant.

        Raises:
            MateriaError: as ``cast.pins.add``.
        """
        return self._answerers.pin(name, to, visit=visit)

    @property
    def breakpoints(self) -> LoadoutBreakpoints:
        """Where runs stop in all casts of a loadout: that of the current cast, else the chosen one.

        A file of the project keeps them for the next kernel. ``cast.breakpoints`` changes those of one cast alone::

            wb.breakpoints.add("Socket-3", after=True)
        """
        return self._casts.breakpoints()

    def unpin(self, name: str) -> None:
        """Take a pin away, in the current cast and for those begun later.

        Raises:
            MateriaError: it is not pinned (``not_pinned``).
        """
        self._answerers.unpin(name)

    def recorded(self, reference: str | Path) -> RecordedAgent:
        """Return an agent that answers as in an earlier cast.

        Args:
            reference: the file of a recording (``cast.export.recording``), or a cast as :meth:`open` takes it.

        Raises:
            MateriaError: there is no such file or cast, or it is no recording (``bad_recording``).
        """
        return self._answerers.recorded(reference)

    # -- casts ----------------------------------------------------------------------

    @property
    def artifact_root(self) -> Path:
        """Where run directories are made: ``artifactDir`` of the config, in the project directory.

        In a browser they are in memory instead.
        """
        return self.library.artifact_root

    @property
    def sync(self) -> bool:
        """Whether every step is forced to the disk, in casts that are begun or resumed from now on."""
        return self._casts.sync

    @sync.setter
    def sync(self, sync: bool) -> None:
        self._casts.sync = sync

    def cast(
        self,
        request: str,
        *,
        loadout: str | Design | None = None,
        agents: Mapping[str, object] | None = None,
        pins: Mapping[str, object] | None = None,
    ) -> Cast:
        """Start a cast of the chosen loadout, and show it with its panels; buttons, step or run go on with it.

        Args:
            request: what is asked for; prompts and utilities read it.
            loadout: another loadout than the chosen one. A design is cast as it is now, saved or not.
            agents: who answers in this cast only, by socket or materia (``*`` for everyone else).
            pins: what is pinned in this cast only, by socket or materia; see :meth:`pin`.

        Raises:
            MateriaError: the loadout has problems; an agent is set for a utility (``not_an_agent``), which
                can be pinned; a name is unknown.
        """
        _check_request(request)
        if isinstance(loadout, str) or loadout is None:
            graph = self.graph(loadout)
        else:
            graph = spoken(build_graph(loadout.whole, loadout.name, self.config.owners))
        said = copy_scripts(graph)
        cast = self._casts.start(self._prepared(graph, agents, pins), request)
        cast.runner.messages += said
        if loadout is None and (refused := self.library.refused) is not None:
            cast.runner.messages.append(f"casts {graph.name}: {refused} was just defined and cannot be cast")
        return cast

    def _prepared(
        self,
        graph: Graph,
        agents: Mapping[str, object] | None = None,
        pins: Mapping[str, object] | None = None,
    ) -> Prepared:
        """Everything that a cast of a loadout is started from, but for the request."""
        table = self._answerers.table(graph, agents)
        copy_scripts(graph)
        return Prepared(self._casts.plan(graph), table, self._answerers.pins_for(graph, pins))

    # -- before a cast --------------------------------------------------------------

    def explore(
        self,
        loadout: str | None = None,
        items: Sequence[int] | int = range(4),
        *,
        states: int = MOST_STATES,
        progress: Progress = False,
    ) -> ExploreView:
        """Look at every way that casts of a loadout can go; nobody is asked and no process runs.

        Args:
            loadout: which loadout; the chosen one by default.
            items: how long the lists are that are tried.
            states: after how many states the search is cut off: then what was not seen is not known, and it says so. No
                clock counts, so the same call finds the same on any machine; an interrupt ends it with what it has found.
            progress: whether a bar is printed to stderr; or a function that is called with how many states were looked
                at and how many are known so far. It is told of the odds of another length too.

        Raises:
            MateriaError: the loadout has problems, or a socket takes no scripted answer (``no_answer``).
        """
        graph = self.graph(loadout)
        return ExploreView(graph, items, states, progress=progress, document=graph.document)

    def rehearse(
        self,
        loadout: str | None = None,
        n: int = 1000,
        satisfied: Chances = 0.5,
        items: int = 3,
        seed: int = 1,
        executor: Executor | None = None,
        *,
        failed: PerSocket = 0.0,
        progress: Progress = False,
    ) -> RehearsalView:
        """Cast a loadout many times in memory with stub agents that answer by chance.

        Args:
            loadout: which loadout; the chosen one by default.
            n: how many casts.
            satisfied: the chance that an output says ``satisfied: true``, or a pair of that and the chance that it
                says nothing: one for all, or by socket or materia (``*`` for all others). An agent that is not asked
                for ``satisfied`` says nothing, unless it is named.
            items: how long every list is.
            seed: what the chances are drawn from; the numbers are the same whoever works on them.
            executor: a ``concurrent.futures.Executor`` to share the work among; this thread if left out. A batch
                whose worker was lost is done here.
            failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or
                materia.
            progress: whether a bar is printed to stderr; or a function that is called with how many casts are done
                and how many there are, and ends the rehearsal if it raises.

        Raises:
            MateriaError: the loadout has problems, or a chance is missing or none (``bad_chance``).
        """
        graph = self.graph(loadout)
        made = rehearse(graph, n, satisfied, items, seed, executor, failed=failed, progress=progress)
        return RehearsalView(**vars(made))

    def prompts(
        self,
        loadout: str | None = None,
        request: str = SAMPLE,
        items: int | Sequence[JSON] = 3,
        contexts: Sequence[JSON] = (),
    ) -> PromptsView:
        """Show every prompt of a scripted cast, with its size, before anything is paid; nobody is asked.

        The answers are the shortest that are satisfied. A prompt of a real cast has the longer answers of those
        before; :meth:`ask_socket` tries one socket on values of your own.

        Args:
            loadout: which loadout; the chosen one by default.
            request: the request.
            items: how long every list is, or the work items themselves.
            contexts: ``castContext`` to be laid side by side, each in place of those of the loadout.

        Raises:
            MateriaError: the loadout has problems, a socket takes no scripted answer (``no_answer``), or one of
                ``contexts`` is none (``usage``).
        """
        graph = self.graph(loadout)
        return PromptsView([Prompts(graph, request, items, one) for one in contexts or (None,)])

    def ask_socket(
        self,
        socket: str,
        loadout: str | None = None,
        *,
        request: str = SAMPLE,
        item: JSON = None,
        state: Mapping[str, JSON] | None = None,
        agent: object = None,
    ) -> Asked:
        """Ask the agent of one socket once, on a request, an item and a state that you make up.

        There is no cast and nothing is written. The answer is checked as in a cast: see ``accepted``, ``value``,
        ``issues``; ``prompt`` is what was asked.

        Args:
            socket: the socket.
            loadout: which loadout; the chosen one by default.
            request: the request.
            item: the work item, where the socket works on a list.
            state: what the state holds.
            agent: who is asked, as for :meth:`agent`; who answers this socket by default. ``"person"`` asks nobody, and
                shows the prompt.

        Raises:
            MateriaError: the loadout has problems, there is no such socket (``unknown_socket``) or it is a utility
                (``not_an_agent``), or it has no item to work on (``no_item``).
            AgentError: the agent cannot answer.
        """
        graph = self.graph(loadout)
        needs_one_of(
            socket, graph.sockets, f"The loadout {graph.name} has no socket {socket!r}.", "unknown_socket"
        )
        materia = graph.sockets[socket].materia.id
        asked = self.agents.for_turn(socket, materia) if agent is None else agent_from(agent)
        given = dict(state or {})
        return asked_alone(
            graph, socket, asked, request=request, item=item, state=given, project=self.project
        )

    @overload
    def gallery(self) -> Gallery: ...
    @overload
    def gallery(self, name: str) -> Opened: ...
    def gallery(self, name: str | None = None) -> Gallery | Opened:
        """List ten patterns and ten classic mistakes; with a name, write that one as a notebook beside this one.

        ``wb.gallery()["critic-loop"]`` is a card with its loadout, answers and tests, and writes nothing.

        Args:
            name: the card to open, as NAME.ipynb in the project directory; all are listed if left out.

        Raises:
            MateriaError: there is no such card (``unknown_card``), or there is such a file (``exists``).
        """
        from materia_nb.cast.gallery import gallery, open_card

        return gallery() if name is None else open_card(gallery()[name], self.project)

    def link(self, *names: str, request: str, from_cast: str | Path | None = None) -> Cast:
        """Start a cast of materia and loadouts one after another, as one loadout that is kept with the cast only.

        Args:
            names: loadouts and materia, in order; ``loadout:NAME`` or ``materia:NAME`` where a name means both.
            request: what is asked for; every part reads it.
            from_cast: an earlier cast, named as for :meth:`open`; what it was asked and found is in the
                state as ``previous``, cut to a stated size.

        Raises:
            MateriaError: a name is unknown or means two things, a part has problems or cannot have another
                behind it, or there is no such cast.
        """
        _check_request(request)
        config = self.config
        made = compose(config.document, names, config.owners)
        graph = spoken(build_graph(made.document, made.name, config.owners))
        data = {} if from_cast is None else {PREVIOUS: self._casts.told_by(from_cast)}
        table = self._answerers.table_of_link(made, graph)
        plan = self._casts.plan(graph, data)
        return self._casts.start(Prepared(plan, table, self._answerers.pins_for(graph)), request)

    def sweep(  # noqa: PLR0913, PLR0917 - the axes of the grid, in the order in which they are thought of
        self,
        loadouts: str | Sequence[str] | None = None,
        requests: str | Sequence[str] | Mapping[str, str] | Any = (),
        agents: object = None,
        repeat: int = 1,
        checks: Mapping[str, Check] | Sequence[Check] | Check | None = None,
        dir: str | Path | None = None,  # noqa: A002 - what it is called in a notebook
        executor: Executor | None = None,
        *,
        pins: Mapping[str, object] | None = None,
        allow: Sequence[str] = (),
        retry: bool = False,
        progress: Progress = False,
    ) -> Sweep:
        """Make real casts of every loadout with every request and all agents, and check what comes of them.

        A cast that is done is not made again: the same sweep goes on where it was cut off, and one with more
        requests, agents or repeats makes only those. A failure is a row::

            wb.sweep(["Plan-Build-Eval", "Full-Auto"], ["a page on rain"], repeat=3,
                     agents={"small": "openai:gpt-5-mini", "large": "openai:gpt-5"},
                     checks={"short": lambda steps: len(steps) < 20,
                             "polite": Judge("openai:gpt-5", "Is the last answer polite?")})

        Args:
            loadouts: which; the chosen one by default.
            requests: what is asked for, or a dict of names to that; or a ``Dataset`` of pydantic-evals (the extra
                ``evals``), whose evaluators are then asked as checks: they get what the last step answered as output.
            agents: who answers: one choice as for :meth:`cast`, or an agent for everyone; a list of these, or a dict of
                labels to them. Whoever is set answers if left out.
            repeat: how often each is cast.
            checks: by name or as a list, functions of the cast, or of what their parameters name (``cast``, ``route``,
                ``state``, ``outputs``, ``steps``, ``request``, ``ends``), which return or assert; or a ``Judge``.
            dir: where rows and casts are kept, relative to the project; ``sweep`` beside its casts if left out.
            executor: a ``concurrent.futures.Executor``; one cast after the other if left out. Other machines must
                see the same directories.
            pins: what is pinned in every cast, as for :meth:`cast`. All casts work in one project: pin what changes it.
            allow: tools of agents that need not ask; a cast that waits for a person ends with ``person``.
            retry: make casts anew that did not come to their end.
            progress: whether a bar is printed to stderr; or a function that is called with how many casts are done
                and how many there are.

        Raises:
            MateriaError: a loadout has problems, a name is unknown, or what is asked for makes no grid (``usage``).
        """
        from materia_nb.cast.sweep.grid import places_of
        from materia_nb.cast.sweep.results import FIELDS
        from materia_nb.cast.sweep.sweeping import sweep
        from materia_nb.cast.sweep.verdicts import checks_of, is_dataset, named_checks, requests_of

        names = (
            [loadouts] if isinstance(loadouts, str) else list(loadouts or [self.library.needs(self.chosen)])
        )
        folder = self.artifact_root / "sweep" if dir is None else self.project / expanded(Path(dir))
        asked = named_checks(checks, (*FIELDS, "passed"))
        if is_dataset(requests):
            evaluated = named_checks(checks_of(requests), (*FIELDS, "passed", *asked))
            requests, asked = requests_of(requests), {**evaluated, **asked}
        look = partial(
            places_of,
            names,
            requests,
            agents,
            repeat,
            tuple(allow),
            known=self._answerers.knows,
            prepare=lambda name, who: self._prepared(self.graph(name), who, pins).frozen(),
            folder=folder,
        )
        return sweep(look, asked, folder, executor, retry=retry, progress=progress)

    @property
    def current(self) -> Cast:
        """The cast that verbs are about: the one started or opened last."""
        return self._casts.current

    @property
    def cast_(self) -> Cast | None:
        """The cast that verbs are about, or None if there is no cast yet."""
        return self._casts.last

    def casts(
        self,
        *,
        name: str | None = None,
        tag: str | Sequence[str] = (),
        verdict: str | None = None,
        loadout: str | None = None,
        status: str | None = None,
    ) -> CastList:
        """List the casts of this project, newest first, without reading them whole.

        The list shows itself as a table; ``.frame()`` gives a data frame.

        Args:
            name: only those that a person called so (``cast.labels.add``).
            tag: only those that have this tag, or all of several.
            verdict: only those that a person judged so: good, bad or unsure.
            loadout: only those of a loadout of this name.
            status: only those that stand so, such as ``failed``.
        """
        return self._casts.listed(name=name, tag=tag, verdict=verdict, loadout=loadout, status=status)

    def label(self, reference: str | Path, step: int | None = None, **said: Any) -> Label:
        """Say something of a cast, or of one of its steps, without making it the current one; see ``cast.labels.add``.

        Raises:
            MateriaError: as ``cast.labels.add`` and :meth:`resume`.
        """
        return self._casts.label(reference, step, **said)

    def delete(self, reference: str | Path | CastEntry, *, yes: bool = False) -> str:
        """Delete a cast of this project and its run directory. This cannot be undone.

        Args:
            reference: as for :meth:`open`.
            yes: it is meant; without it nothing happens but an error that says what would be deleted.

        Returns:
            The id of the cast that was.

        Raises:
            MateriaError: it was not confirmed (``not_confirmed``), the cast is in use, also here (``locked``), or it
                is none of this project (``not_here``).
        """
        return self._casts.delete(reference, yes=yes)

    def ask(
        self, expression: str, casts: Sequence[Cast | Snapshot | CastEntry | str | Path] | None = None
    ) -> FoundView:
        """Look through the outputs of all steps of many casts with JSONPath, or a dotted path.

        Args:
            expression: such as ``$.workItems[*].title``.
            casts: which casts, as objects or references, such as ``wb.casts(tag="rain")``; all of this project if
                left out. Each is read whole.

        Raises:
            MateriaError: it is no JSONPath (``question``). A cast that cannot be read is a row.
        """
        return self._casts.ask(expression, casts)

    def open(self, reference: str | Path = "-1") -> Cast:
        """Open a cast to look at it, also one recorded by the reference engine.

        Args:
            reference: an id, the beginning of one, a name, ``-1`` for the latest, or a directory.
        """
        return self._casts.open(reference)

    def compare(self, a: object, b: object) -> CompareView | StepCompareView | LoadoutCompareView:
        """Compare two casts, two steps, or two loadouts; the value is true if they differ in what was done.

        Of casts ``first`` says in which step they first differ, where each went, and why; of loadouts
        ``differences`` lists what differs. The current cast stays as it is.

        Args:
            a: a cast, or its id, the beginning of one, ``"-1"`` for the latest; a step of a cast; a loadout's
                name, or what :meth:`loadout` or :meth:`graph` returned.
            b: the other, of the same kind.

        Raises:
            MateriaError: one is not found, or they are not of one kind (``compare``).
        """
        return self._casts.compare(a, b)

    def replay(
        self, loadout: object = None, casts: Sequence[Cast | CastEntry | str | Path] | None = None
    ) -> ReplaysView:
        """Send the recorded answers of casts through a loadout: which of them would have gone elsewhere?

        Nothing runs. The value shows itself as a table; ``otherwise`` are the replays that go another way.

        Args:
            loadout: its name, or as ``Cast.replay`` takes it; the chosen one by default.
            casts: the casts, as objects or references; by default all of this project that were cast from a
                loadout of that name.

        Raises:
            MateriaError: there is no such loadout, or it has problems. A cast that cannot be replayed is a row.
        """
        return self._casts.replay(loadout, casts)

    def resume(self, reference: str | Path = "-1") -> Cast:
        """Open a cast to go on with it, after a restart or a crash.

        Args:
            reference: as for :meth:`open`.
        """
        return self._casts.resume(reference)

    def verify(self, reference: str | Path = "-1") -> Verified:
        """Say up to which step a cast is as it was written; also of one that is too damaged to be opened.

        See :meth:`open` for ``reference``, and ``Cast.verify``.
        """
        return self._casts.verify(reference)

    @property
    def quests(self) -> QuestBoard:
        """The board of requests of this project, which are cast one after another."""
        if self._quests is None:
            from materia_nb.cast.quests import QuestBoard  # its schema needs pydantic, slow to import

            self._quests = QuestBoard(self, self._casts.open_here)
        return self._quests

    def take(self, cast: Cast) -> Cast:
        """Make a cast the one that verbs are about; it stops where the casts of its loadout do."""
        return self._casts.take(cast)

    def close(self) -> None:
        """Let go of every cast that is open for writing."""
        self._casts.close()


def _check_request(request: object) -> None:
    if not isinstance(request, str):
        raise MateriaError(
            f"The request must be text, not {type(request).__name__}.", hint="say what is asked for in words"
        )
