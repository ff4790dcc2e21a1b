"""Average heads and embeddings over sentences, for ablation and occlusion: attention-atlas means --help

Writes means.safetensors, with the digest of the weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.why.means import FILE, choose_sentences, compute_means, save_means
from attention_atlas.model.program import CommandLine, measurement_path, run_program
from attention_atlas.model.translator import Translator


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    path = measurement_path(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    texts = choose_sentences(translator, args.sentences, args.directions)
    with tqdm(total=sum(map(len, texts.values())), unit=" sentences") as bar:
        means = compute_means(translator, texts, progress=lambda done: bar.update(done - bar.n))
    save_means(path, means)
    print(f"{path}: {means.sentences} sentences, {path.stat().st_size:,} bytes")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas means", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    parser.add_output(FILE)
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--directions", nargs="+", help="for --sentences; default: all of the checkpoint's")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
