"""Turn a model of a family in model/families into a checkpoint folder of ours: attention-atlas convert --help"""

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
from attention_atlas.model.program import check_free, command_line, program
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
    found = checkpoint.load(folder)
    if args.prefix:
        found = prefixed(found, args.prefix)
    if args.directions:
        checkpoint.check_fit(folder, found.model.config, found.tokenizer, tuple(args.directions))
        check_directions(args.directions, found)
        found = replace(found, directions=tuple(args.directions), languages=None)
    parameters = sum(parameter.numel() for parameter in found.model.parameters())
    found = replace(found, metrics={"notes": [], **found.metrics, "parameters": parameters})
    about = read_origin(Folder(folder))
    out = args.out or Path("checkpoints") / about.name.replace("/", "--")
    if out.resolve() == folder.resolve():
        raise ValueError(f"{out} is the folder that is converted: name another with --out")
    check_free(out / checkpoint.CONFIG, args.replace)
    written = card(found, about)
    checkpoint.save(
        out,
        found.model,
        found.tokenizer,
        found.directions,
        half=args.dtype == "float16",
        as_read=args.dtype == "float32",
        languages=found.languages,
    )
    checkpoint.write_json(out / checkpoint.METRICS, {**found.metrics, "origin": asdict(about)})
    replace_file(out / "README.md", lambda path: path.write_text(written, encoding="utf-8"))
    print(
        f"{out}: {found.metrics['parameters']:,} parameters, {len(found.directions)} directions, "
        f"licence {about.licence}"
    )
    for note in found.metrics["notes"]:
        print(f"note: {note}")


def prefixed(found: checkpoint.Checkpoint, said: list[str]) -> checkpoint.Checkpoint:
    """With a direction for each "xx-yy=TEXT", before the others. ValueError for what is none, and for a model that is
    told its task in another way."""
    if not (isinstance(found.tokenizer, PieceTokenizer) and UNNAMED in found.directions):
        raise ValueError(f"{found.name} is not told its task by words before the text: --prefix is for T5 and its kin")
    pairs = dict(one.partition("=")[::2] for one in said)
    for direction, text in pairs.items():
        parse_direction(direction)
        if not text.strip():
            raise ValueError(f"a prefix is given as en-de='translate English to German: ', found {direction!r} alone")
    tokenizer = found.tokenizer
    symbols = replace(tokenizer.symbols, prefixes=tuple({**dict(tokenizer.symbols.prefixes), **pairs}.items()))
    return replace(
        found,
        tokenizer=PieceTokenizer(tokenizer.source, tokenizer.target, symbols),
        directions=tuple(dict.fromkeys((*pairs, *found.directions))),
    )


def check_directions(wanted: list[str], found: checkpoint.Checkpoint) -> None:
    """ValueError for a direction that the model does not translate. One whose files name no languages may be named."""
    known = found.languages or found.directions
    for direction in wanted:
        if direction not in known and found.directions != (UNNAMED,):
            raise ValueError(f"{found.name} does not translate {direction!r}, but {', '.join(found.directions)}")


def card(found: checkpoint.Checkpoint, about: Origin) -> str:
    """The converted model's card. What strangers wrote stands in it as plain words."""
    config = found.model.config
    read, wrote = (config.of(side).num_heads for side in Side)
    known = about.licence.replace("-", "").replace(".", "").isalnum()
    return CARD.format(
        front=f"license: {about.licence if known else 'other'}",
        name=_plain(about.name),
        origin=_plain(about.name),
        licence=_plain(about.licence),
        parameters=found.metrics["parameters"],
        encoder=config.num_encoder_layers,
        decoder=config.num_decoder_layers,
        heads=read if read == wrote else f"{read} and {wrote}",
        width=config.d_model,
        directions=", ".join(found.directions),
        notes="".join(f"\n* {note}" for note in found.metrics["notes"]),
    )


def _plain(text: str) -> str:
    """Text without what Markdown or HTML would read."""
    return "".join(c if c.isalnum() or c in " .,-_/()" else " " for c in text).strip() or "unnamed"


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas convert", __doc__)
    parser.add_argument("model", help="a folder as transformers saves it, or an id on the Hugging Face Hub")
    parser.add_argument("--out", type=Path, help="the new folder (default: checkpoints/NAME)")
    parser.add_argument("--replace", action="store_true", help="write over a checkpoint that is there")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16"),
        default="float32",
        help="of the weights on disk: float32 (default) is mapped from there, float16 is half as large",
    )
    parser.add_argument(
        "--directions",
        nargs="+",
        metavar="XX-YY",
        help="those to offer, for a model of many languages (default: all, or a choice of many)",
    )
    parser.add_argument(
        "--prefix",
        nargs="+",
        metavar="XX-YY=TEXT",
        help="what stands before the texts of a direction, for T5 and its kin: text-summary='summarize: '",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
