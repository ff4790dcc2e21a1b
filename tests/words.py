"""Keep the translations of the page up to date with its sentences: make words.

The sentences are extracted from the sources and the tours into translations/LANGUAGE.po and translations/tours/, where
translators edit them; an entry whose English changed a little keeps its translation and is marked as fuzzy. The files
that the page loads, viz/web/words/, are written from those.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import tree_sitter_javascript
from babel import Locale
from babel.messages import Catalog, Message
from babel.messages.pofile import read_po, write_po
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from attention_atlas.model.program import run_program
from attention_atlas.viz import words
from attention_atlas.viz.tours.tour import WORDS as TOURS
from attention_atlas.viz.tours.tour import tours
from tests import ROOT

TRANSLATIONS = ROOT / "translations"
GLOSSARY = ROOT / "viz/web/glossary"  # its sentences are loaded with it
DEFINITIONS = {ROOT / "viz/web/core/language.js", ROOT / "model/trace/language.py"}
PLURAL = "say_plural"
PYTHON = ("say", PLURAL, "Refusal", "Busy", "blocks.paragraph", "blocks.note", "blocks.headings")
# Function -> those of its arguments that are sentences.
SOME = {"blocks.fact": slice(0, 3, 2), "Panel": slice(1, 3), "blocks.work": slice(2, 3)}
JAVASCRIPT = Language(tree_sitter_javascript.language())
CALLS = Query(  # Babel's own extractor misses calls inside the arguments of others
    JAVASCRIPT,
    """(call_expression function: (identifier) @name arguments: (arguments) @arguments
         (#any-of? @name "t" "say" "sayPlural"))""",
)
FIELD = re.compile(r"\{(\w+)\}")

Id = str | tuple[str, str]  # a sentence, or its singular and plural


def page_sentences() -> list[Id]:
    """Return the sentences of viz/ and model/ in the order of the files. Raises ValueError for a sentence that is not a
    string where it is said, since it could not be extracted."""
    sentences: dict[Id, None] = {}
    for folder in ("viz", "model"):
        for suffix, extract in ((".py", from_python), (".js", from_javascript)):
            for path in sorted({*(ROOT / folder).rglob(f"*{suffix}")} - DEFINITIONS):
                if GLOSSARY not in path.parents:
                    sentences |= dict.fromkeys(extract(path))
    return list(sentences)


def glossary_sentences() -> list[Id]:
    """Return the sentences of the glossary's entries and page."""
    return list(dict.fromkeys(text for path in sorted(GLOSSARY.glob("*.js")) for text in from_javascript(path)))


def tour_sentences() -> list[Id]:
    """Return the sentences of the tours."""
    return list(dict.fromkeys(text for tour in tours().values() for text in tour.texts()))


def from_python(path: Path) -> Iterator[Id]:
    """Yield the sentences of a Python module."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and (function := ast.unparse(node.func)) in (*PYTHON, *SOME):
            arguments = node.args[SOME.get(function, slice(None))]
            texts = [_text(path, node.lineno, ast.literal_eval, argument) for argument in arguments]
            yield from [tuple(texts)] if function == PLURAL else texts


def from_javascript(path: Path) -> Iterator[Id]:
    """Yield the sentences of a JavaScript module."""
    tree = Parser(JAVASCRIPT).parse(path.read_bytes())
    for _, call in QueryCursor(CALLS).matches(tree.root_node):
        (name,), (arguments,) = call["name"], call["arguments"]
        is_plural = name.text == b"sayPlural"
        nodes = arguments.named_children[: 2 if is_plural else 1]
        texts = [_text(path, node.start_point.row + 1, lambda node: json.loads(node.text), node) for node in nodes]
        yield from [tuple(texts)] if is_plural else texts


def _text(path: Path, line: int, read: Callable[[object], object], node: ast.expr | Node) -> str:
    try:
        text = read(node)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise ValueError(f"{path.relative_to(ROOT)}:{line}: a sentence must be a string where it is said")
    return text


def update(po: Path, language: str, sentences: Iterable[Id]) -> Catalog:
    """Add new sentences to a .po file, drop those that are gone, and return the catalog."""
    template = Catalog()
    for sentence in sentences:
        template.add(sentence)
    catalog = read_catalog(po, language) if po.exists() else Catalog(language)
    catalog.update(template)
    catalog.obsolete.clear()
    po.parent.mkdir(parents=True, exist_ok=True)
    with po.open("wb") as file:
        write_po(file, catalog, width=120, omit_header=True, no_location=True, include_previous=True)
    return read_catalog(po, language)


def read_catalog(po: Path, language: str) -> Catalog:
    """Read the catalog of a language."""
    with po.open("rb") as file:
        return read_po(file, language)


def texts_of(catalog: Catalog) -> dict[str, str | dict[str, str]]:
    """Return the translations by the English template, in the form of the page's files."""
    categories = sorted(Locale.parse(catalog.locale).plural_form.tags) + ["other"]
    plural_categories = [tag for tag in ("zero", "one", "two", "few", "many") if tag in categories][
        : catalog.num_plurals - 1
    ]
    texts = {}
    for message in catalog:
        if not message.id or not all(_strings(message.string)) or not _fields_agree(message):
            continue
        if message.pluralizable:
            texts[message.id[1]] = dict(zip([*plural_categories, "other"], message.string))
        else:
            texts[message.id] = message.string
    return texts


def _strings(value: Id) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _fields_agree(message: Message) -> bool:
    """Return whether each string has the placeholders of the English; a fuzzy translation may not have them."""
    expected = set(FIELD.findall(_strings(message.id)[-1]))
    return all(set(FIELD.findall(text)) | {"n"} == expected | {"n"} for text in _strings(message.string))


def all_sentences() -> list[tuple[Path, Path, list[Id]]]:
    """Return the parts of the page with words of their own: the folders of words and of catalogs, and the sentences."""
    return [
        (words.FOLDER, TRANSLATIONS, page_sentences()),
        (TOURS, TRANSLATIONS / "tours", tour_sentences()),
        (words.GLOSSARY, TRANSLATIONS / "glossary", glossary_sentences()),
    ]


def main() -> None:
    """Update all catalogs, write the page's files, and list what is not translated."""
    for folder, po_folder, sentences in all_sentences():
        for po in sorted(po_folder.glob("*.po")):
            catalog = update(po, po.stem, sentences)
            texts = texts_of(catalog)
            text = json.dumps(texts, ensure_ascii=False, indent=2)
            (folder / f"{po.stem}.json").write_text(f"{text}\n", encoding="utf-8")
            missing = [sentence for sentence in sentences if _strings(sentence)[-1] not in texts]
            fuzzy = [message.id for message in catalog if message.fuzzy and message.id and message.id not in missing]
            print(f"{po.relative_to(ROOT)}: {len(missing)} of {len(sentences)} to translate, {len(fuzzy)} to check")
            for sentence in (*missing, *fuzzy):
                print(f"  {sentence}")


if __name__ == "__main__":
    run_program(main)
