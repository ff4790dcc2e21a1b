"""mBART (Liu et al. 2020) and mBART-50 (Tang et al. 2020), fine-tuned for translation.

Pre-norm, a norm on embeddings, learned positions whose first two rows belong to none, a bias on the logits. mBART-50
writes languages as M2M100 does; the first mBART after the source, and its decoder starts from the target's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attention_atlas.model.config import PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, Opened
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.pieces.codes import MBART, MBART50
from attention_atlas.model.families.pieces.splitter import splitter
from attention_atlas.model.families.pieces.vocabulary import directions, fairseq_ids, fairseq_tokenizer, languages
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.text.pieces import SourceRow

MASK = re.compile("(<mask>)")
SYMBOL = re.compile(r"([a-z]{2}_[A-Z]{2})")
UNUSED_ROWS = 2  # of the table of positions, a legacy of fairseq's padding symbol


def read(folder: Folder, settings: Settings, weights: Weights) -> Opened:
    """ValueError, naming what was found, for what is no such model or cannot be opened."""
    tied = settings.flag("tie_word_embeddings", True)
    config = replace(
        settings.network(activation="gelu", scale_embedding=False),
        position_code=PositionCode.LEARNED,
        position_offset=UNUSED_ROWS,
        norm_embedding=True,
        logits_bias=tensors.BIAS in weights.shapes,
    )
    matrices = tensors.embeddings(weights, tied=tied, shared=True)
    config = matrices.told(config)
    begin = settings.token("decoder_start_token_id")
    if begin is None:
        raise ValueError(
            f"{folder.path} has no decoder_start_token_id: an mBART that was not fine-tuned for translation writes none"
        )
    spm = splitter(folder)
    ids = fairseq_ids(spm)
    first = max(ids.values()) + 1
    old = begin >= first  # the decoder starts from a language
    codes = languages(folder, settings.tokenizer, SYMBOL) or {
        code: first + at for at, code in enumerate(MBART if old else MBART50)
    }
    ids |= codes
    if max(ids.values()) + 1 < config.vocabulary_size:
        ids |= languages(folder, settings.tokenizer, MASK) or {"<mask>": max(ids.values()) + 1}
    row = SourceRow.LANGUAGE_LAST if old else SourceRow.LANGUAGE_FIRST
    tokenizer, config = fairseq_tokenizer(
        settings, config, spm, ids, codes, begin_id=begin, source_row=row, forced=not old
    )
    only = begin if old else settings.token("forced_bos_token_id")
    targets = [code for code, i in codes.items() if only in (None, i)]
    if not targets:
        raise ValueError(f"{folder.path}: token {only}, with which every translation begins, is no language of it")
    return Opened(
        config, tensors.ours(weights, config, matrices), tokenizer, *directions(list(codes), targets), matrices.notes
    )


FAMILY = Family("mbart", ("MBartForConditionalGeneration",), read)
