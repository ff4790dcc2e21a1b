"""Translate lines of text: attention-atlas translate --help

Lines are read from the arguments, or else from standard input. Each is written as one line of standard output, in the
same order, or with --traces as a file. Processes of torchrun share the lines:

    torchrun --nproc-per-node 2 -m attention_atlas translate --traces maps < lines.txt

A stopped run continues when it is started again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from attention_atlas.model.decode.runs import batched
from attention_atlas.model.files import replace_file, value_errors
from attention_atlas.model.program import CommandLine, integer, refuse_existing, run_program
from attention_atlas.model.serve import processes
from attention_atlas.model.serve.device import keep_freed_memory
from attention_atlas.model.text.interface import normalize_text
from attention_atlas.model.trace import storage
from attention_atlas.model.translator import Translator

CHUNK = 2048  # lines that are read, sorted by length and translated before the first of them is written


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    keep_freed_memory()
    if args.traces:
        with processes.process_group():
            return _write_traces(args)
    translator = Translator.load(args.checkpoint, args.device)
    direction = translator.check_direction(args.direction)
    lines: Iterable[str] = args.text or _lines(sys.stdin.buffer)
    if args.attention:
        lines = list(lines)
        if len(lines) != 1:
            raise ValueError(f"--attention takes one text, found {len(lines)}")
        trace = translator.translate(
            lines[0], direction, beam=args.beam, length_penalty=args.length_penalty, max_length=args.max_length
        )
        replace_file(args.attention, partial(storage.write_npz, trace))
    chunk_size = 1 if not args.text and sys.stdin.isatty() else CHUNK  # a person who types waits for each answer
    done = 0
    for chunk in batched(lines, chunk_size):
        for result in translate(translator, list(chunk), direction, args, first_line=done + 1):
            print(json.dumps(result, ensure_ascii=False) if args.json else result["translation"])
        done += len(chunk)
        sys.stdout.flush()


def _write_traces(args: argparse.Namespace) -> None:
    """Write each line's trace into the folder, named by the line's number, unless it is there already."""
    if args.beam > 1 or args.max_length or args.attention or args.json:
        raise ValueError("--traces are of greedy decoding, and go without --beam, --max-length, --attention and --json")
    translator = Translator.load(args.checkpoint, args.device)
    direction = translator.check_direction(args.direction)
    first = processes.rank() == 0
    # Standard input is shared by all processes: the first one reads it.
    (lines, *_) = processes.gather((args.text or list(_lines(sys.stdin.buffer))) if first else None)
    args.traces.mkdir(parents=True, exist_ok=True)
    sources = _encode_lines(translator, lines, direction)
    files = [(args.traces / f"{i + 1:06}.npz", lines[i]) for i, ids in enumerate(sources) if ids]
    fields = {"direction": direction, "digest": translator.digest}
    missing = [
        (path, line)
        for path, line in files[processes.rank() :: processes.world_size()]
        if not _is_trace_of(path, fields | {"source_text": normalize_text(line)})
    ]
    traces = translator.traces((line for _, line in missing), direction, batch_size=args.batch_size)
    with ThreadPoolExecutor(1) as writer:  # writes while further lines are translated
        waiting: deque[Future] = deque()
        for (path, _), trace in zip(missing, traces):
            waiting.append(writer.submit(replace_file, path, partial(storage.write_npz, trace)))
            if len(waiting) > args.batch_size:
                waiting.popleft().result()
        for future in waiting:
            future.result()
    processes.barrier()
    if first:
        print(f"{len(files)} traces in {args.traces}")


def _is_trace_of(path: Path, fields: dict) -> bool:
    """Return whether a file is a trace with these fields: the same text and the same weights."""
    try:
        return fields.items() <= storage.read_fields(path).items()
    except ValueError:
        return False


def translate(
    translator: Translator, lines: list[str], direction: str, args: argparse.Namespace, *, first_line: int = 1
) -> list[dict]:
    """Return each line's source, translation and target tokens, with args.json also their natural log-probabilities.

    An empty line has an empty translation. Raises ValueError naming a line that cannot be translated.
    """
    sources = _encode_lines(translator, lines, direction, first_line)
    rows = [i for i, ids in enumerate(sources) if ids]
    ids = [sources[i] for i in rows]
    targets = translator.generate(
        ids,
        direction,
        batch_size=args.batch_size,
        beam=args.beam,
        length_penalty=args.length_penalty,
        max_length=args.max_length,
    )
    results = [
        {"source": line, "translation": "", "tokens": [], "log_probabilities": [], "finished": True} for line in lines
    ]
    probabilities = translator.log_probabilities(ids, targets) if args.json else [[]] * len(rows)
    for i, target, log_p in zip(rows, targets, probabilities):
        # The model may spell line ends: the translation stays on one line.
        results[i]["translation"] = " ".join(translator.tokenizer.decode(target).splitlines())
        results[i]["tokens"] = list(translator.tokenizer.tokens(target))
        results[i]["log_probabilities"] = [round(p, 6) for p in log_p]
        results[i]["finished"] = target[-1] == translator.tokenizer.end_id
    return results


def _encode_lines(translator: Translator, lines: list[str], direction: str, first_line: int = 1) -> list[list[int]]:
    """Return each line's source ids, none for an empty line. Raises ValueError naming a line that cannot be encoded."""
    sources = []
    for number, line in enumerate(lines, first_line):
        with value_errors(f"line {number}"):
            sources.append(translator.encode(line, direction) if normalize_text(line) else [])
    return sources


def _lines(stream: Iterable[bytes]) -> Iterator[str]:
    """Yield lines as UTF-8, in any locale; only "\\n" (or "\\r\\n") ends a line."""
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error}") from error


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas translate", __doc__)
    add = parser.add_argument
    add("text", nargs="*", help="texts to translate; none: the lines of standard input")
    parser.add_checkpoint()
    add("--direction", help="such as de-en; default: the checkpoint's first")
    add("--beam", type=int, default=1, help="width of the beam search, 1 to 8; 1, the default, is greedy decoding")
    add("--length-penalty", type=float, default=0.0, help="alpha of the beam search's length penalty, default 0")
    add("--max-length", type=integer(), help="tokens of a translation; default: ten more than twice the source's")
    add("--batch-size", type=integer(), default=64, help="sentences translated together, default 64")
    add(
        "--json",
        action="store_true",
        help="a JSON object a line: source, translation, tokens, log_probabilities (natural), finished",
    )
    add(
        "--attention",
        type=Path,
        metavar="FILE",
        help="also write every attention map of one text, in NPZ (model/trace/storage.py)",
    )
    add(
        "--traces",
        type=Path,
        metavar="FOLDER",
        help="write each line's trace with every attention map as NPZ, 000001.npz for the first, and no translations",
    )
    add("--replace", action="store_true", help="overwrite the FILE of --attention")
    args = parser.parse_args(argv)
    if args.attention is not None:
        if args.attention.suffix != ".npz":
            raise ValueError(f"--attention writes NPZ: name a file that ends in .npz, found {args.attention.name}")
        refuse_existing(args.attention, args.replace)
    return args


if __name__ == "__main__":
    run_program(main)
