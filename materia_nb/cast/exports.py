"""A cast as something that others read: a page, a recording, a test, a trace: ``cast.export``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from materia_nb.cast.runner import Runner
from materia_nb.store.files import disk, replace_file

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


class Exports:
    """Writes one cast for others, or sends it to them."""

    def __init__(self, runner: Runner) -> None:
        """Stand for the cast that ``runner`` runs."""
        self._runner = runner

    def page(self, path: str | Path) -> Path:
        """Write the cast as one HTML page that needs nothing else, and return its path."""
        from materia_nb.cast.views.step_views import cast_page_html

        target = Path(path)
        with disk(target, "write the page"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, cast_page_html(self._runner.snapshot()).encode("utf-8", "replace"))
        return target

    def recording(self, path: str | Path) -> Path:
        """Write what was answered as a file that another cast can be answered from, and return its path."""
        from materia_nb.cast.recordings import recording_text

        target = Path(path)
        with disk(target, "write the recording"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, recording_text(self._runner.snapshot()).encode("utf-8", "replace"))
        return target

    def test(self, path: str | Path, *, follows: str | Path | None = None) -> Path:
        """Write the cast as a case that ``pytest`` runs, and return its path: ``NAME.materia-case.json``.

        It sends the recorded answers through the loadout and asks for the same route, end and state. Nothing
        runs. The ending is put behind a name that lacks it.

        Args:
            path: the file.
            follows: the config file whose loadout of that name is tested, as it is then; the loadout of this
                cast, kept in the case, if left out.

        Raises:
            MateriaError: its answers alone do not lead where it went (``no_test``), or it is shown as recorded.
        """
        from materia_nb.cast.cases import case_of, relative_to, write_case
        from materia_nb.loadout import read_config

        self._runner.snapshot().needs_castable()
        target = Path(path).absolute()
        document = read_config(self._runner.files.path / "config.resolved.json")
        case = case_of(
            self._runner.rules, self._runner.session, document, relative_to(target.parent, follows)
        )
        return write_case(target, case)

    def otel(
        self,
        exporter: SpanExporter | None = None,
        *,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: bool = False,
    ) -> int:
        """Send the journal as OpenTelemetry spans, so that the cast can be looked at in a tracing tool.

        The whole cast is one trace, the same one each time. Returns how many spans were sent::

            cast.export.otel(endpoint="http://localhost:4318/v1/traces")

        Args:
            exporter: any exporter of OpenTelemetry's SDK; OTLP over HTTP if left out.
            endpoint: where to; ``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like count if left out.
            headers: sent along, such as a key of the collector.
            content: whether prompts, answers, and what tools were given and gave are told too. Keys never are.

        Raises:
            MateriaError: OpenTelemetry is not installed (``no_otel``), or nobody took the spans (``not_exported``).
        """
        from materia_nb.cast.otel import export

        if self._runner.journal is not None:
            with self._runner.lock():
                self._runner.begin()  # what waits to be written is written
        return export(self._runner.snapshot(), exporter, endpoint=endpoint, headers=headers, content=content)
