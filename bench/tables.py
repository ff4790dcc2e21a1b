"""What a benchmark wrote with --json, as tables in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

BY_SIZE = re.compile(r"(.+)_(\d+)")  # of a measurement's name: what, and for how many tokens or callers


def tables(path: Path) -> str:
    """A file's tables: measurements {name, value, unit}, lines of a report, or one object."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, Mapping):
        values = dict(flat(found))
        lists = {name: rows for name, rows in values.items() if of_rows(rows)}
        single = [(name, shown(value)) for name, value in values.items() if name not in lists]
        return "\n\n".join(
            [table(("what", "value"), single), *(f"{name}:\n\n{rows_of(lists[name])}" for name in lists)]
        )
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise ValueError(f"{path} is no benchmark's file")
    if not all({"name", "value", "unit"} <= set(one) for one in found):
        return reports(found)
    sized = [(one, BY_SIZE.fullmatch(one["name"])) for one in found]
    by_size = {}
    for one, match in sized:
        if match:
            by_size.setdefault((match[1], one["unit"]), {})[int(match[2])] = one["value"]
    groups = {}
    for what, values in by_size.items():
        groups.setdefault(tuple(sorted(values)), []).append((*what, values))
    parts = [
        table(
            ("what", "unit", *map(str, sizes)),
            [(plain(name), unit, *(shown(values[size]) for size in sizes)) for name, unit, values in rows],
        )
        for sizes, rows in groups.items()
    ]
    rest = [(plain(one["name"]), one["unit"], shown(one["value"])) for one, match in sized if not match]
    return "\n\n".join([*parts, *([table(("what", "unit", "value"), rest)] if rest else [])])


def reports(lines: Sequence[Mapping]) -> str:
    """Lines of different kinds: a table for each run of lines with the same fields."""
    parts, rows, fields = [], [], ()
    for line in (*lines, {}):
        if tuple(line) != fields and rows:
            parts.append(table(tuple(map(plain, fields)), rows))
            rows = []
        fields = tuple(line)
        rows += [tuple(map(shown, line.values()))] if line else []
    return "\n\n".join(parts)


def of_rows(value: object) -> bool:
    """Whether it is a list of objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def rows_of(rows: Sequence[Mapping]) -> str:
    """Objects of one kind, each a line; what one lacks is left out."""
    fields = list(dict.fromkeys(name for row in rows for name in row))
    return table([*map(plain, fields)], [[shown(row.get(name, "–")) for name in fields] for row in rows])


def flat(values: Mapping, before: str = "") -> Iterable[tuple[str, object]]:
    """Names of nested values, joined."""
    for name, value in values.items():
        label = f"{before}{plain(name)}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{label}: ")
        else:
            yield label, value


def plain(name: object) -> str:
    return str(name).replace("_", " ")


def shown(value: object) -> str:
    """Three significant digits; whole numbers whole."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(shown, value)) if isinstance(value, (list, tuple)) else str(value)
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
