"""Count how many everyday sentences a checkpoint translates correctly: python -m recipes.everyday --help

Decodes greedily and counts by group of sentences. Use the open half during development; the sealed half is for a final
report, and its translations are not printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from attention_atlas.model.files import read_json, write_json
from attention_atlas.model.program import CommandLine, require, run_program
from attention_atlas.model.translator import Translator
from recipes.everyday import DIRECTIONS, HALVES, Everyday, read_everyday, score


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    require("sacrebleu")
    translator = Translator.load(args.checkpoint, args.device)
    results = []
    for direction in args.directions or [each for each in translator.directions if each in DIRECTIONS]:
        translator.check_direction(direction)
        for half in args.halves or HALVES[:1]:
            check_new(args, translator, direction, half)
            sentences = read_everyday(direction, half)
            translations = translator.translate_batch([sentence.source for sentence in sentences], direction)
            scores = score(sentences, translations)
            results.append(
                {
                    "checkpoint": translator.name,
                    "digest": translator.digest,
                    "direction": direction,
                    "half": half,
                    **scores,
                }
            )
            print(table(results[-1]), flush=True)
            if args.show and half == "open":
                print("\n".join(failures(sentences, translations)), flush=True)
    if not results:
        raise ValueError(f"{args.checkpoint} translates none of {', '.join(DIRECTIONS)}")
    if args.json:
        record(args.json, results)


def table(result: dict) -> str:
    """Return a result as lines of text."""
    rows = [*result["groups"].items(), ("all", result)]
    width = max(len(name) for name, _ in rows)
    return "\n".join(
        [
            f"{result['checkpoint']} ({result['digest']}), {result['direction']}, {result['half']} half",
            *(f"  {name:{width}} {counts['right']:3d} of {counts['of']:3d}" for name, counts in rows),
            f"  right as a whole {result['share']:.3f}, chrF {result['chrf']:.1f}",
        ]
    )


def failures(sentences: Iterable[Everyday], translations: Iterable[str]) -> Iterable[str]:
    """Return the sentences with a wrong translation, the translation, and its errors."""
    for sentence, translation in zip(sentences, translations):
        if wrong := sentence.wrong(translation):
            yield f"  [{sentence.group}] {sentence.source}\n    {translation}\n    wrong: {'; '.join(wrong)}"


def check_new(args: argparse.Namespace, translator: Translator, direction: str, half: str) -> None:
    """Raise ValueError if the file already has such a result of these weights and --replace is missing."""
    if args.replace or args.json is None or not args.json.exists():
        return
    mine = {"checkpoint": translator.name, "digest": translator.digest, "direction": direction, "half": half}
    if any(mine.items() <= result.items() for result in read_json(args.json)):
        raise ValueError(f"{args.json} has the {half} half of {direction} of these weights already: --replace")


def record(path: Path, results: list[dict]) -> None:
    """Write results into a file, replacing those of the same weights, direction and half."""

    def key(result: dict) -> tuple:
        return tuple(result[field] for field in ("checkpoint", "digest", "direction", "half"))

    new = {key(result) for result in results}
    old = read_json(path) if path.exists() else []
    write_json(path, [result for result in old if key(result) not in new] + results)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.everyday", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add(
        "--directions",
        nargs="+",
        metavar="DIRECTION",
        help=f"default: all of the checkpoint's in {', '.join(DIRECTIONS)}",
    )
    for half, about in zip(HALVES, ("look at it while working (the default)", "to report on, never to choose by")):
        add(f"--{half}", dest="halves", action="append_const", const=half, help=f"the {half} half: {about}")
    add("--show", action="store_true", help="print what came out wrong in the open half, and where")
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="put the results into this file, beside those of other weights",
    )
    add("--replace", action="store_true", help="in place of older ones of these weights")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
