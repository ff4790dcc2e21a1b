"""Convert a model of a family in model/families into a checkpoint folder of ours: attention-atlas convert --help"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

from attention_atlas.model import checkpoint
from attention_atlas.model.families import hub
from attention_atlas.model.families.card import Origin, read_origin
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.vocabulary import UNNAMED
from attention_atlas.model.files import CONFIG, checkpoint_folder, replace_file
from attention_atlas.model.program import CommandLine, refuse_existing, run_program
from attention_atlas.model.text.pieces import PieceTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import Side

CARD = """---
{front}
---
# {name}

{origin}, converted by `attention-atlas convert`. Licence, as its own card states it: {licence}.

{parameters:,} parameters; {encoder} encoder and {decoder} decoder layers of {heads} heads, width {width}. Directions:
{directions}.
{notes}"""


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    folder = checkpoint_folder(args.model)
    folder = folder if (folder / CONFIG).is_file() else hub.locate(args.model)
    converted = checkpoint.load(folder)
    if args.prefix:
        converted = add_prefixes(converted, args.prefix)
    if args.directions:
        checkpoint.check_fit(folder, converted.model.config, converted.tokenizer, tuple(args.directions))
        known = converted.languages or converted.directions
        for direction in args.directions:
            if direction not in known and converted.directions != (UNNAMED,):
                raise ValueError(
                    f"{converted.name} does not translate {direction!r}, but {', '.join(converted.directions)}"
                )
        converted = replace(converted, directions=tuple(args.directions), languages=None)
    parameters = sum(parameter.numel() for parameter in converted.model.parameters())
    converted = replace(converted, metrics={"notes": [], **converted.metrics, "parameters": parameters})
    origin = read_origin(Folder(folder))
    out = args.out or Path("checkpoints") / origin.name.replace("/", "--")
    if out.resolve() == folder.resolve():
        raise ValueError(f"{out} is the folder that is converted: name another with --out")
    refuse_existing(out / checkpoint.CONFIG, args.replace)
    text = card(converted, origin)  # before the large files are written
    checkpoint.save(
        out,
        converted.model,
        converted.tokenizer,
        converted.directions,
        half=args.dtype == "float16",
        languages=converted.languages,
    )
    checkpoint.write_json(out / checkpoint.METRICS, {**converted.metrics, "origin": asdict(origin)})
    replace_file(out / "README.md", lambda path: path.write_text(text, encoding="utf-8"))
    print(
        f"{out}: {converted.metrics['parameters']:,} parameters, {len(converted.directions)} directions, "
        f"licence {origin.licence}"
    )
    for note in converted.metrics["notes"]:
        print(f"note: {note}")


def add_prefixes(loaded: checkpoint.Checkpoint, options: list[str]) -> checkpoint.Checkpoint:
    """Return the checkpoint with a direction for each option "xx-yy=TEXT", before its others.

    Raises ValueError for an option of another form, and for a model that does not read its task before the text.
    """
    if not (isinstance(loaded.tokenizer, PieceTokenizer) and UNNAMED in loaded.directions):
        raise ValueError(f"{loaded.name} does not read its task before the text: --prefix is for T5 and its kin")
    pairs = dict(option.partition("=")[::2] for option in options)
    for direction, text in pairs.items():
        parse_direction(direction)
        if not text.strip():
            raise ValueError(f"a prefix is given as en-de='translate English to German: ', found {direction!r} alone")
    tokenizer = loaded.tokenizer
    symbols = replace(tokenizer.symbols, prefixes=tuple({**dict(tokenizer.symbols.prefixes), **pairs}.items()))
    return replace(
        loaded,
        tokenizer=PieceTokenizer(tokenizer.source, tokenizer.target, symbols),
        directions=tuple(dict.fromkeys((*pairs, *loaded.directions))),
    )


def card(loaded: checkpoint.Checkpoint, origin: Origin) -> str:
    """Return the converted model's card, with text of strangers stripped of Markdown and HTML."""
    config = loaded.model.config
    heads, decoder_heads = (config.of(side).num_heads for side in Side)
    is_identifier = origin.licence.replace("-", "").replace(".", "").isalnum()
    return CARD.format(
        front=f"license: {origin.licence if is_identifier else 'other'}",
        name=_plain(origin.name),
        origin=_plain(origin.name),
        licence=_plain(origin.licence),
        parameters=loaded.metrics["parameters"],
        encoder=config.num_encoder_layers,
        decoder=config.num_decoder_layers,
        heads=heads if heads == decoder_heads else f"{heads} and {decoder_heads}",
        width=config.d_model,
        directions=", ".join(loaded.directions),
        notes="".join(f"\n* {note}" for note in loaded.metrics["notes"]),
    )


def _plain(text: str) -> str:
    """Return text without characters that Markdown or HTML interprets."""
    return "".join(c if c.isalnum() or c in " .,-_/()" else " " for c in text).strip() or "unnamed"


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas convert", __doc__)
    parser.add_argument("model", help="a folder as transformers saves it, or an id on the Hugging Face Hub")
    parser.add_argument("--out", type=Path, help="the new folder (default: checkpoints/NAME)")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing checkpoint")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16"),
        default="float32",
        help="of the weights on disk: float32 (default) is memory-mapped, float16 is half as large",
    )
    parser.add_argument(
        "--directions",
        nargs="+",
        metavar="XX-YY",
        help="those to list, for a model of many languages (default: all, or common ones of many)",
    )
    parser.add_argument(
        "--prefix",
        nargs="+",
        metavar="XX-YY=TEXT",
        help="the text before the sources of a direction, for T5 and its kin: text-summary='summarize: '",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
