"""Save and load checkpoint folders: our own, with safetensors, and those of the families in model/families."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attention_atlas.model.config import ModelConfig, from_json
from attention_atlas.model.families.folder import Folder, Weights, digest_of, model_name
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.files import (
    CONFIG,
    checkpoint_folder,
    read_json,
    replace_file,
    shipped,
    value_errors,
    write_json,
)
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cores import run_in_new_thread
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.text.pieces import PieceTokenizer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.text.words import WordVocabulary
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import Languages, parse_direction
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.survey.survey import Survey, survey_from_json

WEIGHTS, TOKENIZER, METRICS = "model.safetensors", "tokenizer.model", "metrics.json"
EXAMPLES = "examples.json"
LAYOUT, TRANSPOSED, TALL_TRANSPOSED = "layout", "inputs first", "as a step reads"  # in the metadata of the weights
HEADS, MAX_HEADS_BYTES = "heads.json", 8_000_000
OBJECT_LISTS = ("scores", "typed")  # fields of metrics.json


@dataclass(frozen=True)
class Example:
    """A sentence to try. reference: a translation by a person, "" if none is known."""

    text: str
    reference: str = ""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A loaded checkpoint.

    model      a Transformer or another of model.nets.networks: float32, in evaluation mode, on the CPU
    digest     the first 16 hex digits of the SHA-256 of the weights
    examples   direction -> sentences to try
    survey     what the heads do over many sentences (attention-atlas survey), if it was made with these weights
    languages  of a model of many languages: any pair is a direction, beyond `directions`
    folder     None for a model that is not on disk
    recipe     of a toy: how to train its weights again
    """

    name: str
    model: Transformer
    tokenizer: TextTokenizer
    directions: tuple[str, ...]
    metrics: dict[str, Any]
    digest: str
    examples: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    survey: Survey | None = None
    languages: Languages | None = None
    folder: Path | None = None
    recipe: ToyRecipe | None = None


def save(
    folder: str | Path,
    model: Transformer,
    tokenizer: TextTokenizer,
    directions: tuple[str, ...],
    *,
    half: bool = True,
    languages: Languages | None = None,
) -> None:
    """Write weights, config and tokenizer.

    half: store weights as float16; else as float32 in the layout of a decoding step, so that load() maps the file
    without a copy.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype, metadata = (torch.float16, None) if half else (torch.float32, {LAYOUT: TRANSPOSED})
    state = {name: t.detach().to("cpu", dtype) for name, t in model.state_dict().items()}
    tensors = {name: (t if half or t.ndim != 2 else t.t()).contiguous() for name, t in state.items()}
    name, tokenizer_entry = networks.name_of(model), tokenizer.write(folder)
    config = {
        "format": 1,
        "directions": list(directions),
        "model": asdict(model.config),
        **({"network": name} if name != networks.DEFAULT else {}),
        **({"tokenizer": tokenizer_entry} if tokenizer_entry else {}),
        **({"languages": asdict(languages)} if languages else {}),
    }
    replace_file(folder / WEIGHTS, lambda path: save_file(tensors, path, metadata))
    write_json(folder / CONFIG, config)


def load(folder: str | Path) -> Checkpoint:
    """Load a checkpoint folder: ours, or one of a family in model/families in a hub's layout.

    folder: a path, or the name of a shipped checkpoint such as "de-en". Raises ValueError naming the file and what was
    expected if anything is missing, damaged or inconsistent. Sizes are checked against the header of the weights before
    the model's memory is allocated.
    """
    folder = checkpoint_folder(folder)
    if not folder.is_dir():
        raise ValueError(
            f"the folder {folder} is missing; by name there are {', '.join(shipped())}, and attention-atlas convert "
            "fetches a model of the Hugging Face Hub"
        )
    if Folder(folder).is_foreign:
        return run_in_new_thread(_load_foreign, folder)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder / name} is missing: a checkpoint folder holds {CONFIG}, {WEIGHTS} and the "
                f"tokenizer's files, such as {TOKENIZER}"
            )
    network, config, directions, languages, tokenizer_entry = _read_config(folder / CONFIG)
    tokenizer = read_tokenizer(folder, tokenizer_entry)
    check_fit(folder, config, tokenizer, directions, languages)
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(digest_of, [folder / WEIGHTS])  # takes as long as the rest of loading
        model = run_in_new_thread(_load_model, network, config, folder)
    metrics = _read_metrics(folder / METRICS) if (folder / METRICS).is_file() else {}
    examples = _read_examples(folder / EXAMPLES, directions) if (folder / EXAMPLES).is_file() else {}
    return Checkpoint(
        folder.name,
        model.eval(),
        tokenizer,
        directions,
        metrics,
        digest.result(),
        examples,
        read_survey(folder / HEADS, digest.result()),
        languages,
        folder,
    )


def _load_model(network: type[nn.Module], config: object, folder: Path) -> nn.Module:
    with torch.device("meta"):  # shapes without memory or random initialization
        model = network(config)
    tensors = read_tensors(folder, {name: tuple(t.shape) for name, t in model.state_dict().items()})
    model.load_state_dict({name: _for_decoding(t) for name, t in tensors.items()}, strict=True, assign=True)
    return model


def _load_foreign(folder: Path) -> Checkpoint:
    """Load a folder in the layout of `transformers` (model/families)."""
    from attention_atlas.model.families import registry  # with YAML, which our own checkpoints do not need
    from attention_atlas.model.families.card import read_origin

    files = Folder(folder)
    settings = Settings.read(files)
    family = registry.family_of(settings)
    with closing(Weights(files)) as weights:
        opened = family.read(files, settings, weights)
        check_fit(folder, opened.config, opened.tokenizer, opened.directions, opened.languages)
        with torch.device("meta"):
            model = Transformer(opened.config)
        # Convert one by one, so that not all tensors are in memory twice.
        state = {name: _for_decoding(opened.tensors[name]) for name in opened.tensors}
        model.load_state_dict(state, strict=True, assign=True)
        digest = weights.digest()
    metrics = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "scores": [],
        "notes": list(opened.notes),
        "origin": asdict(read_origin(files)),
    }
    return Checkpoint(
        model_name(folder),
        model.eval(),
        opened.tokenizer,
        opened.directions,
        metrics,
        digest,
        survey=read_survey(folder / HEADS, digest),
        languages=opened.languages,
        folder=folder,
    )


def _for_decoding(tensor: Tensor) -> Tensor:
    """Return a tensor as float32; a matrix is transposed in memory, as model.nets.products packs it."""
    tensor = tensor.float()
    return tensor.t().contiguous().t() if tensor.ndim == 2 else tensor


def _read_config(path: Path) -> tuple[type[nn.Module], ModelConfig, tuple[str, ...], Languages | None, dict | None]:
    """Return the network's class, its config, directions, languages if there are many, and another family's tokenizer
    entry."""
    values = read_json(path)
    if not isinstance(values, dict) or values.get("format") != 1:
        raise ValueError(f'{path}: expected an object with "format": 1')
    directions = values.get("directions")
    if not isinstance(directions, list) or not directions or not all(isinstance(d, str) for d in directions):
        raise ValueError(f'{path}: "directions" must be a list such as ["de-en"], found {directions!r}')
    with value_errors(path):
        for direction in directions:
            parse_direction(direction)
        entry = networks.named(values.get("network", networks.DEFAULT))
        languages = from_json(Languages, values["languages"]) if values.get("languages") else None
        config = from_json(entry.config, values.get("model"))
        return entry.network, config, tuple(directions), languages, values.get("tokenizer")


def read_tokenizer(folder: Path, entry: object) -> TextTokenizer:
    """Read the files of a tokenizer's write(). entry: what it returned. Raises ValueError naming a file otherwise."""
    path = folder / (CONFIG if entry else TOKENIZER)
    if not entry and not path.is_file():
        raise ValueError(f"{path} is missing")
    with value_errors(path):
        if not entry:
            return Tokenizer.load(path)
        if not isinstance(entry, dict):
            raise ValueError(f'"tokenizer" must be an object, found {entry!r:.100}')
        return (WordVocabulary if entry.get("kind") == "words" else PieceTokenizer).read(folder, entry)


def check_fit(
    folder: Path,
    config: ModelConfig,
    tokenizer: TextTokenizer,
    directions: tuple[str, ...],
    languages: Languages | None = None,
) -> None:
    """Raise ValueError naming the file unless the tokenizer has the network's ids and symbols for its directions."""
    path = folder / (TOKENIZER if isinstance(tokenizer, Tokenizer) else CONFIG)
    for side, size, expected in zip(
        ("source", "target"), tokenizer.sizes, (config.vocabulary_size, config.num_target_tokens)
    ):
        if size != expected:
            raise ValueError(f"{path} has {size} {side} pieces, the config says {expected}")
    if tokenizer.pad_id != config.pad_id:
        raise ValueError(f"{path} pads with id {tokenizer.pad_id}, the config says {config.pad_id}")
    for direction in (*directions, *(languages.covering() if languages else ())):
        source, target = parse_direction(direction)
        try:
            tokenizer.encode_source("", target, source)
            tokenizer.forced_prefix(target)
        except ValueError as error:
            raise ValueError(f"{path}: {error}, as the direction {direction} needs") from error


def _read_metrics(path: Path) -> dict:
    """Read metrics.json. Raises ValueError for a field that the page and the programs could not read."""
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
    """Read {direction: [{"text": .., "reference": ..}]}, where references are optional, or raise ValueError."""
    values = read_json(path)
    if not isinstance(values, dict) or not all(isinstance(rows, list) for rows in values.values()):
        raise ValueError(f'{path}: expected an object such as {{"de-en": [{{"text": "Hallo."}}]}}')
    if unknown := sorted(set(values) - set(directions)):
        raise ValueError(f"{path}: examples of {unknown[0]!r}, the checkpoint translates {', '.join(directions)}")
    for row in (row for rows in values.values() for row in rows):
        has_fields = isinstance(row, dict) and not set(row) - {"text", "reference"}
        if not (has_fields and all(isinstance(value, str) for value in row.values()) and row.get("text", "").strip()):
            raise ValueError(f'{path}: an example has a "text" and may have a "reference", found {row!r}')
    return {direction: tuple(Example(**row) for row in rows) for direction, rows in values.items()}


def read_survey(path: Path, digest: str) -> Survey | None:
    """Read a survey; None if it is missing or of other weights. Raises ValueError naming the file if it is damaged."""
    if not path.is_file():
        return None
    values = read_json(path, limit=MAX_HEADS_BYTES)
    with value_errors(path):
        survey = survey_from_json(values)
    return survey if survey.digest == digest else None


def read_tensors(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Read the weights of a folder, exactly the tensors of these shapes.

    Matrices may be stored transposed, as the file's metadata says: all of them, or in an earlier version those with at
    least as many outputs as inputs. Raises ValueError for other names or shapes and for values that are not finite.
    """
    path = folder / WEIGHTS
    with closing(Weights(Folder(folder))) as weights:
        layout = weights.metadata.get(LAYOUT)
        transposed = {
            name
            for name, shape in shapes.items()
            if len(shape) == 2 and (layout == TRANSPOSED or (layout == TALL_TRANSPOSED and shape[0] >= shape[1]))
        }
        if missing := sorted(set(shapes) - set(weights.shapes)):
            raise ValueError(f"{path} lacks {len(missing)} tensors, the first is {missing[0]!r}")
        if extra := sorted(set(weights.shapes) - set(shapes)):
            raise ValueError(f"{path} has {len(extra)} unexpected tensors, the first is {extra[0]!r}")
        for name, shape in shapes.items():
            expected = shape[::-1] if name in transposed else shape
            if weights.shapes[name] != expected:
                raise ValueError(f"{path}: {name} has shape {list(weights.shapes[name])}, expected {list(expected)}")
        return {name: weights[name].t() if name in transposed else weights[name] for name in shapes}
