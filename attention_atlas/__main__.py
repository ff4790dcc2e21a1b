"""The command attention-atlas: every program by its name.   attention-atlas translate --help"""

from __future__ import annotations

import importlib
import sys

from attention_atlas.model.program import program

# Program: the module whose main(argv) it is, and what it does.
COMMANDS = {
    "serve": ("attention_atlas.app", "the page, on http://127.0.0.1:7860"),
    "translate": ("attention_atlas.model.translate", "lines of text"),
    "convert": ("attention_atlas.model.convert", "another family's model to a checkpoint"),
    "train": ("attention_atlas.model.train", "a network, or another one on"),
    "evaluate": ("attention_atlas.model.evaluate", "a checkpoint on held-out corpora"),
    "curves": ("attention_atlas.viz.learning_curves", "the learning curves of training runs, as a picture"),
    "align": ("attention_atlas.model.align", "the words of two files"),
    "means": ("attention_atlas.model.means", "what heads say on average, for ablation"),
    "lenses": ("attention_atlas.model.lenses", "what streams say before their time"),
    "dictionary": ("attention_atlas.model.dictionary", "a sparse dictionary of an encoder's stream"),
    "survey": ("attention_atlas.model.survey", "what every head does over a corpus"),
    "faithfulness": ("attention_atlas.model.faithfulness", "which explanations hold, measured"),
    "truth": ("attention_atlas.model.truth.__main__", "a checkpoint next to labelled data"),
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
    return importlib.import_module(COMMANDS[name][0]).main(rest)


def run() -> None:
    """What the installed command calls."""
    program(main)


if __name__ == "__main__":
    run()
