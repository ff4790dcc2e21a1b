"""The command attention-atlas: every program by its name.   attention-atlas translate --help"""

from __future__ import annotations

import importlib
import sys

from model.program import HOME, program

# Program: the module whose main(argv) it is, and what it does.
COMMANDS = {
    "serve": ("app", "the page, on http://127.0.0.1:7860"),
    "translate": ("model.translate", "lines of text"),
    "convert": ("model.convert", "another family's model to a checkpoint"),
    "train": ("model.train", "a network, or another one on"),
    "evaluate": ("model.evaluate", "a checkpoint on held-out corpora"),
    "align": ("model.align", "the words of two files"),
    "means": ("model.means", "what heads say on average, for ablation"),
    "lenses": ("model.lenses", "what streams say before their time"),
    "survey": ("model.survey", "what every head does over a corpus"),
    "faithfulness": ("model.faithfulness", "which explanations hold, measured"),
    "truth": ("model.truth.__main__", "a checkpoint next to labelled data"),
}


def main(argv: list[str] | None = None) -> int | None:
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        print("attention-atlas PROGRAM [options]; --help after a program's name lists its own\n")
        print("\n".join(f"  {name:14}{words}" for name, (_, words) in COMMANDS.items()))
        return 0
    if name == "--version":
        from attention_atlas import __version__

        print(__version__)
        return 0
    if name not in COMMANDS:
        raise ValueError(f"there is no program {name!r}: there are {', '.join(COMMANDS)}")
    return importlib.import_module(HOME + COMMANDS[name][0]).main(rest)


def run() -> None:
    """What the installed command calls."""
    program(main)


if __name__ == "__main__":
    run()
