"""Find and replace odd values in a CSV file: the utilities of data-cleaning.json.

A value is odd if it is blank, has spaces around it, or differs from a more frequent value only in upper and lower case.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path


def odd_values(values: list[str]) -> list[str]:
    """Return the odd values of a column, sorted and without repetition."""
    spellings: dict[str, Counter[str]] = {}
    for value in values:
        spellings.setdefault(value.strip().casefold(), Counter())[value.strip()] += 1
    usual = {most_frequent for counts in spellings.values() for most_frequent, _ in counts.most_common(1)}
    return sorted({value for value in values if not value.strip() or value not in usual})


def find(table: list[dict[str, str]]) -> dict[str, object]:
    """Return a work item for each column that has odd values."""
    odd = {column: odd_values([row[column] for row in table]) for column in (table[0] if table else ())}
    return {"workItems": [{"title": name, "context": json.dumps(values)} for name, values in odd.items() if values]}


def replace(table: list[dict[str, str]], column: str, replacements: dict[str, str]) -> dict[str, object]:
    """Replace values of a column in place; be satisfied if its only odd values are those replaced by an empty text."""
    for row in table:
        row[column] = replacements.get(row[column], row[column])
    left = [value for value in odd_values([row[column] for row in table]) if value]
    context = f"These values are still odd: {json.dumps(left)}" if left else f"{len(replacements)} values replaced."
    return {"satisfied": not left, "context": context}


def main() -> None:
    """Read the input of the utility, change the cleaned copy, and print the result."""
    given = json.load(sys.stdin)
    params = given["params"]
    source, cleaned = (Path(given["cwd"], params[name]) for name in ("file", "cleaned"))
    with (source if params["do"] == "find" else cleaned).open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    if params["do"] == "find":
        result = find(table)
    else:
        result = replace(table, given["item"]["title"], given["state"]["replacements"])
    with cleaned.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else [])
        writer.writeheader()
        writer.writerows(table)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
