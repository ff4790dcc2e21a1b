"""What circuits of a German-English checkpoint keep of four decisions, and how long it takes.

python -m bench.circuits --help

Each decision is a template with many fillings: edges are found by EAP and EAP-IG on some of its pairs and run alone on
others, at the ten sizes of the Mechanistic Interpretability Benchmark, beside whole nodes and edges drawn by lot. Times
are medians over one pair of 16 + 16 tokens, beside the seconds that the page promises.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.circuit import run_batches
from attention_atlas.model.analysis.circuits.graph import build_graph
from attention_atlas.model.analysis.circuits.passes import ScoringMethod
from attention_atlas.model.analysis.lenses.decoder import streams_of
from attention_atlas.model.analysis.lenses.encoder import top_pieces
from attention_atlas.model.analysis.why.methods import relevance
from attention_atlas.model.program import CHECKPOINT, add_json, command_line, integer, parse_args, program
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator
from bench.why import LENGTH, SIZES, inputs, timed

BARS = {"AttnLRP": 0.1, "EAP": 1.0, "EAP-IG": 3.0, "one exact edge": 0.1, "lens": 0.3, "ten sizes, 32 pairs": 30.0}
LARGER = 8  # times as long, of OPUS-MT's size
SHARE = 0.05  # of the edges, at which a bar stands


@dataclass(frozen=True)
class Task:
    """A sentence, the same with a word changed, others for further words of both, and the two tokens."""

    sentence: str
    changed: str
    fillings: Mapping[str, Sequence[str]]
    words: tuple[str, str]


WHERE = ("Park", "Wald", "Haus", "Hof")
TASKS = {
    "person: er, sie": Task(
        "Er arbeitet heute im Garten.",
        "Sie arbeitet heute im Garten.",
        {
            "arbeitet": ("spielt", "schläft", "steht", "sitzt", "wartet", "liest"),
            "heute": ("morgen", "wieder", "jetzt", "immer"),
            "Garten": WHERE,
        },
        ("He", "She"),
    ),
    "noun: Mann, Frau": Task(
        "Der Mann steht im Garten.",
        "Der Frau steht im Garten.",  # one word differs, and so the article stays
        {"steht": ("sitzt", "spielt", "schläft", "arbeitet", "wartet"), "Garten": WHERE, "Der": ("Ein", "Mein")},
        ("man", "woman"),
    ),
    "number: zwei, drei": Task(
        "Zwei Kinder spielen im Garten.",
        "Drei Kinder spielen im Garten.",
        {
            "Kinder": ("Hunde", "Frauen", "Männer", "Jungen", "Mädchen"),
            "spielen": ("sitzen", "stehen", "laufen", "warten", "schlafen"),
            "Garten": WHERE,
        },
        ("Two", "Three"),
    ),
    "negation: kein, ein": Task(
        "Das ist kein Hund.",
        "Das ist ein Hund.",
        {
            "Hund": (
                "Baum",
                "Tisch",
                "Vogel",
                "Mann",
                "Stuhl",
                "Ball",
                "Fisch",
                "Platz",
                "Freund",
                "Film",
                "Zug",
                "Tag",
            ),
            "Das": ("Dies", "Hier"),
        },
        ("not", "a"),
    ),
}


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    translator = Translator.load(args.checkpoint, "cpu")
    lines = []
    for line in chain(() if args.times else decisions(translator), times(translator, args.runs)):
        print(json.dumps(line, ensure_ascii=False), flush=True)
        lines.append(line)
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def decisions(translator: Translator) -> Iterator[dict[str, object]]:
    """A line for each decision and way of scoring."""
    for name, task in TASKS.items():
        pairs = circuits.make_pairs(
            translator, task.sentence, task.changed, task.fillings, task.words, direction="de-en"
        )
        study = circuits.Study.split(translator, pairs)
        for method in (ScoringMethod.EAP, ScoringMethod.EAP_IG):
            found = circuits.find_circuit(translator, study.discovery, method)
            tested = found.measure_faithfulness(study.held_out)
            at = tested.shares.index(SHARE)
            yield {
                "decision": name,
                "scores": method.value,
                "pairs": f"{len(study.discovery)} found, {len(study.held_out)} tested",
                "faithfulness": round(float(tested.best.faithfulness[at]), 3),
                "interval": [round(float(end), 3) for end in tested.best.interval[at]],
                "nodes": round(float(tested.nodes.faithfulness[at]), 3),
                "random": round(float(tested.random.faithfulness[at]), 3) + 0.0,  # no -0
                "CPR": round(tested.best.cpr, 3),
                "CMD": round(tested.best.cmd, 3),
                "CPR of nodes": round(tested.nodes.cpr, 3),
            }


def times(translator: Translator, runs: int) -> Iterator[dict[str, object]]:
    """A line for each work, of the checkpoint, and of random weights in its shape with OPUS-MT's widths."""
    yield from _times(translator, str(translator.name), 1, runs)
    larger = replace(SIZES["opus-mt"], norm_first=True)
    other = Stand(larger)
    yield from _times(other, "opus-mt, norms first", LARGER, 1)


class Stand:
    """What circuits ask of a translator, with random weights."""

    def __init__(self, config) -> None:
        from attention_atlas.model.nets.transformer import Transformer

        self.config, self.model, self.device = config, Transformer(config).eval(), torch.device("cpu")
        self.changes = NO_INTERVENTIONS


def _times(translator, name: str, factor: int, runs: int) -> Iterator[dict[str, object]]:
    case, _ = inputs(translator.model)
    ids, written = case.source_ids[0].tolist(), case.decoder_ids[0].tolist()
    question = case.question
    pair = circuits.Pair(tuple(ids), (*ids[:3], 11, *ids[4:]), tuple(written), question.token_id, question.contrast_id)
    edges = build_graph(translator.config)
    (contrast,) = run_batches(translator, edges, [pair])
    lens = torch.eye(translator.config.d_model)

    @torch.inference_mode()
    def grid() -> object:
        output = translator.model(case.source_ids, case.decoder_ids, record=True)
        return top_pieces(translator.model, streams_of(output, Side.ENCODER)[:, 0] @ lens)

    works: dict[str, Callable[[], object]] = {
        "AttnLRP": lambda: relevance.ATTN_LRP(replace(case)),
        "EAP": lambda: circuits.find_circuit(translator, [pair], ScoringMethod.EAP),
        "EAP-IG": lambda: circuits.find_circuit(translator, [pair], ScoringMethod.EAP_IG),
        "one exact edge": lambda: contrast.cut_edge(len(edges) // 2),
        "lens": grid,
        "ten sizes, 32 pairs": lambda: found.measure_faithfulness([pair] * 32),
    }
    found = circuits.find_circuit(translator, [pair], ScoringMethod.EAP)
    for what, run in works.items():
        seconds, _ = timed(run, 1 if what.startswith("ten") else runs)
        bar = BARS[what] * factor
        yield {
            "model": name,
            "what": what,
            "tokens": [LENGTH, LENGTH],
            "threads": torch.get_num_threads(),
            "seconds": round(seconds, 4),
            "bar_seconds": bar,
            "met": seconds <= bar,
        }


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.circuits", __doc__)
    parser.add_argument("--checkpoint", type=Path, default=CHECKPOINT, help=f"default {CHECKPOINT}")
    parser.add_argument("--times", action="store_true", help="only how long it takes")
    parser.add_argument("--runs", type=integer(), default=5, help="of which the median is taken, default 5")
    add_json(parser, "also write the lines as one list")
    return parse_args(parser, argv)


if __name__ == "__main__":
    program(main)
