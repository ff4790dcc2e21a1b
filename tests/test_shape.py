"""The shape of functions, and of what is written twice. The sizes of modules and folders are in test_imports.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT

PYTHON = sorted([ROOT / "app.py", *(p for folder in ("model", "viz", "bench") for p in (ROOT / folder).rglob("*.py"))])
SCRIPTS = sorted(p for ending in ("js", "css") for p in (ROOT / "viz" / "web").rglob(f"*.{ending}"))
PARAMETERS, REPEATED = 5, 10


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What a caller may give: neither self nor cls, and *args and **options as one each."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def without_a_reason(tree: ast.AST) -> list[str]:
    """Functions with more than five parameters whose docstring does not speak of that."""
    return [
        f.name
        for f in functions(tree)
        if len(parameters(f)) > PARAMETERS and "parameters" not in (ast.get_docstring(f) or "")
    ]


def repeated(texts: dict[str, str], size: int) -> list[str]:
    """Places where `size` lines of code stand that stood elsewhere before: without blank lines, imports and what only
    closes or opens a block, which are alike without saying the same."""
    seen, found = {}, []
    for name, text in texts.items():
        lines = [
            (number, line.strip())
            for number, line in enumerate(text.splitlines(), 1)
            if len(line.strip()) > 2 and not line.startswith(("import ", "from "))
        ]
        for at in range(len(lines) - size + 1):
            block = tuple(line for _, line in lines[at : at + size])
            first = seen.setdefault(block, (name, lines[at][0]))
            if first != (name, lines[at][0]):
                found.append(f"{first[0]}:{first[1]} and {name}:{lines[at][0]}")
    return found


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_more_than_five_parameters_have_a_reason():
    wrong = [
        f"{where(path)}: {name}"
        for path in PYTHON
        for name in without_a_reason(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_block_of_ten_lines_stands_twice():
    found = repeated({where(path): path.read_text(encoding="utf-8") for path in (*PYTHON, *SCRIPTS)}, REPEATED)
    assert not found, "\n".join(found)


def test_these_tests_see_what_they_look_for():
    six = "def f(self, a, b, *, c, d, e, **f):\n    {doc}\n    return a\n"
    assert without_a_reason(ast.parse(six.format(doc="'Words.'"))) == ["f"]
    assert not without_a_reason(ast.parse(six.format(doc="'Six parameters: for these reasons.'")))
    assert not without_a_reason(ast.parse("def f(self, a, b, c, d, e): ..."))
    block = "\n\n".join(f"value{n} = compute({n})" for n in range(5))
    assert repeated({"one": block, "two": f"other = 1\n{block}"}, 5) == ["one:1 and two:2"]
    assert not repeated({"one": block, "two": block.replace("value3", "other")}, 5)
