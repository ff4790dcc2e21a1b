"""Models of one's own, at the sizes of published ones with random weights: python -m bench.own --help

    step      one decoding step next to what reading its weights takes, and a translation with every map next to
              transformers' MarianMTModel with eager attention at its better number of threads
    opening   a folder as the hub has it, an old pickle, and a converted one: seconds up to the first translation, in
              all and part by part, and memory that is no file's. Random weights never end a sentence, so it gets as
              many tokens as its source has, as a real one does; `endless` is without that limit
    visitors  50 visitors at once with texts of 400 words, and of as many tokens as may be or as --tokens says: the
              app's memory, beside the weights and in all, and its answers

Figures are medians, and ratios hold within one run.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median

import torch

from attention_atlas.model import processor
from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.nets.decoder_step import DecoderStep
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.program import CHECKPOINT, add_json, command_line, parse_args, program
from attention_atlas.model.translator import Translator
from bench import load, speed
from bench.made import shapes
from bench.speed import Measurement, take_turns

TEXT = "Zwei Kinder bauen am Strand eine Burg aus Sand."
TOKENS, VISITORS, WORDS = 32, 50, 400
SHIPPED = "shipped"


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    torch.set_num_threads(args.threads)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes:
            for section in args.sections if shape != SHIPPED else [one for one in args.sections if one != "opening"]:
                found += (rows := SECTIONS[section](shape, Path(folder) / f"{shape}-{section}", args))
                print(speed.table(rows), flush=True)
                gc.collect()
    if args.json:
        rows = [
            {"name": "processor", "value": f"{processor.name()}, {torch.get_num_threads()} cores", "unit": ""},
            *map(asdict, found),
        ]
        args.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def step(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """SHIPPED stands for the checkpoint of --checkpoint, without the peer."""
    peer = None if shape == SHIPPED else shapes.theirs(shape)
    where = args.checkpoint if peer is None else shapes.write(peer, folder / "opus-mt-de-en")
    translator = Translator.load(where, "cpu")
    request = Request(TEXT, tuple(translator.encode(TEXT)), translator.directions[0])
    read = weights_read(translator)
    buffer = torch.ones(read // 4)
    with torch.inference_mode():
        memory, step = translator.model.encode(torch.tensor([request.source_ids])), DecoderStep(translator.model)
    seconds = take_turns(
        {"step": partial(steps, translator, memory, step), "reading": partial(torch.sum, buffer)},
        args.repeats,
        translator.device,
    )
    each = seconds["step"] / TOKENS
    found = [
        Measurement(f"{shape}_weights_read", read / 1e6, "MB"),
        Measurement(f"{shape}_step", 1e3 * each, "ms"),
        Measurement(f"{shape}_bandwidth", read / seconds["reading"] / 1e9, "GB/s"),
        Measurement(f"{shape}_step_by_roofline", each / seconds["reading"], "x"),
    ]
    del buffer
    ours = partial(speed.translate_with_maps, translator, [request], TOKENS)
    if peer is None:
        return [
            *found,
            Measurement(
                f"{shape}_translate_maps",
                1e3 * take_turns({"maps": ours}, args.repeats, translator.device)["maps"],
                "ms",
            ),
        ]
    source = torch.tensor([request.source_ids])
    ways = {
        "ours": ours,
        **{f"theirs_{n}": partial(generate, peer, source, n, args.threads) for n in range(1, args.threads + 1)},
    }
    seconds = take_turns(ways, args.repeats, translator.device)
    best = min(value for name, value in seconds.items() if name != "ours")
    found += [Measurement(f"{shape}_translate_maps_{name}", 1e3 * value, "ms") for name, value in seconds.items()]
    return [*found, Measurement(f"{shape}_translate_maps_ratio", best / seconds["ours"], "x")]


def weights_read(translator: Translator) -> int:
    """Bytes of weights that a step reads: the decoder's but for what makes keys and values of the source, and the
    output matrix; of the target's embedding only a row."""
    model = translator.model
    of_source = [layer.cross_attention.projection for layer in model.decoder.layers]  # queries, keys, values
    once = sum(parameter.nbytes * 2 // 3 for projection in of_source for parameter in projection.parameters())
    bias = 0 if model.output_bias is None else model.output_bias.nbytes
    return sum(p.nbytes for p in model.decoder.parameters()) - once + model.output_matrix.nbytes + bias


@torch.inference_mode()
def steps(translator: Translator, memory: SourceMemory, step: DecoderStep) -> None:
    """Take the cached step and choose the next token, TOKENS times; encoding and building the step are not included."""
    cache, ids = translator.model.new_cache(), torch.tensor([translator.tokenizer.begin_id])
    for _ in range(TOKENS):
        ids = torch.from_numpy(step(ids, memory, cache).numpy().argmax(-1))


@torch.inference_mode()
def generate(peer, source: torch.Tensor, threads: int, after: int) -> None:
    """TOKENS greedy tokens with every map, on so many threads."""
    torch.set_num_threads(threads)
    try:
        peer.generate(
            source,
            attention_mask=torch.ones_like(source),
            num_beams=1,
            do_sample=False,
            min_new_tokens=TOKENS,
            max_new_tokens=TOKENS,
            return_dict_in_generate=True,
            output_attentions=True,
        )
    finally:
        torch.set_num_threads(after)


def opening(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """The files are warm: written just before."""
    peer = shapes.theirs(shape)
    direct = shapes.write(peer, folder / "opus-mt-de-en")
    pickled = shapes.write(peer, folder / "pickled" / "opus-mt-de-en", pickled=True)
    del peer
    gc.collect()
    started = time.monotonic()
    python("-m", "attention_atlas.model.convert", str(direct), "--out", str(folder / "converted"))
    found = [Measurement(f"{shape}_conversion", time.monotonic() - started, "s")]
    endless = opened(folder / "converted", 1)
    for name, where in (("converted", folder / "converted"), ("direct", direct), ("old_pickle", pickled)):
        parts = opened(where, args.starts, tokens=int(endless["source"]))
        found += [
            Measurement(f"{shape}_{name}_opening_to_first_translation", parts["first"], "s"),
            Measurement(f"{shape}_{name}_anonymous_memory", parts["memory"], "MB"),
            Measurement(f"{shape}_{name}_anonymous_by_weights", parts["memory"] / parts["weights"], "x"),
        ]
        if name == "converted":
            found += [
                Measurement(f"{shape}_of_that_opening", parts["open"], "s"),
                Measurement(f"{shape}_of_that_encoder", parts["encoder"], "s"),
                Measurement(f"{shape}_of_that_steps", parts["steps"], "s"),
                Measurement(f"{shape}_of_that_number_of_steps", parts["target"], "steps"),
                Measurement(f"{shape}_of_that_each_step", 1e3 * parts["steps"] / parts["target"], "ms"),
                Measurement(f"{shape}_of_that_maps_and_trace", parts["maps"], "s"),
                Measurement(f"{shape}_endless_opening_to_first_translation", endless["first"], "s"),
                Measurement(f"{shape}_endless_number_of_steps", endless["target"], "steps"),
            ]
    return found


def opened(folder: Path, starts: int, *, tokens: int | None = None) -> dict[str, float]:
    """What bench.made.opened tells, the median of so many processes. tokens: of the translation at most."""
    limit = () if tokens is None else ("--tokens", str(tokens))
    told = [json.loads(python("-m", "bench.made.opened", str(folder), TEXT, *limit)) for _ in range(starts)]
    return {name: median(one[name] for one in told) for name in told[0]}


def python(*arguments: str) -> str:
    """What a Python process writes. ValueError if it fails."""
    done = subprocess.run([sys.executable, *arguments], cwd=load.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{' '.join(arguments)[:200]} ended with status {done.returncode}")
    return done.stdout


def visitors(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """Each in a session of their own, all at once; memory is watched until the last has gone. Of a converted folder:
    one of others' form lies in memory twice, once as the file that the system may forget."""
    model = args.checkpoint
    if shape != SHIPPED:
        theirs, model = shapes.write(shapes.theirs(shape), folder / "opus-mt-de-en"), folder / "converted"
        python("-m", "attention_atlas.model.convert", str(theirs), "--out", str(model))
    translator = Translator.load(model, "cpu")
    limit, weights = min(translator.max_tokens, args.tokens), translator.weight_bytes
    text = longest(translator, limit)
    del translator
    gc.collect()
    found = []
    (folder / "none").mkdir(parents=True)
    with load.running_app(["--checkpoints", str(folder / "none"), "--model", str(model)]) as (port, pid):
        most, ended = [load.memory(pid)], threading.Event()

        def watch() -> None:
            while not ended.wait(0.2):
                most[0] = max(most[0], load.memory(pid))

        threading.Thread(target=watch, daemon=True).start()
        texts = {f"{WORDS}_words": " ".join(["Hund"] * WORDS), f"{limit}_tokens": text}
        for name, text in texts.items():
            outcomes: Counter[str] = Counter()
            threads = [
                threading.Thread(target=visit, args=(port, f"{text}{'.' * (number % 3)}"[:9000], outcomes))
                for number in range(args.visitors)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            found += [
                Measurement(f"{shape}_visitors_{name}_{outcome}", count, f"of {args.visitors}")
                for outcome, count in sorted(outcomes.items())
            ]
            found += [
                Measurement(f"{shape}_visitors_{name}_peak_memory", most[0] / 1000, "GB"),
                Measurement(f"{shape}_visitors_{name}_beside_weights", most[0] / 1000 - weights / 1e9, "GB"),
            ]
        ended.set()
    return found


def longest(translator: Translator, limit: int) -> str:
    """Words of which so many fit."""
    words = ["Hund"]
    while len(translator.tokenizer.encode_source(" ".join([*words, "Hund", "..."]), "en", "de")) <= limit:
        words.append("Hund")
    return " ".join(words)


def visit(port: int, text: str, outcomes: Counter[str]) -> None:
    """One visit to the page, and a call of the same text, whose answer says what became of it."""
    caller = load.Caller(port)
    try:
        caller.visit(text)
        answer = caller.call("translate", [text, "", 1])
        outcome = answer.get("error", answer["status"])
    except (OSError, ValueError, http.client.HTTPException) as error:
        outcome = f"failed, {type(error).__name__}"
    outcomes[outcome] += 1


SECTIONS = {"step": step, "opening": opening, "visitors": visitors}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.own", __doc__)
    add = parser.add_argument
    add("--sections", nargs="+", choices=tuple(SECTIONS), default=["step", "opening"], help="default: step opening")
    add(
        "--shapes",
        nargs="+",
        choices=(*shapes.SHAPES, SHIPPED),
        default=["opus-mt"],
        help="default: opus-mt; what is shipped has no section opening",
    )
    add("--checkpoint", type=Path, default=CHECKPOINT, help=f"what is shipped, default {CHECKPOINT}")
    add("--threads", type=int, default=2, help="of torch, default 2")
    add("--repeats", type=int, default=9, help="of each way, default 9")
    add("--starts", type=int, default=3, help="new processes for each way of opening, default 3")
    add("--tokens", type=int, default=1 << 20, help="of the visitors' longer text; default: as many as may be")
    add("--visitors", type=int, default=VISITORS, help=f"at once, default {VISITORS}")
    add_json(parser)
    args = parse_args(parser, argv)
    if args.shapes == [SHIPPED] and args.sections == ["opening"]:
        parser.error("what is shipped has no section opening")
    return args


if __name__ == "__main__":
    program(main)
