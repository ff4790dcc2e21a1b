"""Marian: OPUS-MT and OPUS-MT tc-big (Tiedemann and Thottingal 2020), for one pair of languages or many targets.

Post-norm, sines and cosines in halves from position 0, a bias on the logits. The decoder starts from the padding
symbol, which it must never write.
"""

from __future__ import annotations

import re

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families.fairseq import Form, Vocabulary, family
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.vocabulary import UNNAMED, list_directions, list_pieces, read_ids
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.trace.directions import Languages, is_code

LANGUAGE = re.compile(r">>(.+)<<")


def _vocabulary(folder: Folder, settings: Settings, config: ModelConfig) -> Vocabulary:
    separate = settings.tokenizer.get("separate_vocabs") is True
    ids = read_ids(folder, "vocab.json")
    source_pieces, _ = list_pieces(ids, config.vocabulary_size)
    source = SideVocabulary(folder.bytes("source.spm"), source_pieces)
    target_ids = read_ids(folder, "target_vocab.json") if separate else ids
    target_pieces, nameless = list_pieces(target_ids, config.num_target_tokens)
    is_one = not separate and folder.bytes("target.spm") == source.model
    target = source if is_one else SideVocabulary(folder.bytes("target.spm"), target_pieces)
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
    tokenizer = PieceTokenizer(source, target, symbols)
    banned = (*nameless, settings.integer("pad_token_id"))
    return Vocabulary(tokenizer, banned, *_directions(folder, settings, tokenizer))


def _directions(
    folder: Folder, settings: Settings, tokenizer: PieceTokenizer
) -> tuple[tuple[str, ...], Languages | None]:
    """Return the directions of tokenizer_config.json, else of a name that the model has or had ("opus-mt-en-de")."""
    source, target = settings.tokenizer.get("source_lang"), settings.tokenizer.get("target_lang")
    if not (is_code(source) and is_code(target)):
        names = [str(settings.config.get("_name_or_path", "")).rstrip("/").split("/")[-1], folder.path.name]
        pairs = [name.split("-")[-2:] for name in names if "-" in name]
        source, target = next((p for p in pairs if all(map(is_code, p)) and p[0] != p[1]), UNNAMED.split("-"))
    if not tokenizer.language_ids:
        return (f"{source}-{target}" if source != target else UNNAMED,), None
    return list_directions([source], sorted(tokenizer.language_ids))


FAMILY = family(
    "marian", "MarianMTModel", Form({"position_code": PositionCode.HALVES, "norm_first": False}, _vocabulary)
)
