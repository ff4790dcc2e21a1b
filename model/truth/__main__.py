"""Measure a checkpoint on data that others labelled: attention-atlas truth --help

A benchmark is a file of model/truth/benchmarks; --list names them. It is measured for each direction of the checkpoint
if its data are in the data folder. The figures go into truth.json in the checkpoint's folder, with the digest of the
weights, and as tables into its card, without any sentence. A stopped run continues when it is started again.
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
from attention_atlas.model.program import CommandLine, measurement_path, require, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator
from attention_atlas.model.truth import alignment, calibration, contrastive, detection
from attention_atlas.model.truth.benchmark import Bench, Benchmark, read_benchmarks
from attention_atlas.model.truth.report import CARD, HEADING, section, summarize_trust

KINDS: dict[str, Callable[[Benchmark, Bench], dict]] = {
    "quiet": detection.measure_thresholds,  # first: the next two count alarms by its thresholds
    "labelled": detection.measure_labelled,
    "provoked": detection.measure_provoked,
    "calibration": calibration.measure,
    "alignment": alignment.measure,
    "contrastive": contrastive.measure,
}


def main(argv: list[str] | None = None, *, expected: bool = True) -> None:
    """Run the program. expected: whether missing data are an error."""
    args = parse(argv)
    benchmarks = sorted(read_benchmarks(), key=lambda benchmark: list(KINDS).index(benchmark.kind))
    if args.list:
        print("\n".join(f"{b.name:22}{b.title} ({', '.join(b.directions)})" for b in benchmarks))
        return
    require("sacrebleu")
    out = measurement_path(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    check_transformer(translator.model)
    selected = [benchmark for benchmark in benchmarks if not args.only or benchmark.name in args.only]
    if unknown := set(args.only or ()) - {benchmark.name for benchmark in benchmarks}:
        raise ValueError(f"there is no benchmark {', '.join(sorted(unknown))}: --list names them")
    results = measure_all(args, translator, selected, out)
    if expected and not results:
        raise ValueError(f"{args.data} has no data of the benchmarks for {', '.join(translator.directions)}")
    if out:
        done = {result["benchmark"] for result in results}
        known = [(benchmark.name, benchmark.definition, args.limit) for benchmark in benchmarks]
        results += [
            result
            for result in read_results(out, translator)
            if result["benchmark"] not in done and (result["benchmark"], result["definition"], result["limit"]) in known
        ]
    order, kinds = list(translator.directions), list(KINDS)
    results.sort(key=lambda result: (order.index(result["direction"]), kinds.index(result["kind"])))
    values = {"digest": translator.digest, "results": results, "trust": summarize_trust(results)}
    if out:
        write_json(out, values)
        out.with_suffix(".partial").unlink(missing_ok=True)
    if out and not args.out:
        write_section(args.checkpoint / CARD, section(values))
    print(section(values).removeprefix(HEADING).strip())


def measure_all(
    args: argparse.Namespace, translator: Translator, benchmarks: list[Benchmark], out: Path | None
) -> list[dict]:
    """Return the result of each benchmark in each direction.

    Results of a stopped run with the same weights and benchmark files are read from a file next to `out`.
    """
    partial = out and out.with_suffix(".partial")
    done = read_results(partial, translator) if partial else []
    results = []
    reverse = functools.cache(lambda direction: load_reverse(args, translator, direction))
    for direction in translator.directions:
        earlier: dict[str, dict] = {}
        bench = Bench(
            translator, direction, args.data, functools.partial(reverse, direction), limit=args.limit, earlier=earlier
        )
        for benchmark in benchmarks:
            if direction not in benchmark.directions or not (args.data / benchmark.data).exists():
                continue
            key = {
                "benchmark": benchmark.name,
                "direction": direction,
                "definition": benchmark.definition,
                "limit": args.limit,
            }
            values = next((old for old in done if key.items() <= old.items()), None)
            if values is None:
                started = time.perf_counter()
                values = {**key, "kind": benchmark.kind, "found": KINDS[benchmark.kind](benchmark, bench)}
                values["seconds"] = round(time.perf_counter() - started, 1)
            earlier[benchmark.name] = values["found"]
            results.append(values)
            if partial:
                write_json(partial, {"digest": translator.digest, "results": results})
    return results


def read_results(path: Path, translator: Translator) -> list[dict]:
    """Return the results in a file; none if it is missing or of other weights."""
    before = read_json(path, limit=1 << 24) if path.exists() else {}
    return before["results"] if before.get("digest") == translator.digest else []


def load_reverse(args: argparse.Namespace, translator: Translator, direction: str) -> Translator | None:
    """Return a model of the other direction: this model, the one of --reverse, or one in a neighbouring folder."""
    back = "-".join(reversed(parse_direction(direction)))
    if back in translator.directions:
        return translator
    neighbours = sorted(path.parent for path in args.checkpoint.resolve().parent.glob(f"*/{CONFIG}"))
    for folder in [args.reverse] if args.reverse else neighbours:
        if back in read_json(folder / CONFIG).get("directions", ()):
            reverse = Translator.load(folder, args.device)
            check_transformer(reverse.model)
            return reverse
    return None


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas truth", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add("--data", type=Path, default=Path("data"), help="folder with the labelled data and the corpora; default data")
    add("--only", nargs="+", metavar="NAME", help="these benchmarks alone")
    add("--list", action="store_true", help="name the benchmarks and do nothing else")
    add(
        "--reverse",
        type=checkpoint_folder,
        metavar="FOLDER",
        help="a checkpoint that translates back; default: one in a neighbouring folder",
    )
    parser.add_output(f"{FILE}, and the tables in its card", trial=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
