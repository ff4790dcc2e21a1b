"""Train a sparse dictionary of an encoder's residual stream: attention-atlas dictionary --help

Writes dictionary.safetensors, with the digest of the weights, and prints the model's loss with the stream reconstructed
from it, compared with random directions and with the layer's neurons. Takes minutes on two cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tqdm import tqdm

from attention_atlas.model.analysis.units.dictionary import (
    FILE,
    StoredDictionary,
    measure_qualities,
    rows_of,
    save,
    train,
)
from attention_atlas.model.analysis.why.means import choose_sentences
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import CommandLine, integer, measurement_path, run_program
from attention_atlas.model.training import corpora
from attention_atlas.model.translator import Translator

MAX_HELD_OUT = 100  # sentences that it is measured on, every tenth


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    path = measurement_path(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    check_transformer(translator.model)
    layers = translator.config.num_encoder_layers
    layer = (args.layer or max(1, layers - 1)) - 1
    if layer >= layers:
        raise ValueError(f"--layer {args.layer}: the encoder has {layers} layers")
    place = f"encoder.{layer}.resid_post"
    texts = [
        (direction, line)
        for direction, lines in sentences(args, translator).items()
        for line in lines
        if line.strip() and translator.fits(line, direction)
    ]
    held_out = texts[::10][:MAX_HELD_OUT]
    training = [text for text in texts if text not in {*held_out}]
    with torch.inference_mode(False):
        rows = torch.cat(
            [
                rows_of(translator, place, [line for d, line in training if d == direction], direction)
                for direction in dict.fromkeys(direction for direction, _ in training)
            ]
        )
        with tqdm(total=args.updates, unit=" updates") as bar:
            units = train(rows, args.units, args.active, args.updates, watch=lambda done: bar.update(done - bar.n))
    measured = measure_qualities(translator, place, units, rows, held_out)
    save(path, StoredDictionary(units, layer, len(training), translator.digest, measured))
    print(f"{path}: {len(units.bias)} units of {place}, {len(training)} sentences, {len(rows):,} rows")
    for name, quality in measured.items():
        print(
            f"{name}: loss recovered {quality.recovered:.1%}, variance explained {quality.explained:.1%}, "
            f"L0 {quality.active:.1f}, dead {quality.dead:.1%}"
        )


def sentences(args: argparse.Namespace, translator: Translator) -> dict[str, list[str]]:
    """Return the sentences by direction: of --sentences, of the dev parts of --data, or the project's own."""
    if not args.data:
        return {direction: list(lines) for direction, lines in choose_sentences(translator, args.sentences).items()}
    return {
        direction: [source for source, _ in corpora.dev_pairs(args.data, direction)[1]]
        for direction in translator.directions
    }


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas dictionary", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    parser.add_output(FILE)
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--data", type=Path, help="or the dev parts of the corpora in this folder")
    add("--layer", type=integer(), help="of the encoder, from 1; default: the last but one")
    add("--units", type=integer(), default=2048, help="default %(default)s")
    add("--active", type=integer(), default=16, help="units that may be active for a token, default %(default)s")
    add("--updates", type=integer(), default=1500, help="of 512 rows each, default %(default)s")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
