"""A stand-in for jj that accepts exactly the commands that the shipped utilities use.

It stores its repository in .jj/store.json: commits with descriptions and files, the working commit, and bookmarks. It
appends every call to the file named by JJ_LOG. A call that begins with the words in JJ_FAIL fails before it has any
effect.
"""

import hashlib
import json
import os
import sys
from pathlib import Path


def main(words):
    with Path(os.environ["JJ_LOG"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(words) + "\n")
    fail = os.environ.get("JJ_FAIL", "").split()
    if fail and words[: len(fail)] == fail:
        refuse(1, "the disk is on fire")
    match words:
        case ["git", "init", "--no-colocate"] if "JJ_OLD" not in os.environ:
            init()
        case ["git", "init"] if "JJ_OLD" in os.environ:
            init()
        case ["root"]:
            print(repository())
        case ["diff", "--summary"]:
            diff()
        case ["describe", "-m", title] if not title.startswith("-"):
            change(description=title)
        case ["describe", title] if title.startswith("--message="):
            change(description=title.removeprefix("--message="))
        case ["bookmark", "set", name, "-r", "@"] if not name.startswith("-"):
            change(bookmark=name)
        case ["new"]:
            change(new=True)
        case _:
            refuse(2, f"unexpected argument in {words}")


def init():
    place = Path.cwd() / ".jj"
    if place.exists():
        refuse(1, "The target repo already exists")
    if (Path.cwd() / ".git").exists():
        refuse(1, "Did not create a jj repo because there is an existing Git repo in this directory.")
    place.mkdir()
    empty = {"commits": [], "parent_files": {}, "description": "", "bookmarks": {}}
    (place / "store.json").write_text(json.dumps(empty))
    print('Initialized repo in "."', file=sys.stderr)


def repository():
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / ".jj").is_dir():
            return folder
    return refuse(1, 'There is no jj repo in "."')


def diff():
    root = repository()
    now, before = snapshot(root), json.loads((root / ".jj" / "store.json").read_text())["parent_files"]
    for name in sorted(now.keys() | before.keys()):
        if now.get(name) != before.get(name):
            print("D" if name not in now else "M" if name in before else "A", name)


def change(description=None, bookmark=None, *, new=False):
    root = repository()
    store = root / ".jj" / "store.json"
    repo = json.loads(store.read_text())
    if description is not None:
        repo["description"] = description
    if bookmark is not None:
        repo["bookmarks"][bookmark] = len(repo["commits"])
    if new:
        files = snapshot(root)
        repo["commits"].append({"description": repo["description"], "files": files})
        repo |= {"parent_files": files, "description": ""}
    store.write_text(json.dumps(repo))


def snapshot(root):
    found = {}
    ignore = root / ".gitignore"
    ignored = [line.rstrip("/") for line in ignore.read_text().split()] if ignore.exists() else []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        hidden = path.parts[len(root.parts)] in {".jj", ".git"} or any(name.startswith(one) for one in ignored)
        if path.is_file() and not hidden:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def refuse(code, why):
    print(f"Error: {why}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
