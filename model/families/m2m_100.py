"""M2M100 (Fan et al. 2020) and dense NLLB-200 (NLLB Team 2022): one form of network with two forms of tokenizer.

Pre-norm, fairseq's sines from position 2, no bias on the logits. The source language's symbol precedes the text. The
decoder starts from </s> and is made to write the target language's symbol.
"""

from __future__ import annotations

import re

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families.fairseq import Form, Vocabulary, fairseq_vocabulary, family
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.vocabulary import (
    FAIRSEQ,
    fairseq_ids,
    language_codes,
    language_ids,
    read_fairseq_model,
    read_ids,
)
from attention_atlas.model.text.pieces import SourceRow

M2M100_SYMBOL = re.compile(r"__([a-z]{2,3})__")
MASK = re.compile("(<mask>)")
NLLB_SYMBOL = re.compile(r"([a-z]{3}_[A-Z][a-z]{3})")


def _vocabulary(folder: Folder, settings: Settings, config: ModelConfig) -> Vocabulary:
    spm = read_fairseq_model(folder)
    ids, codes, row = _m2m100(folder, settings) if folder.has("vocab.json") else _nllb(folder, settings, spm)
    begin, forced_id = settings.token("decoder_start_token_id", 2), settings.token("forced_bos_token_id")
    targets = [code for code, i in codes.items() if i == forced_id] or list(codes)
    return fairseq_vocabulary(config, spm, ids, codes, targets, begin_id=begin, source_row=row, forced=True)


def _m2m100(folder: Folder, settings: Settings) -> tuple[dict[str, int], dict[str, int], SourceRow]:
    """Return the ids of all pieces, those of languages by code, and what surrounds a source."""
    ids = read_ids(folder, "vocab.json")
    for i, symbol in enumerate(FAIRSEQ):
        if ids.get(symbol) != i:
            raise ValueError(f"{folder.path}/vocab.json: {symbol} must have id {i}, found {ids.get(symbol)}")
    known_codes = language_codes("wmt21" if settings.tokenizer.get("language_codes") == "wmt21" else "m2m100")
    codes = language_ids(folder, settings, M2M100_SYMBOL, known_codes, len(ids))
    return ids | {f"__{code}__": i for code, i in codes.items()}, codes, SourceRow.LANGUAGE_FIRST


def _nllb(folder: Folder, settings: Settings, spm: bytes) -> tuple[dict[str, int], dict[str, int], SourceRow]:
    """Return the same as _m2m100()."""
    ids = fairseq_ids(spm)
    first = max(ids.values()) + 1
    # A folder made from the SentencePiece model alone names no languages.
    codes = language_ids(folder, settings, NLLB_SYMBOL, language_codes("nllb"), first)
    ids |= codes
    ids |= language_ids(folder, settings, MASK, ["<mask>"], first + len(codes))
    legacy = settings.tokenizer.get("legacy_behaviour") is True
    return ids, codes, SourceRow.LANGUAGE_LAST if legacy else SourceRow.LANGUAGE_FIRST


FAMILY = family(
    "m2m_100",
    "M2M100ForConditionalGeneration",
    Form({"position_code": PositionCode.FAIRSEQ}, _vocabulary, activation="relu", scale_embedding=True),
)
