"""The shape of functions, and of what is written twice. The sizes of modules and folders are in test_imports.py."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from tests import ROOT

PYTHON = sorted([ROOT / "app.py", *(p for folder in ("model", "viz", "bench") for p in (ROOT / folder).rglob("*.py"))])
SCRIPTS = sorted(p for ending in ("js", "css") for p in (ROOT / "viz" / "web").rglob(f"*.{ending}"))
PRODUCT = [path for path in PYTHON if path.is_relative_to(ROOT / "model") or path.is_relative_to(ROOT / "viz")]
PARAMETERS = 5
NUMBERS = {"Six": 6, "Seven": 7, "Eight": 8, "Nine": 9, "Ten": 10, "Eleven": 11}
WORD_FOR_WORD, BY_SHAPE, SCRIPTS_REPEATED = 6, 10, 10  # lines
SAYING = {"return", "if", "for", "while", "raise", "with", "def", "yield", "assert", "=", "+", "-", "*", "/", "("}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What a caller may give: neither self nor cls, nor what an endpoint is served with, which is no field of it; and
    *args and **options as one each."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a]
    return names[1:] if names[:1] in (["self"], ["cls"], ["served"]) else names


def without_a_reason(tree: ast.AST) -> list[str]:
    """Functions with more than five parameters whose docstring does not speak of that, or gives another number."""
    wrong = []
    for function in functions(tree):
        count, words = len(parameters(function)), ast.get_docstring(function) or ""
        said = re.search(rf"\b({'|'.join(NUMBERS)})\s+parameters", words)
        if (said and NUMBERS[said[1]] != count) or (count > PARAMETERS and "parameters" not in words):
            wrong.append(function.name)
    return wrong


def plain(text: str) -> list[tuple[int, str]]:
    """Lines by number: without blank ones, imports and what only closes or opens a block, which are alike without
    saying the same."""
    return [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if len(line.strip()) > 2 and not line.startswith(("import ", "from "))
    ]


def shapes(text: str) -> list[tuple[int, str]]:
    """Lines of statements by number, with x for every name, 0 for a number and "" for a string: not those of tables,
    arguments and fields, which have one shape without saying the same."""
    lines: dict[int, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP):
            name = "x" if not keyword.iskeyword(token.string) else token.string
            shown = {tokenize.NAME: name, tokenize.NUMBER: "0", tokenize.STRING: '""'}.get(token.type, token.string)
            lines.setdefault(token.start[0], []).append(shown)
    return [(n, " ".join(line)) for n, line in lines.items() if says(line)]


def says(line: list[str]) -> bool:
    """Whether a line does something: no entry or argument, no field, decorator or text."""
    entry = line[-1] in (",", "(", "[", "{") and not {"def", "for", "if", "return", "lambda"} & set(line)
    field = line[1:2] == [":"] or (line[1:2] == ["="] and len(line) <= 3)
    return not entry and not field and line[0] not in ("@", "class", '""') and bool(SAYING & set(line))


def repeated(texts: dict[str, list[tuple[int, str]]], size: int) -> list[str]:
    """Places where `size` lines stand that stood elsewhere before."""
    seen, found = {}, []
    for name, lines in texts.items():
        for at in range(len(lines) - size + 1):
            block = tuple(line for _, line in lines[at : at + size])
            first = seen.setdefault(block, (name, lines[at][0]))
            if first != (name, lines[at][0]):
                found.append(f"{first[0]}:{first[1]} and {name}:{lines[at][0]}")
    return found


def read(paths: list[Path], lines: Callable[[str], list[tuple[int, str]]]) -> dict[str, list[tuple[int, str]]]:
    return {where(path): lines(path.read_text(encoding="utf-8")) for path in paths}


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_more_than_five_parameters_have_a_reason():
    wrong = [
        f"{where(path)}: {name}"
        for path in PYTHON
        for name in without_a_reason(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_block_stands_twice():
    found = [
        *repeated(read(PRODUCT, plain), WORD_FOR_WORD),
        *repeated(read(PRODUCT, shapes), BY_SHAPE),
        *repeated(read([*PYTHON, *SCRIPTS], plain), SCRIPTS_REPEATED),
    ]
    assert not found, "\n".join(found)


def test_these_tests_see_what_they_look_for():
    six = "def f(self, a, b, *, c, d, e, **f):\n    {doc}\n    return a\n"
    assert without_a_reason(ast.parse(six.format(doc="'Words.'"))) == ["f"]
    assert not without_a_reason(ast.parse(six.format(doc="'Six parameters: for these reasons.'")))
    assert without_a_reason(ast.parse(six.format(doc="'Seven parameters: for these reasons.'"))) == ["f"]
    assert not without_a_reason(ast.parse("def f(self, a, b, c, d, e): ..."))
    block = "\n\n".join(f"value{n} = compute({n})" for n in range(5))
    other = f"other = 1\n{block}"
    assert repeated({"one": plain(block), "two": plain(other)}, 5) == ["one:1 and two:2"]
    assert not repeated({"one": plain(block), "two": plain(block.replace("value3", "other"))}, 5)
    assert repeated({"one": shapes(block), "two": shapes(other.replace("value", "found"))}, 5)
    assert not shapes("@property\nclass A:\n    x: int = 3\n    table = {\n        'a': 1,\n    }\n")
