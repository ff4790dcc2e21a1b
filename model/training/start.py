"""What a run is started with: the settings and the tokenizer in its folder. A run that goes on keeps them."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path

from attention_atlas.model import checkpoint
from attention_atlas.model.config import ModelConfig, from_json
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.training import corpora, options
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.source import Source

COOLDOWN_SHARE = 5  # of a short run, the last fifth at most is its cooldown, unless the command line says otherwise
SETTINGS, STATE = "settings.json", "state.safetensors"
MIXED = ("substitution", "frame_pairs", "composed_pairs", "noise")  # settings of recipes/mixture.py
SAYINGS = "sayings"  # a corpus of recipes/


def read(
    folder: Path, config: type[TrainConfig] = TrainConfig
) -> tuple[ModelConfig | RecurrentConfig, TrainConfig, TextTokenizer]:
    """What a run was started with; settings of MIXED are left out where config does not have them. ValueError if the
    folder holds no run."""
    if not (folder / SETTINGS).is_file():
        raise ValueError(f"{folder / SETTINGS} is missing: no run to continue there")
    settings = checkpoint.read_json(folder / SETTINGS)
    known = config.__dataclass_fields__
    try:
        shape = networks.named(settings.get("network", networks.DEFAULT)).config
        return (
            from_json(shape, settings["model"]),
            from_json(config, {name: v for name, v in settings["train"].items() if name in known or name not in MIXED}),
            checkpoint.read_tokenizer(folder, settings.get("tokenizer")),
        )
    except (KeyError, TypeError, OSError, ValueError) as error:
        raise ValueError(f"{folder} holds no run that can be continued: {error}") from error


def check_continues(folder: Path, source: Source) -> None:
    """ValueError if the run in the folder trains on more than the source has."""
    read(folder, source.config)
    settings = checkpoint.read_json(folder / SETTINGS)["train"]
    lacking = [name for name in MIXED if settings.get(name) and name not in source.added]
    lacking += [SAYINGS] if not source.added and SAYINGS in dict(settings.get("repeats", ())) else []
    if lacking:
        raise ValueError(
            f"the run in {folder} also trains on made sentences ({', '.join(lacking)}): "
            f"python -m recipes.train --run-dir {folder} --resume continues it, in a checkout of the repository"
        )


def begin(args: argparse.Namespace, found: list[corpora.Splits], source: Source) -> None:
    """Write what a new run is started with. ValueError if there is a run already, or for a size that its network does
    not have or its tokenizer or weights contradict."""
    if (args.run / STATE).exists():
        raise ValueError(f"{args.run} already holds a run: continue it with --resume or name another folder")
    settings = options.given(args, (*options.TRAIN, *source.added))
    if "cooldown_updates" not in settings and "max_updates" in settings:
        fitting = settings["max_updates"] // COOLDOWN_SHARE
        if fitting < source.config.cooldown_updates:
            settings["cooldown_updates"] = fitting
            print(f"the learning rate falls over the last {fitting} updates (--cooldown-updates names another number)")
    config = source.config(
        **settings,
        directions=tuple(args.directions or options.DIRECTIONS),
        bf16=args.bf16,
        repeats=tuple(args.repeat),
    )
    sizes = options.sizes(args)
    if args.init:
        loaded = checkpoint.load(args.init)
        checkpoint.check_fit(args.init, loaded.model.config, loaded.tokenizer, config.directions)
        tokenizer, shape = loaded.tokenizer, loaded.model.config
        shape = replace(shape, dropout=sizes.pop("dropout", type(shape).dropout))
        _check_family(args, shape, f"the checkpoint {args.init}")
    else:
        tokenizer = Tokenizer.load(args.tokenizer) if args.tokenizer else _new_tokenizer(args, found, source)
        family = networks.named(args.family or networks.DEFAULT).config
        named = {field.name for field in fields(family)} - {"vocabulary_size"}
        taken = {name: value for name, value in sizes.items() if name in named}
        shape = family(vocabulary_size=len(tokenizer), pad_id=tokenizer.pad_id, **taken)
    _check_same(sizes, shape, f"the checkpoint {args.init}" if args.init else "the network or its tokenizer")
    args.run.mkdir(parents=True, exist_ok=True)
    _write(args.run, shape, config, tokenizer)


def go_on(args: argparse.Namespace, source: Source) -> None:
    """Write what --resume may change. ValueError for any other option that contradicts what the run was started with:
    the command that started it may be given again."""
    shape, config, tokenizer = read(args.run, source.config)
    whose = f"the run in {args.run}"
    _check_family(args, shape, whose)
    _check_same(options.sizes(args), shape, whose)
    fixed = options.given(args, [name for name in options.TRAIN if name not in options.ON_RESUME])
    if args.directions:
        fixed["directions"] = tuple(args.directions)
    if args.bf16:
        fixed["bf16"] = True
    _check_same(fixed, config, whose)
    _write(args.run, shape, replace(config, **options.changed(args, source)), tokenizer)


def _new_tokenizer(args: argparse.Namespace, found: list[corpora.Splits], source: Source) -> Tokenizer:
    size = args.vocabulary_size or options.VOCABULARY_SIZE
    tokenizer = corpora.train_tokenizer(
        source.find(args, args.tokenizer_directions) if args.tokenizer_directions else found,
        vocabulary_size=size,
        algorithm=args.tokenizer_algorithm,
        exact=args.vocabulary_size is not None,
    )
    if len(tokenizer) < size:
        print(f"the vocabulary has {len(tokenizer):,} pieces, as many as the corpus gives, in place of {size:,}")
    return tokenizer


def _check_family(args: argparse.Namespace, shape: object, whose: str) -> None:
    if args.family and not isinstance(shape, networks.named(args.family).config):
        raise ValueError(f"--family {args.family}: {whose} is of another")


def _check_same(given: dict, kept: object, whose: str) -> None:
    """ValueError for a setting that was given and is another one there."""
    for name, value in given.items():
        if not hasattr(kept, name):
            raise ValueError(f"{options.option(name)}: {whose} has no {name}")
        if getattr(kept, name) != value:
            raise ValueError(f"{options.option(name)} asks for {value!r}, but {whose} has {getattr(kept, name)!r}")


def _write(folder: Path, shape: ModelConfig | RecurrentConfig, config: TrainConfig, tokenizer: TextTokenizer) -> None:
    network = next(name for name, entry in networks.NETWORKS.items() if type(shape) is entry.config)
    settings = {"network": network, "model": asdict(shape), "train": asdict(config)}
    checkpoint.write_json(folder / SETTINGS, {**settings, "tokenizer": tokenizer.write(folder)})
