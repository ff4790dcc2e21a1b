"""M2M100 (Fan et al. 2020) and dense NLLB-200 (NLLB Team 2022): one form of network, two of tokenizer.

Pre-norm, fairseq's sines from position 2, no bias on the logits; the source's language stands before the text, and the
decoder starts from </s> and is made to write the target's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attention_atlas.model.config import PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, Opened
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.pieces.codes import M2M100, NLLB, WMT21
from attention_atlas.model.families.pieces.splitter import splitter
from attention_atlas.model.families.pieces.vocabulary import (
    directions,
    fairseq_ids,
    fairseq_tokenizer,
    languages,
    numbered,
)
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.text.pieces import SourceRow

M2M100_SYMBOL = re.compile(r"__([a-z]{2,3})__")
MASK = re.compile("(<mask>)")
NLLB_SYMBOL = re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")


def read(folder: Folder, settings: Settings, weights: Weights) -> Opened:
    """ValueError, naming what was found, for what is no such model or cannot be opened."""
    tied = settings.flag("tie_word_embeddings", True)
    config = settings.network(activation="relu", scale_embedding=True)
    config = replace(config, position_code=PositionCode.FAIRSEQ, position_offset=config.pad_id + 1)
    matrices = tensors.embeddings(weights, tied=tied, shared=True)
    config = matrices.told(config)
    spm = splitter(folder)
    ids, codes, row = _m2m100(folder, settings) if folder.has("vocab.json") else _nllb(folder, settings, spm)
    tokenizer, config = fairseq_tokenizer(
        settings,
        config,
        spm,
        ids,
        codes,
        begin_id=settings.token("decoder_start_token_id", 2),
        source_row=row,
        forced=True,
    )
    only = settings.token("forced_bos_token_id")
    targets = [code for code, i in codes.items() if i == only] or list(codes)
    return Opened(
        config, tensors.ours(weights, config, matrices), tokenizer, *directions(list(codes), targets), matrices.notes
    )


def _m2m100(folder: Folder, settings: Settings) -> tuple[dict[str, int], dict[str, int], SourceRow]:
    ids = numbered(folder, "vocab.json")
    for i, symbol in enumerate(("<s>", "<pad>", "</s>", "<unk>")):
        if ids.get(symbol) != i:
            raise ValueError(f"{folder.path}/vocab.json: {symbol} must have id {i}, found {ids.get(symbol)}")
    listed = WMT21 if settings.tokenizer.get("language_codes") == "wmt21" else M2M100
    codes = languages(folder, settings.tokenizer, M2M100_SYMBOL) or {
        code: len(ids) + at for at, code in enumerate(listed)
    }
    return ids | {f"__{code}__": i for code, i in codes.items()}, codes, SourceRow.LANGUAGE_FIRST


def _nllb(folder: Folder, settings: Settings, spm: bytes) -> tuple[dict[str, int], dict[str, int], SourceRow]:
    ids = fairseq_ids(spm)
    first = max(ids.values()) + 1
    codes = languages(folder, settings.tokenizer, NLLB_SYMBOL)
    if not codes:  # a folder that was made from the SentencePiece model alone names none
        codes = {code: first + at for at, code in enumerate(NLLB)}
    ids |= codes
    ids |= languages(folder, settings.tokenizer, MASK) or {"<mask>": first + len(codes)}
    legacy = settings.tokenizer.get("legacy_behaviour") is True
    return ids, codes, SourceRow.LANGUAGE_LAST if legacy else SourceRow.LANGUAGE_FIRST


FAMILY = Family("m2m_100", ("M2M100ForConditionalGeneration",), read)
