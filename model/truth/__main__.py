"""A checkpoint next to data that others labelled: attention-atlas truth --help

A benchmark is a file of model/truth/benchmarks; --list names them. Of each that is for a direction of the checkpoint,
and whose data are in the data folder, the figures go into truth.json in the checkpoint's folder, with the digest of the
weights, and as tables into its card; never a sentence. Stopped and started again, it goes on.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.analysis.trust import FILE
from attention_atlas.model.checkpoint import CONFIG
from attention_atlas.model.files import checkpoint_folder, read_json, write_json, write_section
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import (
    add_checkpoint,
    add_limit,
    add_output,
    command_line,
    destination,
    program,
    require,
)
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator
from attention_atlas.model.truth import alignment, calibration, contrastive, detection
from attention_atlas.model.truth.benchmark import Bench, Benchmark, read_benchmarks
from attention_atlas.model.truth.report import CARD, HEADING, section, trust

KINDS: dict[str, Callable[[Benchmark, Bench], dict]] = {
    "quiet": detection.quiet,  # whose thresholds the next two count alarms by
    "labelled": detection.labelled,
    "provoked": detection.own,
    "calibration": calibration.measure,
    "alignment": alignment.measure,
    "contrastive": contrastive.measure,
}


def main(argv: list[str] | None = None, *, expected: bool = True) -> None:
    """expected: whether it is an error that there are no data."""
    args = parse(argv)
    benchmarks = sorted(read_benchmarks(), key=lambda one: list(KINDS).index(one.kind))
    if args.list:
        print("\n".join(f"{one.name:22}{one.title} ({', '.join(one.directions)})" for one in benchmarks))
        return
    require("sacrebleu")
    out = destination(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    check_transformer(translator.model)
    wanted = [one for one in benchmarks if not args.only or one.name in args.only]
    if unknown := set(args.only or ()) - {one.name for one in benchmarks}:
        raise ValueError(f"there is no benchmark {', '.join(sorted(unknown))}: --list names them")
    results = measured(args, translator, wanted, out)
    if expected and not results:
        raise ValueError(f"{args.data} has no data of the benchmarks for {', '.join(translator.directions)}")
    if out:
        done = {one["benchmark"] for one in results}
        results += kept(out, translator, [one for one in benchmarks if one.name not in done], args.limit)
    order, kinds = list(translator.directions), list(KINDS)
    results.sort(key=lambda one: (order.index(one["direction"]), kinds.index(one["kind"])))
    found = {"digest": translator.digest, "results": results, "trust": trust(results)}
    if out:
        write_json(out, found)
        out.with_suffix(".partial").unlink(missing_ok=True)
    if out and not args.out:
        write_section(args.checkpoint / CARD, section(found))
    print(section(found).removeprefix(HEADING).strip())


def measured(args: argparse.Namespace, translator: Translator, wanted: list[Benchmark], out: Path | None) -> list[dict]:
    """What each benchmark gave in each direction. What an earlier run of these weights measured by the same files is
    taken from what it left beside `out`."""
    kept = out and out.with_suffix(".partial")
    before = read_json(kept, limit=1 << 24) if kept and kept.exists() else {}
    done = before.get("results", []) if before.get("digest") == translator.digest else []
    results = []
    reverse = functools.cache(lambda direction: back(args, translator, direction))
    for direction in translator.directions:
        earlier: dict[str, dict] = {}
        bench = Bench(
            translator, direction, args.data, functools.partial(reverse, direction), limit=args.limit, earlier=earlier
        )
        for one in wanted:
            if direction not in one.directions or not (args.data / one.data).exists():
                continue
            key = {"benchmark": one.name, "direction": direction, "definition": one.definition, "limit": args.limit}
            values = next((old for old in done if key.items() <= old.items()), None)
            if values is None:
                started = time.perf_counter()
                values = {**key, "kind": one.kind, "found": KINDS[one.kind](one, bench)}
                values["seconds"] = round(time.perf_counter() - started, 1)
            earlier[one.name] = values["found"]
            results.append(values)
            if kept:
                write_json(kept, {"digest": translator.digest, "results": results})
    return results


def kept(out: Path, translator: Translator, others: list[Benchmark], limit: int | None) -> list[dict]:
    """What the file has of these weights from benchmarks that were not measured this time, as these are now."""
    before = read_json(out, limit=1 << 24) if out.exists() else {}
    if before.get("digest") != translator.digest:
        return []
    known = {(one.name, one.definition, limit) for one in others}
    return [one for one in before["results"] if (one["benchmark"], one["definition"], one["limit"]) in known]


def back(args: argparse.Namespace, translator: Translator, direction: str) -> Translator | None:
    """A model of the other direction: the one that was named, this one itself, or one beside it."""
    other = "-".join(reversed(parse_direction(direction)))
    if other in translator.directions:
        return translator
    beside = sorted(path.parent for path in args.checkpoint.resolve().parent.glob(f"*/{CONFIG}"))
    for folder in [args.reverse] if args.reverse else beside:
        if other in read_json(folder / CONFIG).get("directions", ()):
            found = Translator.load(folder, args.device)
            check_transformer(found.model)
            return found
    return None


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas truth", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add("--data", type=Path, default=Path("data"), help="folder with the labelled data and the corpora; default data")
    add("--only", nargs="+", metavar="NAME", help="these benchmarks alone")
    add("--list", action="store_true", help="name the benchmarks and do nothing else")
    add(
        "--reverse",
        type=checkpoint_folder,
        metavar="FOLDER",
        help="a checkpoint that translates back; default: one that lies beside",
    )
    add_limit(parser)
    add_output(parser, f"{FILE}, and the tables in its card")
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
