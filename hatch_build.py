"""Generate the README of the package metadata when the package is built.

A package index shows the README without the repository, so this hook makes relative links and pictures absolute.
``[tool.hatch.metadata.hooks.custom]`` in pyproject.toml has the addresses of the files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Adds the README to the project metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README with absolute links to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        made = absolute(text, self.config["pages"], self.config["pictures"])
        metadata["readme"] = {"content-type": "text/markdown", "text": made}


def absolute(text: str, pages: str, pictures: str) -> str:
    """Return a Markdown text with absolute instead of relative links and pictures."""
    return RELATIVE.sub(lambda m: f"{m[1]}{m[2]}({pictures if m[1] else pages}{m[3]})", text)
