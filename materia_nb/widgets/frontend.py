"""The front end: the bundle of its JavaScript modules, the widgets that load it, and the registry of page messages.

The modules are in ``front/``. ``make front`` bundles them, and the package contains the bundle. One widget per kernel
holds the compressed bundle, and all other widgets refer to it, so a saved notebook contains the bundle only once.

A message from a page may be outdated, malicious, or from another version of the package, so its fields are validated
first.
"""

from __future__ import annotations

import gzip
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from inspect import Parameter, signature
from typing import Annotated, Any, Final, NamedTuple, NotRequired, TypeAlias, TypeVar, get_type_hints

import anywidget
import ipywidgets as ui
from pydantic import Field, StrictBool, StrictInt, TypeAdapter, ValidationError
from traitlets import Dict, List, Unicode
from typing_extensions import TypedDict

from materia_nb.display.blocks import blocks_as_json
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.widgets.graph_elements import Looks

_BUNDLE: Final = files("materia_nb.widgets") / "bundle"
_LOADER: Final = (_BUNDLE / "loader.js").read_text("utf-8")
_code_lock: Final = threading.Lock()


@cache
def bundle() -> str:
    """Return the JavaScript bundle of all views and style sheets. Its first line contains the digest of the sources."""
    return (_BUNDLE / "front.js").read_text("utf-8")


class FrontendCode(ui.Widget):
    """An invisible widget that holds the bundle for all widgets of the kernel, as base64 of gzip data."""

    version = Unicode().tag(sync=True)
    packed = Unicode().tag(sync=True)


_code_widget: FrontendCode | None = None


def reference(widget: ui.Widget) -> str:
    """Return a reference to a widget. The page resolves the reference to the model of the widget."""
    return f"IPY_MODEL_{widget.model_id}"


def _shared_code() -> FrontendCode:
    """Return the widget that holds the bundle. Create the widget on first use or if it has been closed."""
    global _code_widget  # noqa: PLW0603 - one widget per kernel
    with _code_lock:
        if _code_widget is None or _code_widget.comm is None:
            text = bundle()
            packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
            _code_widget = FrontendCode(version=text[3:].partition(" ")[0], packed=packed)
        return _code_widget


class FrontendWidget(anywidget.AnyWidget):
    """Base class of widgets that the JavaScript bundle draws. Each subclass sets ``view`` to its view in the bundle."""

    _esm = _LOADER

    code = Unicode().tag(sync=True)
    view = Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(code=reference(_shared_code()), **traits)

    def answer(self, kind: str, token: str, values: Mapping[str, Any]) -> None:
        """Send the answer to a question from the page; ``token`` identifies the view that asked the question."""
        self.send(blocks_as_json({"kind": kind, "token": token, **values}))


class Front(FrontendWidget):
    """The widget that draws all parts of a panel except the graph. It receives slices of state and sends messages.

    A slice is a JSON object. An update sends only the slices that have changed, in a single message.

    Args:
        slices: the names of the slices in addition to ``surface`` and ``design``.
        parts: the name and position of each part of the panel.
    """

    view = Unicode("shell").tag(sync=True)

    surface = Dict().tag(sync=True)
    design = Dict().tag(sync=True)
    parts: Any = List().tag(sync=True)

    def __init__(self, slices: Iterable[str], parts: list[dict[str, str]]) -> None:
        # Added before the widget is announced, so that the page receives all traits at once.
        self.add_traits(**{name: Dict().tag(sync=True) for name in slices})
        super().__init__(parts=parts)

    def put(self, slices: Mapping[str, Mapping[str, Any]]) -> None:
        """Send the slices that have changed to the page."""
        with self.hold_sync():
            for name, value in slices.items():
                if getattr(self, name) != value:
                    setattr(self, name, dict(value))


FONT: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif'
"""Font family that the layout measures. Cytoscape accepts the list only with exactly these quotation marks."""


class CanvasFront(FrontendWidget):
    """The widget that draws on the Cytoscape canvas, and sends the user's actions on the canvas to the kernel.

    ``scene`` contains the data that stays the same while a graph is displayed, ``look`` contains the current appearance
    of its elements, and ``flags`` contains all other data. ``drawing`` is the :func:`reference` to the Cytoscape
    widget.
    """

    view = Unicode("canvas").tag(sync=True)
    drawing = Unicode().tag(sync=True)

    fixed = Dict().tag(sync=True)
    scene = Dict().tag(sync=True)
    look = Dict().tag(sync=True)
    flags = Dict().tag(sync=True)

    def change(self, changed: Looks) -> None:
        """Send the new appearance of some elements. A page that connects later receives all elements."""
        self.look.update(changed)  # in place, so that the other elements are not sent again
        self.send({"kind": "look", "changed": changed})


def bad_message(problem: str, hint: str = "reload the page") -> MateriaError:
    """Return the error for a message from the page that cannot be handled."""
    return MateriaError(problem, hint=hint, kind="bad_message")


def outdated(problem: str, hint: str) -> MateriaError:
    """Return the error for a message whose subject has changed since the page showed it (R70)."""
    return MateriaError(f"Nothing was done: {problem}.", hint=hint, kind="outdated")


LongText: TypeAlias = Annotated[str, Field(max_length=2_000_000)]
"""A long string that a person has typed or that the page sends back."""
ShortText: TypeAlias = Annotated[str, Field(max_length=2_000)]
"""An id, a path, or a line of text."""
WholeNumber: TypeAlias = Annotated[StrictInt, Field(ge=0, lt=2**53)]
Token: TypeAlias = Annotated[str, Field(max_length=100)]
"""Token of a question, or identity of the content that was visible when the user acted."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ItemRow(NamedTuple):
    """A row of a work item table: its title and context, the index of its original item, and True to repeat the item.

    A title or context is None if the page has only the beginning of the text and the user has not changed it.
    """

    title: LongText | None
    context: LongText | None
    origin: WholeNumber | None = None
    repeat: StrictBool | None = None


ItemRows: TypeAlias = Annotated[list[ItemRow], Field(max_length=10_000)]


class PageMessage:
    """A message that a receiver can handle.

    Args:
        function: the function that is called with the receiver and the fields of the message.
        guards: functions that are called first, each with the fields in its signature; a guard refuses the message by
            raising an exception.
        is_question: True if the result is sent to the page that asked, with the ``token`` of the message.
    """

    def __init__(
        self, function: Callable[..., Any], guards: Sequence[Callable[..., None]] = (), *, is_question: bool = False
    ) -> None:
        self.kind = function.__name__.strip("_")
        self.about = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        self.guards, self.function, self.is_question = guards, function, is_question

    @cached_property
    def fields(self) -> TypeAdapter[dict[str, Any]]:
        """Validator for the fields, derived from the signatures of the function and its guards."""
        types: dict[str, Any] = {"token": Token} if self.is_question else {}
        for function in (*self.guards, self.function):
            hints = get_type_hints(function, include_extras=True)
            for name, parameter in parameters_of(function).items():
                is_required = parameter.default is Parameter.empty
                types[name] = hints[parameter.name] if is_required else NotRequired[hints[parameter.name]]
        return TypeAdapter(TypedDict(self.kind, types))  # type: ignore[operator]

    def validate(self, content: Mapping[str, Any], receiver: object) -> dict[str, Any]:
        """Return the validated fields of a message.

        Args:
            content: the message. Unknown fields are ignored, and so is null in an optional field.
            receiver: the receiver of the message, which validators use, for example to look up an element of the
                canvas.

        Raises:
            MateriaError: a field is missing or has the wrong type (``bad_message``).
        """
        try:
            return self.fields.validate_python(
                {name: value for name, value in content.items() if value is not None or self._is_required(name)},
                context=receiver,
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(shorten(str(key), 40) for key in first["loc"])
            problem = f"The page sent an invalid message {self.kind!r}: {field}: {first['msg']}."
            raise bad_message(problem) from None

    def _is_required(self, name: str) -> bool:
        functions = (*self.guards, self.function)
        parameters = (parameters_of(function).get(name) for function in functions)
        return any(parameter and parameter.default is Parameter.empty for parameter in parameters)

    def run(self, receiver: Any, content: Mapping[str, Any]) -> Any:
        """Validate a message, and call its guards and its function; see :meth:`MessageRegistry.handle`."""
        fields = self.validate(content, receiver)
        for guard in self.guards:
            _call(guard, receiver, fields)
        result = _call(self.function, receiver, fields)
        if self.is_question:
            receiver.front.answer(self.kind, fields["token"], result)
        return result


def _call(function: Callable[..., Any], receiver: object, fields: Mapping[str, Any]) -> Any:
    parameters = parameters_of(function).items()
    return function(receiver, **{parameter.name: fields[name] for name, parameter in parameters if name in fields})


@cache
def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a function except the receiver, by name without a trailing underscore."""
    _, *parameters = signature(function).parameters.values()
    return {parameter.name.strip("_"): parameter for parameter in parameters}


class MessageRegistry:
    """The messages that a receiver can handle, by kind.

    Args:
        name: the name of the TypeScript interface for the messages.
        about: the description of the interface.
    """

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self.messages: dict[str, PageMessage] = {}

    def message(self, function: _Function) -> _Function:
        """Register a function as a message. Its first parameter is the receiver."""
        self._add(PageMessage(function))
        return function

    def question(self, function: _Function) -> _Function:
        """Register a function as a question. Its result, a dict, is sent to the page that asked."""
        self._add(PageMessage(function, is_question=True))
        return function

    def guarded(self, *guards: Callable[..., None]) -> Callable[[_Function], _Function]:
        """Return a decorator that registers messages with guards; see :class:`PageMessage`."""

        def add(function: _Function) -> _Function:
            self._add(PageMessage(function, guards))
            return function

        return add

    def _add(self, message: PageMessage) -> None:
        self.messages[message.kind] = message

    def handle(self, receiver: object, content: object) -> Any:
        """Handle a message from the page.

        Args:
            receiver: the first argument of the message's function.
            content: the message, which need not be valid.

        Returns:
            The answer to a question, which has also been sent to the page; otherwise None.

        Raises:
            MateriaError: there is no such message, a field is invalid (``bad_message``), or the message is refused.
        """
        values = content if isinstance(content, Mapping) else {}
        kind = values.get("kind")
        message = self.messages.get(kind) if isinstance(kind, str) else None
        if message is None:
            problem = f"The panel does not support the message {shorten(str(kind), 60)!r}."
            raise bad_message(problem, "reload the page; it may be from another version of the package")
        return message.run(receiver, values)
