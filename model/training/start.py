"""Start or resume a training run: the settings and the tokenizer in its folder."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path

from attention_atlas.model import checkpoint
from attention_atlas.model.config import ModelConfig, from_json
from attention_atlas.model.files import value_errors
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.serve import processes
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.text.words import WordVocabulary
from attention_atlas.model.training import options
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.packing import can_pack
from attention_atlas.model.training.source import Source
from attention_atlas.model.training.sources.readers import Splits

COOLDOWN_SHARE = 5  # the default cool-down of a short run is its last fifth
SETTINGS, STATE = "settings.json", "state.safetensors"
RECIPE_SETTINGS = ("substitution", "frame_pairs", "composed_pairs", "noise")  # of recipes/mixture.py
SAYINGS = "sayings"  # the name of a corpus in recipes/


def read_run(
    folder: Path, config: type[TrainConfig] = TrainConfig
) -> tuple[ModelConfig | RecurrentConfig, TrainConfig, TextTokenizer]:
    """Read the settings and the tokenizer of a run. RECIPE_SETTINGS are dropped if config does not have them. Raises
    ValueError if the folder holds no run."""
    if not (folder / SETTINGS).is_file():
        raise ValueError(f"{folder / SETTINGS} is missing: no run to continue there")
    settings = checkpoint.read_json(folder / SETTINGS)
    known = config.__dataclass_fields__
    with value_errors(f"{folder} holds no run that can be continued", KeyError, TypeError, OSError, ValueError):
        shape = networks.named(settings.get("network", networks.DEFAULT)).config
        return (
            from_json(shape, settings["model"]),
            from_json(
                config,
                {name: v for name, v in settings["train"].items() if name in known or name not in RECIPE_SETTINGS},
            ),
            checkpoint.read_tokenizer(folder, settings.get("tokenizer")),
        )


def check_can_resume(folder: Path, source: Source) -> None:
    """Raise ValueError if the run in the folder also trains on data that the source lacks."""
    read_run(folder, source.config)
    settings = checkpoint.read_json(folder / SETTINGS)["train"]
    missing = [name for name in RECIPE_SETTINGS if settings.get(name) and name not in source.added]
    missing += [SAYINGS] if not source.added and SAYINGS in dict(settings.get("repeats", ())) else []
    if missing:
        raise ValueError(
            f"the run in {folder} also trains on made sentences ({', '.join(missing)}): "
            f"python -m recipes.train --run-dir {folder} --resume continues it, in a checkout of the repository"
        )


def start_run(args: argparse.Namespace, splits: list[Splits], source: Source) -> None:
    """Write the settings and the tokenizer of a new run. Raises ValueError if there is a run already, or for a size
    that its network does not have or that contradicts its tokenizer or weights."""
    if (args.run / STATE).exists():
        raise ValueError(f"{args.run} already holds a run: continue it with --resume or name another folder")
    settings = options.options_set(args, (*options.TRAIN, *source.added))
    if "cooldown_updates" not in settings and "max_updates" in settings:
        cooldown = settings["max_updates"] // COOLDOWN_SHARE
        if cooldown < source.config.cooldown_updates:
            settings["cooldown_updates"] = cooldown
            print(f"the learning rate falls over the last {cooldown} updates (--cooldown-updates names another number)")
    config = source.config(
        **settings,
        directions=tuple(args.directions or options.DIRECTIONS),
        bf16=args.bf16,
        compile=args.compile,
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
        tokenizer = Tokenizer.load(args.tokenizer) if args.tokenizer else _train_tokenizer(args, splits, source)
        family = networks.named(args.family or networks.DEFAULT).config
        fields_of_family = {field.name for field in fields(family)} - {"vocabulary_size"}
        sizes_of_family = {name: value for name, value in sizes.items() if name in fields_of_family}
        shape = family(vocabulary_size=len(tokenizer), pad_id=tokenizer.pad_id, **sizes_of_family)
    _check_same(sizes, shape, f"the checkpoint {args.init}" if args.init else "the network or its tokenizer")
    _check_compile(args, shape)
    args.run.mkdir(parents=True, exist_ok=True)
    _write(args.run, shape, config, tokenizer)


def resume_run(args: argparse.Namespace, source: Source) -> None:
    """Write the settings that --resume may change. Raises ValueError for any other option that contradicts the run, so
    that the command that started it may be repeated."""
    shape, config, tokenizer = read_run(args.run, source.config)
    whose = f"the run in {args.run}"
    _check_family(args, shape, whose)
    _check_same(options.sizes(args), shape, whose)
    fixed = options.options_set(args, [name for name in options.TRAIN if name not in options.ON_RESUME])
    if args.directions:
        fixed["directions"] = tuple(args.directions)
    if args.bf16:
        fixed["bf16"] = True
    _check_same(fixed, config, whose)
    _check_compile(args, shape)
    _write(args.run, shape, replace(config, compile=args.compile, **options.changed(args, source)), tokenizer)


def _train_tokenizer(args: argparse.Namespace, splits: list[Splits], source: Source) -> Tokenizer | WordVocabulary:
    """Train a tokenizer for all languages of the corpora on their training parts."""
    if args.tokenizer_directions:
        splits = source.find(args, args.tokenizer_directions)
    corpora, size = [each.train for each in splits], args.vocabulary_size or options.VOCABULARY_SIZE
    sentences = sorted({side for corpus in corpora for pair in corpus.pairs for side in pair})
    languages = sorted({language for corpus in corpora for language in corpus.languages if language})
    tokenizer: Tokenizer | WordVocabulary
    if args.tokenizer_algorithm == options.WORDS:
        tokenizer = WordVocabulary.train(sentences, vocabulary_size=size, languages=languages)
    else:
        tokenizer = Tokenizer.train(
            sentences,
            vocabulary_size=size,
            languages=languages,
            algorithm=args.tokenizer_algorithm,
            exact=args.vocabulary_size is not None,
        )
    if len(tokenizer) < size:
        print(f"the vocabulary has {len(tokenizer):,} pieces, as many as the corpus gives, in place of {size:,}")
    return tokenizer


def _check_compile(args: argparse.Namespace, shape: ModelConfig | RecurrentConfig) -> None:
    if args.compile and (not can_pack(shape) or processes.world_size() > 1):
        raise ValueError(
            "--compile works in one process, with a Transformer whose positions do not depend on the length"
        )


def _check_family(args: argparse.Namespace, shape: object, whose: str) -> None:
    if args.family and not isinstance(shape, networks.named(args.family).config):
        raise ValueError(f"--family {args.family}: {whose} is of another")


def _check_same(settings: dict, saved: object, whose: str) -> None:
    """Raise ValueError if a setting differs from the saved one."""
    for name, value in settings.items():
        if not hasattr(saved, name):
            raise ValueError(f"{options.option(name)}: {whose} has no {name}")
        if getattr(saved, name) != value:
            raise ValueError(f"{options.option(name)} asks for {value!r}, but {whose} has {getattr(saved, name)!r}")


def _write(folder: Path, shape: ModelConfig | RecurrentConfig, config: TrainConfig, tokenizer: TextTokenizer) -> None:
    network = next(name for name, entry in networks.NETWORKS.items() if type(shape) is entry.config)
    settings = {"network": network, "model": asdict(shape), "train": asdict(config)}
    checkpoint.write_json(folder / SETTINGS, {**settings, "tokenizer": tokenizer.write(folder)})
