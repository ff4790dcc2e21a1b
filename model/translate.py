"""Translate lines of text: attention-atlas translate --help

Lines come from the arguments, or else from standard input; each gives one line on standard output, in their order.
With --traces each gives a file instead. Under torchrun, processes share the lines:

    torchrun --nproc-per-node 2 -m attention_atlas translate --traces maps < lines.txt

A run that was stopped goes on when it is started again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

from attention_atlas.model.files import replace_file
from attention_atlas.model.program import add_checkpoint, check_free, command_line, integer, program
from attention_atlas.model.serve import processes
from attention_atlas.model.serve.device import keep_freed_memory
from attention_atlas.model.text.interface import normalize_text
from attention_atlas.model.trace import storage
from attention_atlas.model.translator import Translator

LINES_AT_ONCE = 2048  # read, sorted by length and translated before the first of them is written


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
        _write_attention(translator, lines, direction, args)
    # Somebody who types wants each answer at once.
    at_once = 1 if not args.text and sys.stdin.isatty() else LINES_AT_ONCE
    done = 0
    for chunk in _chunks(lines, at_once):
        for result in translate(translator, chunk, direction, args, first_line=done + 1):
            print(json.dumps(result, ensure_ascii=False) if args.json else result["translation"])
        done += len(chunk)
        sys.stdout.flush()


def _write_attention(translator: Translator, lines: list[str], direction: str, args: argparse.Namespace) -> None:
    if len(lines) != 1:
        raise ValueError(f"--attention takes one text, found {len(lines)}")
    trace = translator.translate(lines[0], direction, beam=args.beam, length_penalty=args.length_penalty)
    replace_file(args.attention, lambda partial: storage.write_npz(trace, partial))


def _write_traces(args: argparse.Namespace) -> None:
    """Each line's trace into the folder, named by the line's number; what is there already is kept."""
    if args.beam > 1 or args.attention or args.json:
        raise ValueError("--traces are of greedy decoding, and go without --beam, --attention and --json")
    translator = Translator.load(args.checkpoint, args.device)
    direction = translator.check_direction(args.direction)
    first = processes.rank() == 0
    # Of a stream that all processes share, one reads.
    (lines, *_) = processes.gather((args.text or list(_lines(sys.stdin.buffer))) if first else None)
    args.traces.mkdir(parents=True, exist_ok=True)
    sources = _encoded(translator, lines, direction)
    named = [(args.traces / f"{i + 1:06}.npz", lines[i]) for i, ids in enumerate(sources) if ids]
    wanted = {"direction": direction, "digest": translator.digest}
    missing = [
        (path, line)
        for path, line in named[processes.rank() :: processes.world_size()]
        if not _is_there(path, wanted | {"source_text": normalize_text(line)})
    ]
    traces = translator.traces((line for _, line in missing), direction, batch_size=args.batch_size)
    with ThreadPoolExecutor(1) as writer:  # the disk is waited for while others are translated
        waiting: deque[Future] = deque()
        for (path, _), trace in zip(missing, traces):
            waiting.append(writer.submit(replace_file, path, partial(storage.write_npz, trace)))
            if len(waiting) > args.batch_size:
                waiting.popleft().result()
        for written in waiting:
            written.result()
    processes.barrier()
    if first:
        print(f"{len(named)} traces in {args.traces}")


def _is_there(path: Path, wanted: dict) -> bool:
    """Whether this file is a trace of the same text by the same weights."""
    try:
        found = storage.read_fields(path)
    except ValueError:
        return False
    return all(found.get(name) == value for name, value in wanted.items())


def translate(
    translator: Translator, lines: list[str], direction: str, args: argparse.Namespace, *, first_line: int = 1
) -> list[dict]:
    """Each line's source, translation and target tokens; with args.json their log-probabilities (natural) too.

    An empty line gives an empty translation. ValueError names the line that cannot be translated.
    """
    sources = _encoded(translator, lines, direction, first_line)
    rows = [i for i, ids in enumerate(sources) if ids]
    wanted = [sources[i] for i in rows]
    targets = translator.generate(
        wanted, direction, batch_size=args.batch_size, beam=args.beam, length_penalty=args.length_penalty
    )
    results = [
        {"source": line, "translation": "", "tokens": [], "log_probabilities": [], "finished": True} for line in lines
    ]
    probabilities = translator.log_probabilities(wanted, targets) if args.json else [[]] * len(rows)
    for i, ids, log_p in zip(rows, targets, probabilities):
        # One line in, one line out, whatever characters the model spells.
        results[i]["translation"] = " ".join(translator.tokenizer.decode(ids).splitlines())
        results[i]["tokens"] = list(translator.tokenizer.tokens(ids))
        results[i]["log_probabilities"] = [round(p, 6) for p in log_p]
        results[i]["finished"] = ids[-1] == translator.tokenizer.end_id
    return results


def _encoded(translator: Translator, lines: list[str], direction: str, first_line: int = 1) -> list[list[int]]:
    """Each line's source ids, none for an empty one. ValueError names the line that cannot be translated."""
    sources = []
    for number, line in enumerate(lines, first_line):
        try:
            sources.append(translator.encode(line, direction) if normalize_text(line) else [])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return sources


def _lines(stream: Iterable[bytes]) -> Iterator[str]:
    """Lines as UTF-8, whatever the locale; only "\\n" (or "\\r\\n") ends one."""
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error}") from error


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while chunk := list(islice(iterator, size)):
        yield chunk


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas translate", __doc__)
    add = parser.add_argument
    add("text", nargs="*", help="texts to translate; none: the lines of standard input")
    add_checkpoint(parser)
    add("--direction", help="such as de-en; default: the checkpoint's first")
    add("--beam", type=int, default=1, help="width of the beam search, 1 to 8; 1, the default, is greedy decoding")
    add("--length-penalty", type=float, default=0.0, help="alpha of the beam search's length penalty, default 0")
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
    add("--replace", action="store_true", help="write over the FILE of --attention")
    args = parser.parse_args(argv)
    if args.attention is not None:
        if args.attention.suffix != ".npz":
            raise ValueError(f"--attention writes NPZ: name a file that ends in .npz, found {args.attention.name}")
        check_free(args.attention, args.replace)
    return args


if __name__ == "__main__":
    program(main)
