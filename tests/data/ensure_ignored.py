#!/usr/bin/env python3
"""A utility with JSON on stdin and stdout that adds each missing ignore pattern to a file of the project."""

import json
import sys
from pathlib import Path

document = json.load(sys.stdin)
params = document.get("params", {})
target = Path(document["cwd"]) / params.get("file", ".gitignore")

text = target.read_text() if target.exists() else ""
known = set(text.splitlines())
added = [pattern for pattern in params.get("patterns", []) if pattern not in known]

if added:
    gap = "\n" if text and not text.endswith("\n") else ""
    with target.open("a", encoding="utf-8") as file:
        file.write(gap + "".join(f"{pattern}\n" for pattern in added))

report = {"ok": True, "file": str(target), "changed": bool(added), "added": added}
print(json.dumps({"state": {"artifactIgnore": report}}))
