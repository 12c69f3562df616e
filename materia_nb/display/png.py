"""PNG with a palette: a drawing has few colours, and says them in a third of the bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

_SIGN: Final = b"\x89PNG\r\n\x1a\n"
_RGBA: Final = (8, 6, 0, 0, 0)
"""What a header says after the size: eight bits a channel, with alpha, and nothing special."""
_MOST_PIXELS: Final = 1_000_000
_SHADES: Final = (32, 16)
"""How many shades of each channel are told apart: as many as leave no more colours than a palette holds."""


def with_palette(png: bytes) -> bytes:
    """Return an opaque RGBA picture with a palette, its shades rounded; one that is too large or of another kind as it is."""
    parts = dict.fromkeys((b"IHDR", b"IDAT"), b"")
    at = len(_SIGN)
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        if kind in parts:
            parts[kind] += png[at + 8 : at + 8 + size]
        at += size + 12
    width, height, *how = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    if tuple(how) != _RGBA or width * height > _MOST_PIXELS:
        return png
    rows = list(_rows(zlib.decompress(parts[b"IDAT"]), width * 4))
    for shades in _SHADES:
        step = 255 / (shades - 1)
        rounded = bytes(round(round(one / step) * step) for one in range(256))
        pixels = memoryview(b"".join(row.translate(rounded) for row in rows)).cast("I")
        colours = sorted(set(pixels))
        if len(colours) <= 256:
            break
    else:
        return png
    place = {colour: number for number, colour in enumerate(colours)}
    lines = b"".join(
        b"\0" + bytes(map(place.__getitem__, pixels[at : at + width])) for at in range(0, len(pixels), width)
    )
    head = _SIGN + _part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
    palette = _part(b"PLTE", b"".join(struct.pack("=I", colour)[:3] for colour in colours))
    return head + palette + _part(b"IDAT", zlib.compress(lines, 9)) + _part(b"IEND", b"")


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _rows(raw: bytes, size: int) -> Iterator[bytes]:
    """Take the filters of PNG off its rows."""
    low = int.from_bytes(b"\x7f" * size)
    before = bytes(size)
    for at in range(0, len(raw), size + 1):
        row = bytearray(raw[at + 1 : at + 1 + size])
        match raw[at]:
            case 1:  # less what stands left of it
                for channel in range(4):
                    row[channel::4] = bytes(one & 255 for one in accumulate(row[channel::4]))
            case 2:  # less what stands above, all bytes at once
                a, b = int.from_bytes(row), int.from_bytes(before)
                row = bytearray((((a & low) + (b & low)) ^ ((a ^ b) & ~low)).to_bytes(size))
            case 3:  # less the mean of both
                for place, above in enumerate(before):
                    row[place] = (row[place] + ((row[place - 4] if place > 3 else 0) + above) // 2) & 255
            case 4:  # less that of left, above and between them which is nearest to left + above - between
                for channel in range(4):
                    row[channel::4] = _nearest(row[channel::4], before[channel::4])
        before = bytes(row)
        yield before


def _nearest(row: bytearray, before: bytes) -> bytes:
    left = between = 0
    made = bytearray()
    for more, above in zip(row, before, strict=True):
        if left == between:
            best = above
        elif above == between:
            best = left
        else:
            a, b, c = abs(above - between), abs(left - between), abs(left + above - 2 * between)
            best = left if a <= b and a <= c else above if b <= c else between
        left, between = (best + more) & 255, above
        made.append(left)
    return bytes(made)
