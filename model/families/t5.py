"""T5 (Raffel et al. 2020) and what came of it: v1.1, FLAN-T5, mT5, UMT5, ByT5, MADLAD-400.

Pre-norm with RMS norms and no bias anywhere; relative positions as biases on scores that are not divided by sqrt(d_k);
heads that together need not be as wide as the stream; a feed-forward that is gated or not. A task is said in words
before the text, or, of MADLAD-400, by the symbol of the target language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from attention_atlas.model.config import LIMITS, Activation, ModelConfig, Norm, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, Opened
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.pieces.splitter import FAST, fast
from attention_atlas.model.families.pieces.vocabulary import SPIECE, UNNAMED, directions, languages, named, piece_ids
from attention_atlas.model.families.settings import ACTIVATIONS, Settings
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.text.splitters import Bytes
from attention_atlas.model.trace.directions import Languages, is_code

SYMBOLS = ("<pad>", "</s>", "<unk>")  # ids 0 to 2, but for MADLAD-400
SENTINEL = re.compile(r"\u2581?<extra_id_(\d{1,4})>")
LANGUAGE = re.compile(r"\u2581?<2([A-Za-z_0-9]+)>")
TRANSLATION = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")
SUMMARY = "text-summary"  # what the task "summarization" is called as a direction
LONGEST_PREFIX = 200  # characters


def _attention(at: int, name: str) -> dict[str, tuple[str, ...]]:
    own = "self_attention" if name == "SelfAttention" else "cross_attention"
    return {
        f"{own}.projection": tuple(f"layer.{at}.{name}.{part}" for part in "qkv"),
        f"{own}.output": (f"layer.{at}.{name}.o",),
        f"sublayers.{at}.norm": (f"layer.{at}.layer_norm",),
    }


def naming(config: ModelConfig) -> tensors.Naming:
    """What the family calls the tensors of a network of this config."""

    def feed_forward(at: int) -> dict[str, tuple[str, ...]]:
        inner = f"layer.{at}.DenseReluDense"
        return {
            "feed_forward.expand": (f"{inner}.{'wi_0' if config.gated else 'wi'}",),
            "feed_forward.gate": (f"{inner}.wi_1",),
            "feed_forward.contract": (f"{inner}.wo",),
            f"sublayers.{at}.norm": (f"layer.{at}.layer_norm",),
        }

    own = _attention(0, "SelfAttention")
    stacks = {"encoder": config.num_encoder_layers, "decoder": config.num_decoder_layers}
    return tensors.Naming(
        "",
        "{stack}.block.{number}",
        {
            "encoder": own | feed_forward(1),
            "decoder": own | _attention(1, "EncDecAttention") | feed_forward(2),
        },
        {f"{stack}.norm": f"{stack}.final_layer_norm" for stack in stacks}
        | {
            f"{stack}.relative.{n}": f"{stack}.block.{n}.layer.0.SelfAttention.relative_attention_bias"
            for stack, count in stacks.items()
            for n in range(count)
        },
    )


# Cross-attention once had a table, too, which was never used and still stands in old files.
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def read(folder: Folder, settings: Settings, weights: Weights) -> Opened:
    """ValueError, naming what was found, for what is no such model or cannot be opened."""
    config = _network(settings)
    # Which matrices are one the tensors say: what configs say of it is not what was meant.
    matrices = tensors.embeddings(weights, tied=tensors.HEAD not in weights.shapes, shared=True, prefix="")
    config = matrices.told(config)
    symbols, pieces, spm = _vocabulary(folder, settings, config)
    pieces, nameless = named(pieces, config.vocabulary_size)
    codes = {match[1]: i for i, piece in enumerate(pieces) if (match := LANGUAGE.fullmatch(piece))}
    symbols = replace(
        symbols,
        special_ids=tuple(sorted({*symbols.special_ids, *nameless, *codes.values()})),
        languages=tuple((code, i) for code, i in codes.items() if is_code(code)),
        source_row=SourceRow.TARGET_FIRST if codes else SourceRow.PLAIN,
        prefixes=() if codes else _prefixes(settings),
    )
    side = SideVocabulary(spm, pieces)
    banned = tuple(sorted(i for i in {*settings.banned(), *nameless} if i < config.vocabulary_size))
    config = replace(config, banned_ids=banned)
    return Opened(
        config,
        tensors.ours(weights, config, matrices, naming=naming(config), ignored=(UNUSED,)),
        PieceTokenizer(side, side, symbols),
        *_directions(symbols),
        matrices.notes,
    )


def _network(settings: Settings) -> ModelConfig:
    """The shape. ValueError for what cannot be built."""
    kind, layers = settings.config["model_type"], settings.whole("num_layers")
    gated, activation = _activation(settings, "relu" if kind == "t5" else "gated-gelu")
    decoder = settings.config.get("num_decoder_layers")
    return ModelConfig(
        vocabulary_size=settings.whole("vocab_size"),
        d_model=settings.whole("d_model"),
        num_heads=settings.whole("num_heads"),
        num_encoder_layers=layers,
        num_decoder_layers=layers if decoder is None else settings.whole("num_decoder_layers"),
        d_feedforward=settings.whole("d_ff"),
        max_length=LIMITS["max_length"],  # whatever the config says of it: buckets reach any distance
        pad_id=settings.whole("pad_token_id", 0),
        activation=activation,
        position_code=PositionCode.RELATIVE,
        scale_embedding=False,
        scale_scores=False,
        norm=Norm.RMS,
        norm_epsilon=settings.config.get("layer_norm_epsilon", 1e-6),
        biases=False,
        head_width=settings.whole("d_kv", 64),
        gated=gated,
        # Files of today say it by itself; in those before, it was meant by whether the matrices are one.
        scale_output=kind != "mt5"
        and settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", True)),
        position_buckets=settings.whole("relative_attention_num_buckets", 32),
        position_reach=settings.whole("relative_attention_max_distance", 128),
        layer_positions=kind == "umt5",
    )


def _activation(settings: Settings, default: str) -> tuple[bool, Activation]:
    """Whether the feed-forward is gated, and what is between its matrices: "relu", "gated-gelu"."""
    said = settings.config.get("feed_forward_proj", default)
    gate, _, name = said.rpartition("-") if isinstance(said, str) else ("", "", None)
    if name not in ACTIVATIONS or gate not in ("", "gated"):
        raise ValueError(
            f"{settings.path}: feed_forward_proj {said!r:.60} is not supported, only {', '.join(ACTIVATIONS)}, "
            "gated or not"
        )
    by_tangent = said in ("gated-gelu", "gelu_new", "gated-gelu_new")  # the first, too, in spite of its name
    return bool(gate), Activation.GELU_TANH if by_tangent else ACTIVATIONS[name]


def _vocabulary(folder: Folder, settings: Settings, config: ModelConfig) -> tuple[Symbols, dict[str, int], bytes]:
    """The symbols, the ids of all pieces, and the splitter's model (model.text.pieces.SideVocabulary)."""
    kinds = {settings.tokenizer.get("tokenizer_class"), settings.config.get("tokenizer_class")}
    if kinds & {"ByT5Tokenizer"}:
        spm, ids = b"", {piece: len(SYMBOLS) + byte for byte, piece in enumerate(Bytes.pieces)}
        ids |= {symbol: i for i, symbol in enumerate(SYMBOLS)}
    elif folder.has(SPIECE) or not folder.has(FAST):
        spm = folder.bytes(SPIECE)
        ids = piece_ids(spm)
    else:
        spm, ids, _ = fast(folder, SYMBOLS)
    unknown = ids.get("<unk>")
    if unknown is None:
        raise ValueError(f"{folder.path}: the vocabulary has no <unk>")
    sentinels = {int(match[1]): i for piece, i in ids.items() if (match := SENTINEL.fullmatch(piece))}
    if not sentinels:
        said = languages(folder, settings.tokenizer, SENTINEL)
        sentinels = {int(n): i for n, i in said.items()} or _appended(settings, ids, bytewise=not spm)
    sentinels = {n: i for n, i in sorted(sentinels.items()) if i < config.vocabulary_size}
    ids = {piece: i for piece, i in ids.items() if i not in set(sentinels.values())}
    typed = tuple((f"<extra_id_{n}>", i) for n, i in sentinels.items())
    end, begin = settings.token("eos_token_id", 1), settings.token("decoder_start_token_id", 0)
    special = {config.pad_id, end, begin, unknown, *(i for piece, i in ids.items() if piece in ("<s>", *SYMBOLS))}
    symbols = Symbols(config.pad_id, begin, end, unknown, special_ids=tuple(sorted(special)), sentinels=typed)
    return symbols, ids | dict(typed), spm


def _appended(settings: Settings, ids: Mapping[str, int], *, bytewise: bool) -> dict[int, int]:
    """Sentinels that no file names stand behind the pieces: of SentencePiece backwards, of bytes forwards."""
    count = settings.tokenizer.get("extra_ids", 125 if bytewise else 100)
    count = count if isinstance(count, int) and 0 <= count <= 1000 else 0
    first = max(ids.values()) + 1
    return {n: first + (n if bytewise else count - 1 - n) for n in range(count)}


def _prefixes(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Direction -> prefix, of the tasks that the config describes; translations first."""
    tasks = settings.config.get("task_specific_params")
    found = {}
    for task, about in sorted(tasks.items(), reverse=True) if isinstance(tasks, dict) else ():
        prefix = about.get("prefix") if isinstance(about, dict) else None
        if not isinstance(prefix, str) or not 0 < len(prefix) <= LONGEST_PREFIX:
            continue
        if (match := TRANSLATION.fullmatch(task)) and match[1] != match[2]:
            found[f"{match[1]}-{match[2]}"] = prefix
        elif task == "summarization":
            found[SUMMARY] = prefix
    return tuple(found.items())


def _directions(symbols: Symbols) -> tuple[tuple[str, ...], Languages | None]:
    """Between all languages that have a symbol; else one for each prefix, and last one without, for whatever a person
    puts before the text."""
    if symbols.languages:
        codes = [code for code, _ in symbols.languages]
        return directions(codes, codes)
    return (*dict(symbols.prefixes), UNNAMED), None


FAMILIES = tuple(
    Family(model_type, (f"{name}ForConditionalGeneration",), read)
    for model_type, name in (("t5", "T5"), ("mt5", "MT5"), ("umt5", "UMT5"))
)
