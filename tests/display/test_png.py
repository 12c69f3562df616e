"""A picture as PNG shows what it showed, in fewer bytes."""

from __future__ import annotations

import struct
import zlib

import pytest

from materia_nb.display.png import with_palette

SIGN = b"\x89PNG\r\n\x1a\n"
FILTERS = range(5)


def png(width: int, height: int, rows: bytes, kind: int = 6) -> bytes:
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
    )
    return SIGN + b"".join(struct.pack(">I", len(data)) + name + data + bytes(4) for name, data in parts)


def part(picture: bytes, name: bytes) -> bytes:
    at = picture.index(name)
    return picture[at + 4 : at + 4 + struct.unpack_from(">I", picture, at - 4)[0]]


def pixels(picture: bytes, width: int) -> list[list[tuple[int, ...]]]:
    colours, lines = part(picture, b"PLTE"), zlib.decompress(part(picture, b"IDAT"))
    rows = [lines[at + 1 : at + 1 + width] for at in range(0, len(lines), width + 1)]
    return [[tuple(colours[3 * place : 3 * place + 3]) for place in row] for row in rows]


def filtered(rows: list[list[tuple[int, int, int]]], filter_: int) -> bytes:
    """Write rows as the format says of a filter."""
    above = [0] * 4 * len(rows[0])
    made = b""
    for row in rows:
        flat = [value for pixel in row for value in (*pixel, 255)]
        made += bytes([filter_])
        for place, value in enumerate(flat):
            a, c = (flat[place - 4], above[place - 4]) if place > 3 else (0, 0)
            b = above[place]
            nearest = min((a, b, c), key=lambda one: abs(a + b - c - one))
            made += bytes([(value - (0, a, b, (a + b) // 2, nearest)[filter_]) % 256])
        above = flat
    return made


@pytest.mark.parametrize("filter_", FILTERS)
def test_a_picture_keeps_its_colours_whatever_filter_it_was_written_with(filter_: int):
    rows = [[(x * 33 % 256, y * 66 % 256, 255 * (x == y)) for x in range(8)] for y in range(6)]
    rows = [
        [tuple(round(round(one * 31 / 255) * 255 / 31) for one in pixel) for pixel in row] for row in rows
    ]
    assert pixels(with_palette(png(8, 6, filtered(rows, filter_))), 8) == rows


def test_more_colours_than_a_palette_holds_are_rounded_to_fewer_shades():
    rows = [[(255 * x // 39, 255 * y // 39, 0) for x in range(40)] for y in range(40)]
    found = pixels(with_palette(png(40, 40, filtered(rows, 0))), 40)
    assert found[0][0] == (0, 0, 0)
    assert found[39][39] == (255, 255, 0)
    assert all(
        abs(a - b) <= 9
        for old, new in zip(rows, found, strict=True)
        for one, other in zip(old, new, strict=True)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(
    "picture",
    [
        png(2, 2, bytes(2 * 7), kind=2),
        png(1001, 1000, b""),
        png(80, 80, filtered([[(x * 3, y * 3, (x * y) % 256) for x in range(80)] for y in range(80)], 0)),
    ],
    ids=["without alpha", "large", "a photograph"],
)
def test_what_no_palette_is_for_stays_as_it_is(picture: bytes):
    assert with_palette(picture) == picture
