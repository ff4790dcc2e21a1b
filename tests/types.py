"""Check types with pyright (basic): the code of pages and notebooks, and the public modules that it uses.

`make types` runs it. basedpyright contains pyright and the Node that it needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from attention_atlas.model.program import run_program
from tests import ROOT
from tests.pages import blocks

TYPED = ROOT / "typings" / "attention_atlas"  # the package's folder as it is installed
PUBLIC = (
    "model/translator",
    "model/trace/__init__.py",
    "model/trace/translation.py",
    "model/trace/interventions.py",
    "model/trace/edits.py",
    "model/trace/inseq.py",
    "model/trace/result.py",
    "model/trace/why",
    "model/analysis/ablation.py",
    "model/analysis/circuits/__init__.py",
    "model/analysis/circuits/circuit.py",
    "model/analysis/circuits/graph.py",
    "model/analysis/circuits/pairs.py",
    "model/analysis/lenses/__init__.py",
    "model/analysis/lenses/read.py",
    "model/analysis/lenses/storage.py",
    "model/analysis/steering.py",
    "model/analysis/why/__init__.py",
    "model/analysis/why/attribution.py",
    "model/analysis/why/experiments/patching.py",
    "model/decode/runs.py",
    "viz/__init__.py",
    "viz/export/notebook.py",
    "viz/figures/circuit.py",
    "viz/figures/curves.py",
    "viz/maps/patterns.py",
    "viz/maps/reduce.py",
)


def read_examples() -> dict[str, str]:
    """Return the Python code of each page and notebook, by name."""
    pages = ("README.md", "docs/start/library.md", "docs/start/notebook.md", "docs/coming-from.md")
    examples = {Path(page).stem.replace("-", "_"): "\n".join(blocks(page, "python")) for page in pages}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        examples[path.stem] = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return examples


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="types-") as folder:
        for name, code in read_examples().items():
            (Path(folder) / f"{name}.py").write_text(code, encoding="utf-8")
        config = {
            "include": [folder, *(str(TYPED / path) for path in PUBLIC)],
            "typeCheckingMode": "basic",
            "reportUnusedExpression": False,  # a notebook's cell may end with an expression
            "extraPaths": [str(TYPED.parent)],
        }
        (Path(folder) / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
        command = [sys.executable, "-m", "basedpyright", "--project", folder, "--pythonpath", sys.executable]
        return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    run_program(main)
