"""Blocks as one static HTML page: no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from materia_nb.display.blocks import Block, html_of
from materia_nb.display.escape import esc

_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2630;--bg:#fff;--soft:#5c6672;--rule:#d5dae0}
@media (prefers-color-scheme:dark){:root{--fg:#e4e8ed;--bg:#14181d;--soft:#9aa5b1;--rule:#333b45}}
body{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--fg);background:var(--bg);
max-width:70rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
--jp-ui-font-color1:var(--fg);--jp-ui-font-color2:var(--soft);--jp-border-color2:var(--rule)}
h1{font-size:1.5rem}summary{cursor:pointer}a{color:#3b82c4}svg{max-width:100%;height:auto}
body>details{border-left:3px solid var(--rule);padding-left:.8rem;margin:.6rem 0}
"""
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page_of(title: str, blocks: Iterable[Block]) -> str:
    """Write blocks as a page of their own."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{esc(title)}</h1>{html_of(blocks)}</body></html>\n"
    )
