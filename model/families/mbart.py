"""mBART (Liu et al. 2020) and mBART-50 (Tang et al. 2020), fine-tuned for translation.

Pre-norm, a norm on embeddings, learned positions whose first two rows are unused, a bias on the logits. mBART-50 writes
language symbols as M2M100 does; the first mBART writes the source's after the text, and its decoder starts from the
target's.
"""

from __future__ import annotations

import re

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families.fairseq import Form, Vocabulary, fairseq_vocabulary, family
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.vocabulary import (
    fairseq_ids,
    language_codes,
    language_ids,
    read_fairseq_model,
)
from attention_atlas.model.text.pieces import SourceRow

MASK = re.compile("(<mask>)")
SYMBOL = re.compile(r"([a-z]{2}_[A-Z]{2})")
UNUSED_ROWS = 2  # of the table of positions, a legacy of fairseq's padding symbol


def _vocabulary(folder: Folder, settings: Settings, config: ModelConfig) -> Vocabulary:
    begin = settings.token("decoder_start_token_id")
    if begin is None:
        raise ValueError(
            f"{folder.path} has no decoder_start_token_id: an mBART that was not fine-tuned for translation writes none"
        )
    spm = read_fairseq_model(folder)
    ids = fairseq_ids(spm)
    first = max(ids.values()) + 1
    is_first_mbart = begin >= first  # its decoder starts from a language
    codes = language_ids(folder, settings, SYMBOL, language_codes("mbart" if is_first_mbart else "mbart50"), first)
    ids |= codes
    if max(ids.values()) + 1 < config.vocabulary_size:
        ids |= language_ids(folder, settings, MASK, ["<mask>"], max(ids.values()) + 1)
    row = SourceRow.LANGUAGE_LAST if is_first_mbart else SourceRow.LANGUAGE_FIRST
    forced_id = begin if is_first_mbart else settings.token("forced_bos_token_id")
    targets = [code for code, i in codes.items() if forced_id in (None, i)]
    if not targets:
        raise ValueError(f"{folder.path}: token {forced_id}, with which every translation begins, is no language of it")
    options = {"begin_id": begin, "source_row": row, "forced": not is_first_mbart}
    return fairseq_vocabulary(config, spm, ids, codes, targets, **options)


NETWORK = {"position_code": PositionCode.LEARNED, "position_offset": UNUSED_ROWS, "norm_embedding": True}
FAMILY = family("mbart", "MBartForConditionalGeneration", Form(NETWORK, _vocabulary))
