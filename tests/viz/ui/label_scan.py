"""Which words the page uses: read off the sources, not off a running page."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from tests import ROOT

VIZ, MODEL = ROOT / "viz", ROOT / "model"
CALL = re.compile(r'(?:(?<![\w.])|(?<=\.\.\.))(?:atlas\.|AttentionAtlas\.)?(t|parts|say)\(\s*("(?:[^"\\]|\\.)*")?')


def javascript() -> dict[str, set[str]]:
    """English -> files of viz/web/ that pass it to t(), parts() or say(). Each call must have its English there."""
    found: dict[str, set[str]] = {}
    for path in VIZ.glob("web/**/*.js"):
        if path.relative_to(VIZ).as_posix() == "web/core/shared.js":  # the functions themselves
            continue
        text = re.sub(r"(?m)(^|(?<=[;{}(] ))\s*//.*", "", path.read_text(encoding="utf-8"))
        for call in CALL.finditer(text):
            assert call[2], f"{path.name}: {call[1]}() of something that is not a string: {text[call.start() :][:60]}"
            found.setdefault(json.loads(call[2]), set()).add(path.name)
    return found


def python(*functions: str, within: Path) -> dict[str, set[str]]:
    """English -> files of this folder that pass it to one of these functions, as a string or a module's constant."""
    found: dict[str, set[str]] = {}
    for path in within.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = _constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
                for english in _strings(node.args[0], constants, tree, f"{path.name}:{node.lineno}"):
                    found.setdefault(english, set()).add(path.name)
    return found


def wanted() -> dict[str, set[str]]:
    """Section of a language's file -> the English that belongs there, and nothing else does."""
    said = ("say", "Refusal", "Busy")
    return {
        "controls": set(python("label", within=VIZ)),
        "page": set(python(*said, within=VIZ)) | set(javascript()),
        "sentences": set(python(*said, within=MODEL)),
    }


def errors_without_words(within: Path) -> set[tuple[str, str]]:
    """(file, innermost function) of every plain ValueError that is raised in a file or folder."""
    found = set()

    def visit(node: ast.AST, path: str, scope: str) -> None:
        if isinstance(node, ast.FunctionDef):
            scope = node.name
        elif (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) == "ValueError"
        ):
            found.add((path, scope))
        for child in ast.iter_child_nodes(node):
            visit(child, path, scope)

    for path in [within] if within.is_file() else within.rglob("*.py"):
        visit(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(VIZ.parent).as_posix(), "")
    return found


def _strings(node: ast.expr, constants: dict[str, str], tree: ast.Module, where: str) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value]
    assert isinstance(node, ast.Name), f"{where}: an expression in place of English words"
    if node.id in constants:
        return [constants[node.id]]
    for comprehension in (n for n in ast.walk(tree) if isinstance(n, ast.comprehension)):  # for NAME in (CONSTANT, ..)
        if (
            isinstance(comprehension.target, ast.Name)
            and comprehension.target.id == node.id
            and isinstance(comprehension.iter, ast.Tuple)
        ):
            return [constants[element.id] for element in comprehension.iter.elts]
    raise AssertionError(f"{where}: {node.id} is no constant")


def _constants(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in (node for node in tree.body if isinstance(node, ast.Assign)):
        names, values = (part.elts if isinstance(part, ast.Tuple) else [part] for part in (node.targets[0], node.value))
        found |= {
            name.id: value.value
            for name, value in zip(names, values)
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
        }
    return found
