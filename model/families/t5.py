"""T5 (Raffel et al. 2020) and its descendants: v1.1, FLAN-T5, mT5, UMT5, ByT5, MADLAD-400.

Pre-norm with RMS norms and no bias anywhere; relative positions as biases on scores that are not divided by sqrt(d_k);
heads whose total width may differ from d_model; a feed-forward that may be gated. Words before the text name the task,
or in MADLAD-400 the symbol of the target language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from attention_atlas.model.config import LIMITS, Activation, ModelConfig, Norm, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, OpenedModel
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.settings import ACTIVATIONS, Settings
from attention_atlas.model.families.vocabulary import (
    SPIECE,
    TOKENIZER_JSON,
    UNNAMED,
    convert_json,
    language_ids,
    list_directions,
    list_pieces,
    sentencepiece_ids,
)
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.text.splitters import Bytes
from attention_atlas.model.trace.directions import Languages, is_code

SYMBOLS = ("<pad>", "</s>", "<unk>")  # ids 0 to 2, except in MADLAD-400
SENTINEL = re.compile(r"\u2581?<extra_id_(\d{1,4})>")
LANGUAGE = re.compile(r"\u2581?<2([A-Za-z_0-9]+)>")
TRANSLATION = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")
SUMMARY = "text-summary"  # the direction of the task "summarization"
MAX_PREFIX = 200  # characters


def _attention(at: int, name: str) -> dict[str, tuple[str, ...]]:
    ours = "self_attention" if name == "SelfAttention" else "cross_attention"
    return {
        f"{ours}.projection": tuple(f"layer.{at}.{name}.{part}" for part in "qkv"),
        f"{ours}.output": (f"layer.{at}.{name}.o",),
        f"sublayers.{at}.norm": (f"layer.{at}.layer_norm",),
    }


def naming(config: ModelConfig) -> tensors.Naming:
    """Return the family's names of the tensors of a network of this config."""

    def feed_forward(at: int) -> dict[str, tuple[str, ...]]:
        inner = f"layer.{at}.DenseReluDense"
        return {
            "feed_forward.expand": (f"{inner}.{'wi_0' if config.gated else 'wi'}",),
            "feed_forward.gate": (f"{inner}.wi_1",),
            "feed_forward.contract": (f"{inner}.wo",),
            f"sublayers.{at}.norm": (f"layer.{at}.layer_norm",),
        }

    self_attention = _attention(0, "SelfAttention")
    stacks = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    return tensors.Naming(
        "",
        "{stack}.block.{number}",
        {
            "encoder": self_attention | feed_forward(1),
            "decoder": self_attention | _attention(1, "EncDecAttention") | feed_forward(2),
        },
        {f"{stack}.norm": f"{stack}.final_layer_norm" for stack in stacks}
        | {
            f"{stack}.relative.{n}": f"{stack}.block.{n}.layer.0.SelfAttention.relative_attention_bias"
            for stack, count in stacks.items()
            for n in range(count)
        },
    )


# Old files hold a table for cross-attention, which no version uses.
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def read(folder: Folder, settings: Settings, weights: Weights) -> OpenedModel:
    """Open a folder. Raises ValueError, with the value, for another family's settings or unreadable files."""
    config = _model_config(settings)
    # The tensors tell which matrices are tied: tie_word_embeddings is not reliable in these configs.
    matrices = tensors.find_embeddings(weights, tied=tensors.HEAD not in weights.shapes, shared=True, prefix="")
    config = matrices.configure(config)
    symbols, ids, spm = _vocabulary(folder, settings, config)
    pieces, nameless = list_pieces(ids, config.vocabulary_size)
    codes = {match[1]: i for i, piece in enumerate(pieces) if (match := LANGUAGE.fullmatch(piece))}
    symbols = replace(
        symbols,
        special_ids=tuple(sorted({*symbols.special_ids, *nameless, *codes.values()})),
        languages=tuple((code, i) for code, i in codes.items() if is_code(code)),
        source_row=SourceRow.TARGET_FIRST if codes else SourceRow.PLAIN,
        prefixes=() if codes else _prefixes(settings),
    )
    side = SideVocabulary(spm, pieces)
    config = replace(config, banned_ids=settings.banned_ids(config, nameless))
    return OpenedModel(
        config,
        tensors.convert(weights, config, matrices, naming=naming(config), ignored=(UNUSED,)),
        PieceTokenizer(side, side, symbols),
        *_directions(symbols),
        matrices.notes,
    )


def _model_config(settings: Settings) -> ModelConfig:
    """Return the network's shape. Raises ValueError for what cannot be built."""
    kind, layers = settings.config["model_type"], settings.integer("num_layers")
    gated, activation = _activation(settings, "relu" if kind == "t5" else "gated-gelu")
    decoder = settings.config.get("num_decoder_layers")
    return ModelConfig(
        vocabulary_size=settings.integer("vocab_size"),
        d_model=settings.integer("d_model"),
        num_heads=settings.integer("num_heads"),
        num_encoder_layers=layers,
        num_decoder_layers=layers if decoder is None else settings.integer("num_decoder_layers"),
        d_feedforward=settings.integer("d_ff"),
        max_length=LIMITS["max_length"],  # not the config's: buckets reach any distance
        pad_id=settings.integer("pad_token_id", 0),
        activation=activation,
        position_code=PositionCode.RELATIVE,
        scale_embedding=False,
        scale_scores=False,
        norm=Norm.RMS,
        norm_epsilon=settings.config.get("layer_norm_epsilon", 1e-6),
        biases=False,
        head_width=settings.integer("d_kv", 64),
        gated=gated,
        # Older configs have no such field: tied embeddings imply it.
        scale_output=kind != "mt5"
        and settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", True)),
        position_buckets=settings.integer("relative_attention_num_buckets", 32),
        position_reach=settings.integer("relative_attention_max_distance", 128),
        layer_positions=kind == "umt5",
    )


def _activation(settings: Settings, default: str) -> tuple[bool, Activation]:
    """Return whether the feed-forward is gated, and its activation, of a name such as "relu" or "gated-gelu"."""
    value = settings.config.get("feed_forward_proj", default)
    gate, _, name = value.rpartition("-") if isinstance(value, str) else ("", "", None)
    if name not in ACTIVATIONS or gate not in ("", "gated"):
        raise ValueError(
            f"{settings.path}: feed_forward_proj {value!r:.60} is not supported, only {', '.join(ACTIVATIONS)}, "
            "gated or not"
        )
    has_tanh = value in ("gated-gelu", "gelu_new", "gated-gelu_new")  # the first, too, in spite of its name
    return bool(gate), Activation.GELU_TANH if has_tanh else ACTIVATIONS[name]


def _vocabulary(folder: Folder, settings: Settings, config: ModelConfig) -> tuple[Symbols, dict[str, int], bytes]:
    """Return the symbols, the ids of all pieces, and the splitter's model (model.text.pieces.SideVocabulary)."""
    kinds = {settings.tokenizer.get("tokenizer_class"), settings.config.get("tokenizer_class")}
    if kinds & {"ByT5Tokenizer"}:
        spm, ids = b"", {piece: len(SYMBOLS) + byte for byte, piece in enumerate(Bytes.pieces)}
        ids |= {symbol: i for i, symbol in enumerate(SYMBOLS)}
    elif folder.has(SPIECE) or not folder.has(TOKENIZER_JSON):
        spm = folder.bytes(SPIECE)
        ids = sentencepiece_ids(spm)
    else:
        spm, ids, _ = convert_json(folder, SYMBOLS)
    unknown = ids.get("<unk>")
    if unknown is None:
        raise ValueError(f"{folder.path}: the vocabulary has no <unk>")
    sentinels = {int(match[1]): i for piece, i in ids.items() if (match := SENTINEL.fullmatch(piece))}
    if not sentinels:
        named = language_ids(folder, settings, SENTINEL)
        sentinels = {int(n): i for n, i in named.items()} or _number_sentinels(settings, ids, is_bytes=not spm)
    sentinels = {n: i for n, i in sorted(sentinels.items()) if i < config.vocabulary_size}
    ids = {piece: i for piece, i in ids.items() if i not in set(sentinels.values())}
    typed = tuple((f"<extra_id_{n}>", i) for n, i in sentinels.items())
    end, begin = settings.token("eos_token_id", 1), settings.token("decoder_start_token_id", 0)
    special = {config.pad_id, end, begin, unknown, *(i for piece, i in ids.items() if piece in ("<s>", *SYMBOLS))}
    symbols = Symbols(config.pad_id, begin, end, unknown, special_ids=tuple(sorted(special)), sentinels=typed)
    return symbols, ids | dict(typed), spm


def _number_sentinels(settings: Settings, ids: Mapping[str, int], *, is_bytes: bool) -> dict[int, int]:
    """Return the ids of sentinels that no file names: after the pieces, ascending for bytes, else descending."""
    count = settings.tokenizer.get("extra_ids", 125 if is_bytes else 100)
    count = count if isinstance(count, int) and 0 <= count <= 1000 else 0
    first = max(ids.values()) + 1
    return {n: first + (n if is_bytes else count - 1 - n) for n in range(count)}


def _prefixes(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return direction -> prefix of the tasks that the config describes, translations first."""
    tasks = settings.config.get("task_specific_params")
    prefixes = {}
    for task, about in sorted(tasks.items(), reverse=True) if isinstance(tasks, dict) else ():
        prefix = about.get("prefix") if isinstance(about, dict) else None
        if not isinstance(prefix, str) or not 0 < len(prefix) <= MAX_PREFIX:
            continue
        if (match := TRANSLATION.fullmatch(task)) and match[1] != match[2]:
            prefixes[f"{match[1]}-{match[2]}"] = prefix
        elif task == "summarization":
            prefixes[SUMMARY] = prefix
    return tuple(prefixes.items())


def _directions(symbols: Symbols) -> tuple[tuple[str, ...], Languages | None]:
    """Return the directions between all languages with a symbol.

    Without such symbols there is one direction for each prefix, and one for texts that name their task.
    """
    if symbols.languages:
        codes = [code for code, _ in symbols.languages]
        return list_directions(codes, codes)
    return (*dict(symbols.prefixes), UNNAMED), None


FAMILIES = tuple(
    Family(model_type, (f"{name}ForConditionalGeneration",), read)
    for model_type, name in (("t5", "T5"), ("mt5", "MT5"), ("umt5", "UMT5"))
)
