"""Marian: OPUS-MT and OPUS-MT tc-big (Tiedemann and Thottingal 2020), for one pair of languages or many targets.

Post-norm, sines and cosines in halves from position 0, embeddings scaled, a bias on the logits; a decoder starts from
the padding symbol, which it must never write.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, Opened
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.pieces.vocabulary import UNNAMED, directions, named, numbered
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.trace.directions import Languages, is_code

LANGUAGE = re.compile(r">>(.+)<<")


def read(folder: Folder, settings: Settings, weights: Weights) -> Opened:
    """ValueError, naming what was found, for what is no Marian model or cannot be opened."""
    shared = settings.flag("share_encoder_decoder_embeddings", True)
    tied = settings.flag("tie_word_embeddings", True)
    pad_id = settings.whole("pad_token_id")
    targets = None if shared else settings.whole("decoder_vocab_size", settings.whole("vocab_size"))
    config = replace(
        settings.network(activation="gelu", scale_embedding=False),
        position_code=PositionCode.HALVES,
        norm_first=False,
        shared_embeddings=shared,
        target_vocabulary_size=targets,
        logits_bias=tensors.BIAS in weights.shapes,
    )
    matrices = tensors.embeddings(weights, tied=tied, shared=shared)
    config, notes = tensors.stored_positions(matrices.told(config), weights)
    tokenizer, nameless = _tokenizer(folder, settings, config)
    config = replace(
        config,
        banned_ids=tuple(sorted({i for i in {*settings.banned(), *nameless, pad_id} if i < config.num_target_tokens})),
    )
    ignored = tuple(tensors.POSITIONS.values()) + (() if shared else tensors.embedding_names("model.")[:1])
    return Opened(
        config,
        tensors.ours(weights, config, matrices, ignored=ignored),
        tokenizer,
        *_directions(folder, settings, tokenizer),
        (*matrices.notes, *notes),
    )


def _tokenizer(folder: Folder, settings: Settings, config: ModelConfig) -> tuple[PieceTokenizer, list[int]]:
    """The tokenizer, and the target ids that have no piece."""
    separate = settings.tokenizer.get("separate_vocabs") is True
    ids = numbered(folder, "vocab.json")
    source_pieces, _ = named(ids, config.vocabulary_size)
    source = SideVocabulary(folder.bytes("source.spm"), source_pieces)
    target_ids = numbered(folder, "target_vocab.json") if separate else ids
    target_pieces, nameless = named(target_ids, config.num_target_tokens)
    same = not separate and folder.bytes("target.spm") == source.model
    target = source if same else SideVocabulary(folder.bytes("target.spm"), target_pieces)
    codes = {match[1]: i for piece, i in ids.items() if (match := LANGUAGE.fullmatch(piece))}
    for symbol in ("<unk>", "</s>"):
        if symbol not in ids or target_ids.get(symbol) != ids[symbol]:
            raise ValueError(
                f"{folder.path}/vocab.json: {symbol} must have one id on both sides, found "
                f"{ids.get(symbol)} and {target_ids.get(symbol)}"
            )
    languages = tuple((code, i) for code, i in codes.items() if is_code(code))
    symbols = Symbols(
        pad_id=config.pad_id,
        begin_id=settings.token("decoder_start_token_id", config.pad_id),
        end_id=ids["</s>"],
        unknown_id=ids["<unk>"],
        source_row=SourceRow.TARGET_FIRST if languages else SourceRow.PLAIN,
        languages=languages,
        special_ids=tuple(sorted({*codes.values(), *nameless})),
    )
    return PieceTokenizer(source, target, symbols), nameless


def _directions(
    folder: Folder, settings: Settings, tokenizer: PieceTokenizer
) -> tuple[tuple[str, ...], Languages | None]:
    """By tokenizer_config.json, else by the name that the model has or had ("opus-mt-en-de"). Of many targets each."""
    source, target = settings.tokenizer.get("source_lang"), settings.tokenizer.get("target_lang")
    if not (is_code(source) and is_code(target)):
        names = [str(settings.config.get("_name_or_path", "")).rstrip("/").split("/")[-1], folder.path.name]
        pairs = [tuple(name.split("-")[-2:]) for name in names if name.count("-") >= 1]
        found = [pair for pair in pairs if all(map(is_code, pair)) and pair[0] != pair[1]]
        source, target = found[0] if found else UNNAMED.split("-")
    if not tokenizer.language_ids:
        return (f"{source}-{target}" if source != target else UNNAMED,), None
    return directions([source], sorted(tokenizer.language_ids))


FAMILY = Family("marian", ("MarianMTModel",), read)
