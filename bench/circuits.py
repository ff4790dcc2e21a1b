"""Measure circuits of a German-English checkpoint for four decisions, and their times: python -m bench.circuits --help

Each decision is a template with many fillings: edges are found by EAP and EAP-IG on some of its pairs and run alone on
others, at the ten sizes of the Mechanistic Interpretability Benchmark, next to whole nodes and random edges. Times are
medians on one pair of 16 + 16 tokens, next to the seconds that the page promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import torch

from attention_atlas.model.analysis import circuits
from attention_atlas.model.analysis.circuits.circuit import run_batches
from attention_atlas.model.analysis.circuits.graph import build_graph
from attention_atlas.model.analysis.circuits.passes import ScoringMethod
from attention_atlas.model.analysis.lenses.read import streams_of, top_pieces
from attention_atlas.model.analysis.why.methods import relevance
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import DEFAULT_CHECKPOINT, CommandLine, integer, parse_args, run_program
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.translator import Translator
from bench.common import Row, compare_with_bar, median_seconds, print_rows, write_json
from bench.made.shapes import SHAPES
from bench.why import LENGTH, inputs

BARS = {"AttnLRP": 0.1, "EAP": 1.0, "EAP-IG": 3.0, "one exact edge": 0.1, "lens": 0.3, "ten sizes, 32 pairs": 30.0}
LARGER = 8  # factor of the bars at OPUS-MT's size
SHARE = 0.05  # share of the edges at which faithfulness is reported


@dataclass(frozen=True)
class Task:
    """A sentence, the sentence with one word changed, fillings for other words of both, and the two target words."""

    sentence: str
    changed: str
    fillings: Mapping[str, Sequence[str]]
    words: tuple[str, str]


NOUNS = "Baum Tisch Vogel Mann Stuhl Ball Fisch Platz Freund Film Zug Tag"
PLACES = ("Park", "Wald", "Haus", "Hof")
TASKS = {
    "person: er, sie": Task(
        "Er arbeitet heute im Garten.",
        "Sie arbeitet heute im Garten.",
        {
            "arbeitet": ("spielt", "schläft", "steht", "sitzt", "wartet", "liest"),
            "heute": ("morgen", "wieder", "jetzt", "immer"),
            "Garten": PLACES,
        },
        ("He", "She"),
    ),
    "noun: Mann, Frau": Task(
        "Der Mann steht im Garten.",
        "Der Frau steht im Garten.",  # one word differs, and so the article stays
        {"steht": ("sitzt", "spielt", "schläft", "arbeitet", "wartet"), "Garten": PLACES, "Der": ("Ein", "Mein")},
        ("man", "woman"),
    ),
    "number: zwei, drei": Task(
        "Zwei Kinder spielen im Garten.",
        "Drei Kinder spielen im Garten.",
        {
            "Kinder": ("Hunde", "Frauen", "Männer", "Jungen", "Mädchen"),
            "spielen": ("sitzen", "stehen", "laufen", "warten", "schlafen"),
            "Garten": PLACES,
        },
        ("Two", "Three"),
    ),
    "negation: kein, ein": Task(
        "Das ist kein Hund.",
        "Das ist ein Hund.",
        {"Hund": NOUNS.split(), "Das": ("Dies", "Hier")},
        ("not", "a"),
    ),
}


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.circuits", __doc__)
    parser.add_argument("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT, help=f"default {DEFAULT_CHECKPOINT}")
    parser.add_argument("--times", action="store_true", help="only how long it takes")
    parser.add_argument("--runs", type=integer(), default=5, help="of which the median is taken, default 5")
    parser.add_json("also write the lines as one list")
    args = parse_args(parser, argv)
    translator = Translator.load(args.checkpoint, "cpu")
    rows = chain(() if args.times else decisions(translator), times(translator, args.runs))
    write_json(args.json, print_rows(rows))


def decisions(translator: Translator) -> Iterator[Row]:
    """Yield a row for each decision and scoring method."""
    for name, task in TASKS.items():
        pairs = circuits.make_pairs(
            translator, task.sentence, task.changed, task.fillings, task.words, direction="de-en"
        )
        study = circuits.Study.split(translator, pairs)
        for method in (ScoringMethod.EAP, ScoringMethod.EAP_IG):
            circuit = circuits.find_circuit(translator, study.discovery, method)
            curves = circuit.measure_faithfulness(study.held_out)
            at = curves.shares.index(SHARE)
            yield {
                "decision": name,
                "scores": method.value,
                "pairs": f"{len(study.discovery)} found, {len(study.held_out)} tested",
                "faithfulness": round(float(curves.best.faithfulness[at]), 3),
                "interval": [round(float(end), 3) for end in curves.best.interval[at]],
                "nodes": round(float(curves.nodes.faithfulness[at]), 3),
                "random": round(float(curves.random.faithfulness[at]), 3) + 0.0,  # no -0
                "CPR": round(curves.best.cpr, 3),
                "CMD": round(curves.best.cmd, 3),
                "CPR of nodes": round(curves.nodes.cpr, 3),
            }


def times(translator: Translator, runs: int) -> Iterator[Row]:
    """Yield rows for the checkpoint, and for random weights of its shape with OPUS-MT's widths."""
    yield from times_of_model(translator, str(translator.name), 1, runs)
    config = replace(SHAPES["opus-mt"], norm_first=True)
    larger = SimpleNamespace(  # what circuits need of a Translator
        config=config, model=Transformer(config).eval(), device=torch.device("cpu"), changes=NO_INTERVENTIONS
    )
    yield from times_of_model(larger, "opus-mt, norms first", LARGER, 1)


def times_of_model(translator, name: str, factor: int, runs: int) -> Iterator[Row]:
    """Yield a row for each work. factor: of the bars."""
    case, _ = inputs(translator.model)
    ids, target = case.source_ids[0].tolist(), case.decoder_ids[0].tolist()
    question = case.question
    pair = circuits.Pair(tuple(ids), (*ids[:3], 11, *ids[4:]), tuple(target), question.token_id, question.contrast_id)
    edges = build_graph(translator.config)
    (contrast,) = run_batches(translator, edges, [pair])
    lens = torch.eye(translator.config.d_model)
    circuit = circuits.find_circuit(translator, [pair], ScoringMethod.EAP)

    @torch.inference_mode()
    def read_stream() -> object:
        output = translator.model(case.source_ids, case.decoder_ids, record=True)
        return top_pieces(translator.model, streams_of(output, Side.ENCODER)[:, 0] @ lens)

    works: dict[str, Callable[[], object]] = {
        "AttnLRP": lambda: relevance.ATTN_LRP(replace(case)),
        "EAP": lambda: circuits.find_circuit(translator, [pair], ScoringMethod.EAP),
        "EAP-IG": lambda: circuits.find_circuit(translator, [pair], ScoringMethod.EAP_IG),
        "one exact edge": lambda: contrast.cut_edge(len(edges) // 2),
        "lens": read_stream,
        "ten sizes, 32 pairs": lambda: circuit.measure_faithfulness([pair] * 32),
    }
    for work, run in works.items():
        seconds = median_seconds(run, 1 if work.startswith("ten") else runs)
        setting = {"tokens": [LENGTH, LENGTH], "threads": torch.get_num_threads()}
        yield {"model": name, **setting, **compare_with_bar(work, seconds, BARS[work] * factor)}


if __name__ == "__main__":
    run_program(main)
