"""Whether pyright knows the type of every public name of the installed package, as a type checker of its users sees it.

python -m tests.public_types           # of the environment that runs it
python -m tests.public_types PYTHON    # of another one, such as one with a wheel

Public are the names in the `__all__`s. viz.server serves the page, and is nothing to import.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attention_atlas.model.program import program

PACKAGE = "attention_atlas"


def unknown(python: Path) -> list[str]:
    """The public names whose type, or the type of something that they refer to, is not known, each with the reason."""
    # --verifytypes heeds no --pythonpath: it asks the first python of PATH.
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", PACKAGE, "--ignoreexternal", "--outputjson"]
    with tempfile.TemporaryDirectory(prefix="types-") as folder:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    report = json.loads(done.stdout)["typeCompleteness"]
    if "pyTypedPath" not in report:
        return [f"{python} finds no {PACKAGE} with types"]
    symbols = {symbol["name"]: symbol for symbol in report["symbols"]}
    found = []
    for name in public(Path(report["packageRootDirectory"])):
        if name not in symbols:
            found.append(f"{name}: there is no such name")
        elif not symbols[name]["isTypeKnown"]:
            reasons = [diagnostic["message"] for diagnostic in symbols[name]["diagnostics"]]
            found.append(f"{name}: {'; '.join(reasons) or 'a part of it is not known'}")
    return found


def public(package: Path) -> Iterator[str]:
    """The names in every `__all__` of a package's folder, with their modules."""
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        if module.startswith(f"{PACKAGE}.viz.server"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield from (f"{module}.{name}" for name in ast.literal_eval(node.value))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.public_types", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("python", nargs="?", type=Path, default=Path(sys.executable), help="(default: this one)")
    found = unknown(parser.parse_args().python)
    print("\n".join(found) or "every public name has a known type")
    return min(len(found), 1)


if __name__ == "__main__":
    program(main)
