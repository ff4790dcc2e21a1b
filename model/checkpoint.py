"""Saving and loading one folder under checkpoints/. Weights are safetensors: no pickle, ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig, from_json
from attention_atlas.model.families.folder import Folder, digest_of, is_finite, model_name, prefault
from attention_atlas.model.files import (
    CONFIG,
    check_content,
    checkpoint_folder,
    read_json,
    replace_file,
    shipped,
    write_json,
)
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cores import in_passing
from attention_atlas.model.serve.device import uncollected
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.pieces import PieceTokenizer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import Languages, parse_direction
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.survey.survey import Survey, survey_from_json

WEIGHTS, TOKENIZER, METRICS = "model.safetensors", "tokenizer.model", "metrics.json"
EXAMPLES = "examples.json"
LAYOUT, AS_READ, TALL = "layout", "inputs first", "as a step reads"  # in the weights file's own metadata
HEADS, LARGEST_HEADS = "heads.json", 8_000_000  # bytes


@dataclass(frozen=True)
class Example:
    """A sentence to try, and a good translation of it by a person ("": none is known)."""

    text: str
    reference: str = ""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded folder. digest: the first 16 hex digits of the weights file's SHA-256. examples: direction -> sentences
    to try, where the folder has any. survey: what its heads do over many sentences, where that was surveyed with these
    very weights (attention-atlas survey). folder: where it lies, for files that were made of its weights; None:
    nowhere. recipe: of a toy, by which its weights are trained again."""

    name: str
    model: Transformer  # or another of model.nets.networks; float32, in evaluation mode, on the CPU
    tokenizer: TextTokenizer
    directions: tuple[str, ...]
    metrics: dict[str, Any]
    digest: str
    examples: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    survey: Survey | None = None
    languages: Languages | None = None  # of a model of many: any two of them are a direction, besides those listed
    folder: Path | None = None
    recipe: ToyRecipe | None = None


def save(
    folder: str | Path,
    model: Transformer,
    tokenizer: TextTokenizer,
    directions: tuple[str, ...],
    *,
    half: bool = True,
    as_read: bool = False,
    languages: Languages | None = None,
) -> None:
    """Write weights, config and tokenizer. half: weights as float16 on disk. as_read: as float32 and in the layout that
    a step reads, so that load() maps the file and takes no memory of its own. Seven parameters: what is written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = torch.float16 if half else torch.float32
    assert not (half and as_read)
    state = {name: t.detach().to("cpu", dtype) for name, t in model.state_dict().items()}
    tensors = {name: (t.t() if as_read and t.ndim == 2 else t).contiguous() for name, t in state.items()}
    about = {LAYOUT: AS_READ} if as_read else None
    name, described = networks.name_of(model), tokenizer.write(folder)
    config = {
        "format": 1,
        "directions": list(directions),
        "model": asdict(model.config),
        **({"network": name} if name != networks.DEFAULT else {}),
        **({"tokenizer": described} if described else {}),
        **({"languages": asdict(languages)} if languages else {}),
    }
    replace_file(folder / WEIGHTS, lambda path: save_file(tensors, path, about))
    write_json(folder / CONFIG, config)


@uncollected()
def load(folder: str | Path) -> Checkpoint:
    """Load a checkpoint folder, strictly: ours, or one of a family in model/families as it is on a hub.

    folder: a path, or the name of a shipped checkpoint such as "de-en". Raises ValueError naming the file and what was
    expected if anything is missing, damaged or does not fit. Sizes are checked against the weights file's header before
    memory for the model is taken.
    """
    folder = checkpoint_folder(folder)
    if not folder.is_dir():
        raise ValueError(
            f"the folder {folder} is missing; by name there are {', '.join(shipped())}, and attention-atlas convert "
            "fetches a model of the Hugging Face Hub"
        )
    if Folder(folder).is_foreign:
        return in_passing(_load_foreign, folder)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder / name} is missing: a checkpoint folder holds {CONFIG}, {WEIGHTS} and the "
                f"tokenizer's files, such as {TOKENIZER}"
            )
    network, config, directions, languages, described = _read_config(folder / CONFIG)
    tokenizer = read_tokenizer(folder, described)
    check_fit(folder, config, tokenizer, (*directions, *(languages.covering() if languages else ())))
    with ThreadPoolExecutor(1) as beside:
        summed = beside.submit(digest_of, [folder / WEIGHTS])  # which takes as long as all the rest
        model = in_passing(_filled, network, config, folder / WEIGHTS)
        digest = summed.result()
    metrics = _read_metrics(folder / METRICS) if (folder / METRICS).is_file() else {}
    examples = _read_examples(folder / EXAMPLES, directions) if (folder / EXAMPLES).is_file() else {}
    return Checkpoint(
        folder.name,
        model.eval(),
        tokenizer,
        directions,
        metrics,
        digest,
        examples,
        read_survey(folder / HEADS, digest),
        languages,
        folder,
    )


def _filled(network: type[nn.Module], config: object, weights: Path) -> nn.Module:
    with torch.device("meta"):  # shapes without memory, and without drawing weights that are replaced at once
        model = network(config)
    tensors = read_tensors(weights, {name: list(t.shape) for name, t in model.state_dict().items()})
    model.load_state_dict({name: _for_decoding(t) for name, t in tensors.items()}, strict=True, assign=True)
    return model


def _load_foreign(folder: Path) -> Checkpoint:
    """A folder as other people's libraries write it (model/families)."""
    from attention_atlas.model.families import registry  # ours are opened without any family, and without YAML
    from attention_atlas.model.families.card import read_origin

    with registry.open_folder(folder) as (found, weights):
        check_fit(
            folder,
            found.config,
            found.tokenizer,
            (*found.directions, *(found.languages.covering() if found.languages else ())),
        )
        with torch.device("meta"):
            model = Transformer(found.config)
        # One after the other: their tensors never lie in memory beside all of ours.
        state = {name: _for_decoding(found.tensors[name]) for name in found.tensors}
        model.load_state_dict(state, strict=True, assign=True)
        digest = weights.digest()
    metrics = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "scores": [],
        "notes": list(found.notes),
        "origin": asdict(read_origin(Folder(folder))),
    }
    return Checkpoint(
        model_name(folder),
        model.eval(),
        found.tokenizer,
        found.directions,
        metrics,
        digest,
        survey=read_survey(folder / HEADS, digest),
        languages=found.languages,
        folder=folder,
    )


def _for_decoding(tensor: Tensor) -> Tensor:
    # float32, and all that a matrix makes of one input lies in one piece, as model.nets.products packs it.
    tensor = tensor.float()
    return tensor.t().contiguous().t() if tensor.ndim == 2 else tensor


def _read_config(path: Path) -> tuple[type[nn.Module], ModelConfig, tuple[str, ...], Languages | None, dict | None]:
    """Which network it is, its config, its directions, its languages if they are many, and what is said of its
    tokenizer, if that is another family's."""
    values = read_json(path)
    if not isinstance(values, dict) or values.get("format") != 1:
        raise ValueError(f'{path}: expected an object with "format": 1')
    directions = values.get("directions")
    if not isinstance(directions, list) or not directions or not all(isinstance(d, str) for d in directions):
        raise ValueError(f'{path}: "directions" must be a list such as ["de-en"], found {directions!r}')
    try:
        for direction in directions:
            parse_direction(direction)
        entry = networks.named(values.get("network", networks.DEFAULT))
        languages = from_json(Languages, values["languages"]) if values.get("languages") else None
        config = from_json(entry.config, values.get("model"))
        return entry.network, config, tuple(directions), languages, values.get("tokenizer")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_tokenizer(folder: Path, described: object) -> TextTokenizer:
    """What a tokenizer's write() left in a folder, and said of it. ValueError naming the file otherwise."""
    path = folder / (CONFIG if described else TOKENIZER)
    if not described and not path.is_file():
        raise ValueError(f"{path} is missing")
    try:
        if not described:
            return Tokenizer.load(path)
        if not isinstance(described, dict):
            raise ValueError(f'"tokenizer" must be an object, found {described!r:.100}')
        return PieceTokenizer.read(folder, described)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def check_fit(folder: Path, config: ModelConfig, tokenizer: TextTokenizer, directions: tuple[str, ...]) -> None:
    """ValueError naming the folder unless the tokenizer has the network's ids, and symbols for its directions."""
    path = folder / (TOKENIZER if isinstance(tokenizer, Tokenizer) else CONFIG)
    for side, found, expected in zip(
        ("source", "target"), tokenizer.sizes, (config.vocabulary_size, config.num_target_tokens)
    ):
        if found != expected:
            raise ValueError(f"{path} has {found} {side} pieces, the config says {expected}")
    if tokenizer.pad_id != config.pad_id:
        raise ValueError(f"{path} pads with id {tokenizer.pad_id}, the config says {config.pad_id}")
    for direction in directions:
        source, target = parse_direction(direction)
        try:
            tokenizer.encode_source("", target, source)
            tokenizer.forced_prefix(target)
        except ValueError as error:
            raise ValueError(f"{path}: {error}, as the direction {direction} needs") from error


OBJECT_LISTS = ("scores", "typed")  # fields of metrics.json


def _read_metrics(path: Path) -> dict:
    """An object whose fields are of the form that the page and the programs read. ValueError, naming it, otherwise."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a JSON object, found {values!r:.80}")
    for name, value in values.items():
        if name in OBJECT_LISTS and not (isinstance(value, list) and all(isinstance(v, dict) for v in value)):
            raise ValueError(f'{path}: "{name}" must be a list of objects, found {value!r:.80}')
        if name == "notes" and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            raise ValueError(f'{path}: "{name}" must be a list of texts, found {value!r:.80}')
        if name == "training" and not isinstance(value, str):
            raise ValueError(f'{path}: "{name}" must be a text, found {value!r:.80}')
        if name == "parameters" and not is_integer(value, 0):
            raise ValueError(f'{path}: "{name}" must be a whole number, found {value!r:.80}')
        if name == "origin" and not (
            isinstance(value, dict) and all(isinstance(value.get(field), str) for field in ("name", "licence"))
        ):
            raise ValueError(f'{path}: "{name}" must have a name and a licence, found {value!r:.80}')
    return values


def _read_examples(path: Path, directions: tuple[str, ...]) -> dict[str, tuple[Example, ...]]:
    """From {direction: [{"text": .., "reference": ..}]}; the reference may be left out."""
    values = read_json(path)
    if not isinstance(values, dict) or not all(isinstance(rows, list) for rows in values.values()):
        raise ValueError(f'{path}: expected an object such as {{"de-en": [{{"text": "Hallo."}}]}}')
    if unknown := sorted(set(values) - set(directions)):
        raise ValueError(f"{path}: examples of {unknown[0]!r}, the checkpoint translates {', '.join(directions)}")
    for row in (row for rows in values.values() for row in rows):
        named = isinstance(row, dict) and not set(row) - {"text", "reference"}
        if not (named and all(isinstance(value, str) for value in row.values()) and row.get("text", "").strip()):
            raise ValueError(f'{path}: an example has a "text" and may have a "reference", found {row!r}')
    return {direction: tuple(Example(**row) for row in rows) for direction, rows in values.items()}


def _turned(shapes: Mapping[str, Sequence[int]], layout: str | None) -> set[str]:
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2 and layout in (AS_READ, TALL)}
    return {name for name, (outputs, inputs) in matrices.items() if layout == AS_READ or outputs >= inputs}


def read_survey(path: Path, digest: str) -> Survey | None:
    """A survey's file; None where there is none, or one of other weights. ValueError, naming it, if it is damaged."""
    if not path.is_file():
        return None
    values = read_json(path, limit=LARGEST_HEADS)
    try:
        found = survey_from_json(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return found if found.digest == digest else None


def read_tensors(path: Path, shapes: dict[str, list[int]]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, which must be exactly those named, in these shapes, of floating type and
    finite. ValueError otherwise. A file in the layout that a step reads holds matrices transposed, and one of an
    earlier version those that are not wider than high."""
    check_content(path)
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name).get_shape() for name in file.keys()}
            turned = _turned(shapes, (file.metadata() or {}).get(LAYOUT))
            if missing := sorted(set(shapes) - set(found)):
                raise ValueError(f"{path} lacks {len(missing)} tensors, the first is {missing[0]!r}")
            if extra := sorted(set(found) - set(shapes)):
                raise ValueError(f"{path} has {len(extra)} unexpected tensors, the first is {extra[0]!r}")
            for name, shape in shapes.items():
                stored = shape[::-1] if name in turned else shape
                if found[name] != stored:
                    raise ValueError(f"{path}: {name} has shape {found[name]}, expected {stored}")
        tensors = load_file(path)
        prefault(tensors.values())
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not is_finite(tensor):
            raise ValueError(f"{path}: {name} holds values that are not finite floating-point numbers")
    return {name: tensor.t() if name in turned else tensor for name, tensor in tensors.items()}
