"""Test that the cheat sheet fits one page and has the same text as SVG and as PDF."""

from __future__ import annotations

import html
import re

import pytest

import make_cheatsheet as cheat
import make_docs

SOURCE = (make_docs.ROOT / cheat.SOURCE).read_text(encoding="utf-8")


def words_of_svg(text):
    return html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", text)))


def test_both_cheat_sheets_contain_every_entry():
    svg, pdf = cheat.sheet(SOURCE)
    assert pdf.isascii()
    assert "<script" not in svg
    printed = re.sub(r"\\([\\()])", r"\1", "".join(re.findall(r"\((.*?)(?<!\\)\) Tj", pdf)))
    drawn = words_of_svg(svg)
    for section in cheat.sections(SOURCE):
        assert section.items
        for _, text in section.items:
            plain_text = re.sub(r"\s", "", re.sub(r"`|\[(R\d+)\]\([^)]*\)", r"\1", text))
            assert plain_text in re.sub(r"\s", "", drawn)
            assert plain_text in re.sub(r"\s", "", printed)


def test_pdf_offsets_are_correct():
    _, pdf = cheat.sheet(SOURCE)
    table = int(re.search(r"startxref\n(\d+)\n", pdf)[1])
    assert pdf[table:].startswith("xref\n")
    for number, place in enumerate(re.findall(r"^(\d{10}) 00000 n ", pdf, re.MULTILINE), start=1):
        assert pdf[int(place) :].startswith(f"{number} 0 obj\n")
    stream = re.search(r"/Length (\d+) >>\nstream\n(.*?)\nendstream", pdf, re.DOTALL)
    assert int(stream[1]) == len(stream[2])


def test_cheat_sheet_fits_its_page_and_overflow_is_an_error():
    found = cheat.sections(SOURCE)
    for text_run in cheat.layout(found):
        if isinstance(text_run, cheat.TextRun):
            assert 0 < text_run.x < text_run.x + cheat.width(text_run.text, text_run.font, text_run.size) < cheat.WIDTH
            assert 0 < text_run.y < cheat.HEIGHT
    long = [section._replace(items=section.items * 3) for section in found]
    with pytest.raises(ValueError, match="too long"):
        list(cheat.layout(long))
