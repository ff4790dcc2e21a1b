"""How the site's reference reads docstrings: an extension of griffe, which zensical.toml names.

Examples of doctest stand between paragraphs in this project. Markdown would read >>> as a quotation, so they become
blocks of Python. Names in a column, each with what it means beside it, become a table.
"""

from __future__ import annotations

import re

import griffe

EXAMPLE = r"^>>> .*\n?(?:.+\n?)*"  # up to an empty line
COLUMN = r"(?:^[\w*`\"].{0,40}? {2,}\S.*\n?(?:^ {4,}\S.*\n?)*){2,}"  # of two names or more; indented lines go on
BLOCK = re.compile(f"(?m)(?P<example>{EXAMPLE})|(?P<column>{COLUMN})")


class Blocks(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if text := obj.docstring:
            text.value = BLOCK.sub(_in_markdown, text.value)


def _in_markdown(found: re.Match) -> str:
    if example := found["example"]:
        return f"```pycon\n{example.rstrip()}\n```\n"
    rows = ["| | |", "|---|---|"]
    for entry in re.split(r"\n(?! )", found["column"].strip()):
        name, about = re.split(r" {2,}", entry.replace("|", "&#124;"), maxsplit=1)
        rows.append(f"| `{name}` | {' '.join(about.split())} |")
    return "\n".join(["", *rows, "", ""])
