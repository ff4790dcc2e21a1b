"""The command attention-atlas, which runs a program by its name: attention-atlas translate --help"""

from __future__ import annotations

import importlib
import sys

from attention_atlas.model.program import run_program

# name -> the module whose main(argv) is the program, and its description
COMMANDS = {
    "serve": ("attention_atlas.app", "serve the page on http://127.0.0.1:7860"),
    "translate": ("attention_atlas.model.translate", "translate lines of text"),
    "convert": ("attention_atlas.model.convert", "convert another family's model to a checkpoint"),
    "train": ("attention_atlas.model.train", "train a network, or continue a run"),
    "evaluate": ("attention_atlas.model.evaluate", "score a checkpoint on held-out corpora"),
    "curves": ("attention_atlas.viz.learning_curves", "draw the learning curves of training runs"),
    "align": ("attention_atlas.model.align", "align the words of two files"),
    "means": ("attention_atlas.model.means", "average the outputs of heads, for ablation"),
    "lenses": ("attention_atlas.model.lenses", "fit lenses, which decode earlier layers"),
    "dictionary": ("attention_atlas.model.dictionary", "train a sparse dictionary of an encoder's residual stream"),
    "survey": ("attention_atlas.model.survey", "survey what every head does over a corpus"),
    "faithfulness": ("attention_atlas.model.faithfulness", "measure the faithfulness of attribution methods"),
    "truth": ("attention_atlas.model.truth.__main__", "measure a checkpoint on labelled data"),
}


def main(argv: list[str] | None = None) -> int | None:
    """Run the program that the first argument names. Raises ValueError for an unknown one."""
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
    """Run the installed command."""
    run_program(main)


if __name__ == "__main__":
    run()
