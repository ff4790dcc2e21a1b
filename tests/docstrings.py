"""A griffe extension that prepares docstrings for the site's reference; zensical.toml names it.

Doctest examples become blocks of Python, because Markdown reads >>> as a quotation. Two or more lines of the form
`name  meaning` become a table.
"""

from __future__ import annotations

import re

import griffe

EXAMPLE = r"^>>> .*\n?(?:.+\n?)*"  # until an empty line
COLUMN = r"(?:^[\w*`\"].{0,40}? {2,}\S.*\n?(?:^ {4,}\S.*\n?)*){2,}"  # indented lines continue an entry
BLOCK = re.compile(f"(?m)(?P<example>{EXAMPLE})|(?P<column>{COLUMN})")


class Blocks(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if text := obj.docstring:
            text.value = BLOCK.sub(_to_markdown, text.value)


def _to_markdown(match: re.Match) -> str:
    if example := match["example"]:
        return f"```pycon\n{example.rstrip()}\n```\n"
    rows = ["| | |", "|---|---|"]
    for entry in re.split(r"\n(?! )", match["column"].strip()):
        name, about = re.split(r" {2,}", entry.replace("|", "&#124;"), maxsplit=1)
        rows.append(f"| `{name}` | {' '.join(about.split())} |")
    return "\n".join(["", *rows, "", ""])
