"""The redaction of log records and warnings of libraries: every record becomes one line without keys."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Mapping
from typing import Any, Final

from materia_nb.errors import named_error, outgoing_line, scrubbed_part

LIBRARIES: Final = frozenset(
    {
        *("anthropic", "boto3", "botocore", "cohere", "genai_prices", "google", "google_genai", "groq", "httpcore"),
        *("httpcore2", "httpx", "httpx2", "huggingface_hub", "mcp", "mistralai", "openai", "pydantic_ai", "urllib3"),
        "xai_sdk",
    }
)  # fmt: skip
"""Names of the top-level loggers whose records, including those of child loggers, are redacted."""

_MAX_LINE_CHARS: Final = 600
_ELLIPSIS: Final = re.compile(r"(\.{3}|…)")


def redact_library_logs() -> None:
    """Redact all later records and warnings of :data:`LIBRARIES`; a second call has no effect."""
    make = logging.getLogRecordFactory()
    if not hasattr(make, "redacts"):

        def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            if record.name.partition(".")[0] in LIBRARIES:
                _redact(record)
            return record

        make_redacted.redacts = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(make_redacted)
    show = warnings.showwarning
    if not hasattr(show, "redacts"):

        def show_redacted(
            message: Warning | str, category: type[Warning], filename: str, *args: Any, **kwargs: Any
        ) -> None:
            modules = category.__module__, filename.rpartition("site-packages/")[2].replace("/", ".")
            library = next((name for module in modules if (name := module.partition(".")[0]) in LIBRARIES), None)
            if library is None:
                show(message, category, filename, *args, **kwargs)
            else:
                logging.getLogger(library).warning("%s: %s", category.__name__, message)

        show_redacted.redacts = True  # type: ignore[attr-defined]
        warnings.showwarning = show_redacted


def _redact(record: logging.LogRecord) -> None:
    """Reduce a record to one line with its message and exception, without keys and without a traceback."""
    try:
        text = record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments do not fit the message
        text = str(record.msg)
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        text = f"{text}: {named_error(record.exc_info[1])}"
    record.msg, record.args = one_line_without_keys(text), ()
    record.exc_info = record.exc_text = record.stack_info = None


def one_line_without_keys(text: str) -> str:
    """Return the text on one line without keys, including keys that a library shortened with an ellipsis."""
    parts = _ELLIPSIS.split(text)
    last = len(parts) - 1
    parts = [scrubbed_part(part, start=number > 0, end=number < last) for number, part in enumerate(parts)]
    line = outgoing_line(" ".join("".join(parts).split()))
    return line if len(line) <= _MAX_LINE_CHARS else line[:_MAX_LINE_CHARS] + "…"


def log_unhandled(_: object, context: Mapping[str, Any]) -> None:
    """Log an unhandled error of this package's event loops on one line; use as an asyncio exception handler."""
    error = context.get("exception")
    text = f"{context['message']}: {named_error(error)}" if error is not None else str(context["message"])
    logging.getLogger("materia_nb.agents").error("%s", one_line_without_keys(text))
