"""Print the tables of the benchmarks."""

from __future__ import annotations


def show(headers: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    widths = [max(len(row[n]) for row in [headers, *rows]) for n in range(len(headers))]
    for row in [headers, *rows]:
        print(
            "  "
            + "  ".join(
                cell.rjust(width) if n else cell.ljust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )
