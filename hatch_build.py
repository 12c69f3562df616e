"""What the package's metadata says that is made when it is built: the README as a package index shows it.

An index shows the README away from the repository, so links and pictures that are relative there are made
absolute here. ``[tool.hatch.metadata.hooks.custom]`` in pyproject.toml says where the files will be.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Gives the project's metadata its README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README with absolute links into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        made = absolute(text, self.config["pages"], self.config["pictures"])
        metadata["readme"] = {"content-type": "text/markdown", "text": made}


def absolute(text: str, pages: str, pictures: str) -> str:
    """Make the relative links and pictures of a Markdown text absolute."""
    return RELATIVE.sub(lambda m: f"{m[1]}{m[2]}({pictures if m[1] else pages}{m[3]})", text)
