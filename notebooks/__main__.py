"""Run the notebooks of this folder from top to bottom and write what they showed: python -m notebooks --help"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from attention_atlas.model.program import CommandLine, run_program

FOLDER = Path(__file__).resolve().parent
SECONDS = 300  # for one cell
SETTINGS = {
    "PLOTLY_RENDERER": "plotly_mimetype",  # data, which a front end draws; Plotly.js is 5 MB
    "PYTHONWARNINGS": "ignore:IProgress not found",  # tqdm's, of widgets
    "OMP_NUM_THREADS": "1",
}


def paths() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, kernel: str = "python3") -> nbformat.NotebookNode:
    """The notebook with what its cells show now. nbclient's CellExecutionError where one fails. A cell that is tagged
    skip-execution is left as it is. kernel: that of another environment than this one, by its name."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name=kernel,
        record_timing=False,
        coalesce_streams=True,  # one output for each stream of a cell, however its writes are timed
        resources={"metadata": {"path": str(FOLDER)}},
    )
    return client.execute(env={**os.environ, **SETTINGS})


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m notebooks", __doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=paths(), help="files (default: all of this folder)")
    for path in parser.parse_args(argv).notebooks:
        nbformat.write(executed(path), path)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    run_program(main)
