"""The command line of attention-atlas train."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.networks import DEFAULT, NETWORKS
from attention_atlas.model.program import CommandLine, integer
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.source import CORPORA, Source

MODEL = (
    "d_model",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "d_feedforward",
    "dropout",
    "attention_dropout",
    "max_length",
)
TRAIN = tuple(field.name for field in fields(TrainConfig) if type(field.default) in (int, float))
DIRECTIONS, VOCABULARY_SIZE, WORDS = ("de-en",), 8000, "words"
ON_RESUME = ("max_updates", "cooldown_updates", "evaluate_every")


def parse(argv: list[str] | None, description: str, source: Source = CORPORA) -> argparse.Namespace:
    """Parse the arguments of the program; args.repeat is a list of (corpus, times)."""
    parser = CommandLine(source.program, description)
    add = parser.add_argument
    # Under torchrun, only --run-dir works: torchrun takes --run as an abbreviation of its own options.
    add(
        "--run-dir",
        "--run",
        dest="run",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder of the run: state, log, settings",
    )
    add("--out", type=Path, help="checkpoint folder to write at the end")
    add("--replace", action="store_true", help="write over a checkpoint that is in --out")
    add("--resume", action="store_true", help="continue the run in --run-dir")
    add("--init", type=Path, help="start from the weights and tokenizer of this checkpoint folder")
    add("--directions", nargs="+", help=f"default {' '.join(DIRECTIONS)}")
    add(
        "--repeat",
        nargs=2,
        action="append",
        default=[],
        metavar=("CORPUS", "TIMES"),
        help="how often a corpus is seen in an epoch, such as multi30k 2 or news 0.5 (may be changed on --resume)",
    )
    add("--probes", type=Path, help="JSON list of sentences to record in history.npz while the model trains")
    add("--updates-before", type=int, default=0, help="updates behind the weights of --init that no history counts")
    add("--device", help="cpu, cuda or mps")
    add("--bf16", action="store_true", help="bfloat16 autocast")
    add(
        "--compile",
        action="store_true",
        help="compile the network and replay it as CUDA graphs: takes a minute, and pays in long runs on a GPU (may be "
        "changed on --resume)",
    )
    add(
        "--workers",
        type=integer(0),
        default=0,
        help="processes that draw the next epochs meanwhile, where an accelerator would wait for them; default 0",
    )
    add("--tokenizer", type=Path, help="a tokenizer.model to use instead of training one")
    add(
        "--tokenizer-directions",
        nargs="+",
        help="learn the pieces from these directions' corpora; default: --directions",
    )
    add(
        "--tokenizer-algorithm",
        choices=("unigram", "bpe", WORDS),
        default="unigram",
        help="words: the most frequent words between blanks, others are unknown; default unigram",
    )
    add("--vocabulary-size", type=integer(), help=f"default {VOCABULARY_SIZE}")
    add("--family", choices=tuple(NETWORKS), help=f"which network to train; default {DEFAULT}")
    add("--no-attention", action="store_true", help="of the family gru: the decoder has one vector of the source")
    add("--post-norm", action="store_true", help="layer norm after the residual sum, as in the paper")
    source.add_options(parser)
    defaults = {f: getattr(ModelConfig(8), f) for f in MODEL}
    defaults |= {name: getattr(source.config(), name) for name in (*TRAIN, *source.added)}
    for name, default in defaults.items():
        note = " (may be changed on --resume)" if name in (*ON_RESUME, *source.added) else ""
        note += "; 0: a constant learning rate until the cool-down" if name == "warmup_updates" else ""
        add(option(name), type=type(default), help=f"default {default}{note}")
    args = parser.parse_args(argv)
    args.repeat = [(name, float(times)) for name, times in args.repeat]
    return args


def option(name: str) -> str:
    """Return the command-line option that sets a field of a config."""
    flags = {"norm_first": "post-norm", "attention": "no-attention"}
    return "--" + flags.get(name, name).replace("_", "-")


def options_set(args: argparse.Namespace, names: Iterable[str]) -> dict:
    """Return those of the options that the command line sets."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def sizes(args: argparse.Namespace) -> dict:
    """Return the network's settings on the command line, by the fields of its config."""
    flags = {"norm_first": args.post_norm, "attention": args.no_attention}
    # A vocabulary of words may be smaller than the size that was asked for.
    exact = () if args.tokenizer_algorithm == WORDS else ("vocabulary_size",)
    sizes = options_set(args, (*exact, *MODEL))
    return sizes | {name: False for name, is_given in flags.items() if is_given}


def changed(args: argparse.Namespace, source: Source) -> dict:
    """Return the settings on the command line that --resume may change."""
    return options_set(args, (*ON_RESUME, *source.added)) | ({"repeats": tuple(args.repeat)} if args.repeat else {})
