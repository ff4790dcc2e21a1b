"""The sentences that the page is made of, read off the sources, and the languages' files kept up with them: make words.

In each file what is translated stays where it is, a sentence that it lacks is entered at its end with an empty text,
which the page shows in English, and what nothing says any more goes.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import tree_sitter_javascript
from tree_sitter import Language, Parser, Query, QueryCursor

from attention_atlas.model.program import program
from attention_atlas.viz import words
from attention_atlas.viz.tours.tour import WORDS as TOURS
from attention_atlas.viz.tours.tour import tours
from tests import ROOT

SAYING = ROOT / "viz/web/core/language.js"  # the functions themselves
SPOKEN = ("say", "Refusal", "Busy", "blocks.paragraph", "blocks.note", "blocks.headings")  # Python's
JAVASCRIPT = Language(tree_sitter_javascript.language())
CALLS = Query(
    JAVASCRIPT,
    """(call_expression function: (identifier) @name arguments: (arguments . (_) @english)
         (#any-of? @name "t" "say"))""",
)


def used() -> list[str]:
    """The English of every sentence of viz/ and model/, in the order of the files that say it. ValueError for one that
    does not stand where it is said: nobody could find it."""
    found: dict[str, None] = {}
    for folder in ("viz", "model"):
        for suffix, said in ((".py", _by_python), (".js", _by_javascript)):
            for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
                found |= {} if path == SAYING else dict.fromkeys(said(path))
    return list(found)


def used_by_tours() -> list[str]:
    return list(dict.fromkeys(text for tour in tours().values() for text in tour.texts()))


def _by_python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SPOKEN:
            for words in node.args:
                yield _string(path, node.lineno, lambda words=words: ast.literal_eval(words))


def _by_javascript(path: Path) -> Iterator[str]:
    tree = Parser(JAVASCRIPT).parse(path.read_bytes())
    for _, call in QueryCursor(CALLS).matches(tree.root_node):
        (english,) = call["english"]
        yield _string(path, english.start_point.row + 1, lambda english=english: json.loads(english.text))


def _string(path: Path, line: int, read: Callable[[], object]) -> str:
    try:
        english = read()
    except ValueError:
        english = None
    if not isinstance(english, str):
        raise ValueError(f"{path.relative_to(ROOT)}:{line}: words that are not a string there and then")
    return english


def update(path: Path, wanted: Collection[str]) -> list[str]:
    """Bring a language's file up to these sentences; which of them it has no text for."""
    there = words.read(path) if path.exists() else {}
    kept = {english: text for english, text in there.items() if english in wanted} | {
        english: "" for english in wanted if english not in there
    }
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    dropped = len(there.keys() - kept.keys())
    lacking = [english for english, text in kept.items() if not text]
    print(f"{path.relative_to(words.FOLDER)}: {len(lacking)} of {len(kept)} sentences to translate, {dropped} dropped")
    return lacking


def main() -> None:
    said, toured = used(), used_by_tours()
    for language, path in words.files().items():
        for english in update(path, said) + update(TOURS / f"{language}.json", toured):
            print(f"  {english}")


if __name__ == "__main__":
    program(main)
