"""Write the test cases of the gallery's cards: ``python scripts/make_gallery.py``.

A pattern gets a case for its cast. A mistake gets a case for the faulty cast, and a case for the same answers in the
fixed loadout. The cases are next to the cards in materia_nb/gallery/, where pytest runs them. Each case contains the
card's loadout, so that a change of the loadout is reported. ``make_docs.py`` writes the cases for the ends of a card,
in a folder named after the card.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from materia_nb import Workbench
from materia_nb.cast.gallery import CASES, Card, gallery

ROOT: Final = Path(__file__).resolve().parent.parent
CARDS: Final = ROOT / "materia_nb" / "gallery"


def main(folder: Path = CARDS) -> int:
    """Write all cases, and return the exit code."""
    for old in folder.glob(f"*/*{CASES}"):
        old.unlink()
    with tempfile.TemporaryDirectory() as cast_folder:
        os.environ["MATERIA_PROFILE_DIR"] = str(Path(cast_folder) / "profile")
        os.environ.pop("MATERIA_CONFIG", None)
        for card in gallery().values():
            case_folder = folder / f"{card.kind}s"
            for name, case in cases_of(card, Path(cast_folder) / card.name, case_folder):
                path = case_folder / f"{card.name}.{name}{CASES}"
                path.write_text(case, encoding="utf-8")
                print(f"wrote {path.relative_to(folder)}")
    return 0


def cases_of(card: Card, cast_folder: Path, case_folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each case of a card."""
    follows = case_folder / f"{card.name}.json"
    if card.kind == "mistake":
        if card.graph is not None:
            yield "wrong", _case(card.document, card, card.answers, cast_folder / "wrong", follows)
        yield "fixed", _case(card.fixed, card, card.answers, cast_folder / "fixed", None)
        return
    yield "cast", _case(card.document, card, card.answers, cast_folder / "cast", follows)


def _case(
    document: Mapping[str, Any], card: Card, answers: Mapping[str, Any], cast_folder: Path, follows: Path | None
) -> str:
    cast_folder.mkdir(parents=True)
    with closing(Workbench(cast_folder, bundled=False)) as wb:
        wb.load(document)
        cast = wb.cast(card.request, agents={"*": dict(answers)})
        cast.run()
        path = cast.export.test(cast_folder / "case", follows=follows)
    case = json.loads(path.read_text(encoding="utf-8"))
    if follows is not None:
        case["follows"] = follows.name
    return json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    sys.exit(main())
