"""How the site's reference reads docstrings: an extension of griffe, which zensical.toml names.

Examples of doctest stand between paragraphs in this project. Markdown would read >>> as a quotation, so they become
blocks of Python.
"""

from __future__ import annotations

import re

import griffe

EXAMPLE = re.compile(r"(?m)^>>> (?:.*\n?)(?:.+\n?)*")  # up to an empty line


class Doctests(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if text := obj.docstring:
            text.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text.value)
