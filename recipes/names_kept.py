"""Measure whether a checkpoint keeps the names and numbers of a text.

    python -m recipes.names_kept --help

Use the open frames during development; the sealed ones are for a final report.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from attention_atlas.model.checkpoint import METRICS
from attention_atlas.model.files import write_json
from attention_atlas.model.program import CommandLine, check_writable, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator
from recipes.typed import (
    FRAME_SETS,
    TypedSentence,
    fill_typed,
    is_kept,
    read_typed_frames,
    tally,
)

SEED = {"open": 1, "sealed": 2}
SEEN = ("unseen", "seen")  # by training


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.record:
        check_writable(args.checkpoint, "leave out --record")
    translator = Translator.load(args.checkpoint, args.device)
    results, directions = [], [translator.check_direction(d) for d in args.directions or translator.directions]
    if args.record and not args.replace:
        check_new(translator, [(d, args.frames, name, beam) for d in directions for name in SEEN for beam in args.beam])
    for direction in directions:
        frames = read_typed_frames(args.frames, parse_direction(direction)[0])
        for training in (False, True):
            sentences = fill_typed(frames, direction, training=training, seed=SEED[args.frames])
            for beam in args.beam:
                translations = translator.translate_batch(
                    [sentence.source for sentence in sentences],
                    direction,
                    beam=beam,
                    length_penalty=args.length_penalty if beam > 1 else 0.0,
                )
                result = {
                    "direction": direction,
                    "frames": args.frames,
                    "fillers": SEEN[training],
                    "beam": beam,
                    **tally(sentences, translations),
                }
                results.append(result)
                print(json.dumps(result), flush=True)
                if args.show:
                    show(sentences, translations)
    if args.record:
        record(args.checkpoint / METRICS, translator, results)


def key(result: dict) -> tuple:
    """Return the key that identifies a result."""
    return tuple(result[field] for field in ("direction", "frames", "fillers", "beam"))


def check_new(translator: Translator, wanted: list[tuple]) -> None:
    """Raise ValueError if the checkpoint's metrics.json has one of these results."""
    for there in {key(old) for old in translator.metrics.get("typed", [])} & set(wanted):
        raise ValueError(f"{translator.name} has the result {' '.join(map(str, there))} already: --replace")


def record(path: Path, translator: Translator, results: list[dict]) -> None:
    """Write results into the checkpoint's metrics.json, replacing those of the same direction, frames and decoding."""
    metrics = dict(translator.metrics)
    new = {key(result) for result in results}
    metrics["typed"] = [old for old in metrics.get("typed", []) if key(old) not in new] + results
    write_json(path, metrics)


def show(sentences: list[TypedSentence], translations: list[str]) -> None:
    """Print every translation that lost something, and what it lost."""
    for sentence, translation in zip(sentences, translations):
        lost = [item.shown for item in sentence.items if not is_kept(item, translation)]
        if lost:
            print(f"  {sentence.source}\n    {translation}\n    lost: {', '.join(lost)}")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.names_kept", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add("--directions", nargs="+", help="default: all of the checkpoint's")
    add("--frames", choices=FRAME_SETS, default="open", help="sealed: only to report on, never to choose by")
    add("--beam", type=int, nargs="+", default=[1], help="widths to decode with; 1 is greedy")
    add("--length-penalty", type=float, default=1.0)
    add("--show", action="store_true", help="print what was lost")
    add("--record", action="store_true", help="write the results into the checkpoint's metrics.json")
    add("--replace", action="store_true", help="over results that are there already")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
