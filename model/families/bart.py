"""BART (Lewis et al. 2020), PEGASUS (Zhang et al. 2020), Blenderbot and the small one (Roller et al. 2021): of one
language, for summaries, answers and whatever else they were tuned for. Nothing in a text or a vocabulary names a
direction.

                  norms   on embeddings  positions          decoder begins with  pieces
BART              after   yes            learned, 2 unused  </s>                 merged bytes
PEGASUS           before  no             sines in halves    <pad>                SentencePiece's, 103 symbols first
Blenderbot        before  no             learned            <s>                  merged bytes, a space first
Blenderbot-small  after   yes, in the    learned            <s>                  merged letters in lower case, and
                          decoder before positions                               nothing around a source
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, Opened
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.pieces.splitter import FAST, fast
from attention_atlas.model.families.pieces.vocabulary import SPIECE, UNNAMED, merges, named, piece_ids
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.text.splitters import MergedBytes, MergedLetters

UNUSED_ROWS = 2  # of BART's table of positions, a legacy of fairseq's padding symbol
PEGASUS_SYMBOLS = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 103)))
SMALL_SYMBOLS = ("__null__", "__start__", "__end__", "__unk__")
Vocabulary = tuple[dict[str, int], bytes]  # ids of all pieces, and what splits


@dataclass(frozen=True)
class Form:
    """What a family's class decides, whatever its configs say. begin: what its decoder starts from, if no file says
    so; wrapped: whether a source stands between <s> and </s>, and not before </s> alone."""

    norm_first: bool
    norm_embedding: bool
    position_code: PositionCode
    position_offset: int
    pad: int
    begin: int
    end: int
    activation: str
    vocabulary: Callable[[Folder, Settings], Vocabulary]
    wrapped: bool = False
    norm_before_positions: bool = False
    unknown: str = "<unk>"
    row: SourceRow = SourceRow.PLAIN


def read(form: Form) -> Callable[[Folder, Settings, Weights], Opened]:
    """A reader, which raises ValueError, naming what was found, for what is no such model or cannot be opened."""

    def opened(folder: Folder, settings: Settings, weights: Weights) -> Opened:
        config = replace(
            settings.network(activation=form.activation, scale_embedding=False, pad=form.pad),
            norm_first=form.norm_first,
            norm_embedding=form.norm_embedding,
            norm_before_positions=form.norm_before_positions,
            position_code=form.position_code,
            position_offset=form.position_offset,
            logits_bias=tensors.BIAS in weights.shapes,
        )
        tied = settings.flag("tie_word_embeddings", True)
        matrices = tensors.embeddings(weights, tied=tied, shared=True)
        config, notes = tensors.stored_positions(matrices.told(config), weights)
        tokenizer, nameless = _tokenizer(form, folder, settings, config)
        config = replace(config, banned_ids=_banned(settings, nameless, config))
        ignored = tuple(tensors.POSITIONS.values())
        return Opened(
            config,
            tensors.ours(weights, config, matrices, ignored=ignored),
            tokenizer,
            (UNNAMED,),
            notes=(*matrices.notes, *notes),
        )

    return opened


def _banned(settings: Settings, nameless: list[int], config: ModelConfig) -> tuple[int, ...]:
    return tuple(sorted(i for i in {*settings.banned(), *nameless} if i < config.vocabulary_size))


def _tokenizer(form: Form, folder: Folder, settings: Settings, config: ModelConfig) -> tuple[PieceTokenizer, list[int]]:
    """The tokenizer, and the ids that have no piece."""
    ids, model = form.vocabulary(folder, settings)
    unknown = ids.get(form.unknown)
    if unknown is None:
        raise ValueError(f"{folder.path}: the vocabulary has no {form.unknown}")
    pieces, nameless = named(ids, config.vocabulary_size)
    begin, end = settings.token("bos_token_id", 0), settings.token("eos_token_id", form.end)
    forced = settings.token("forced_bos_token_id")
    symbols = {"<s>", "<mask>", *PEGASUS_SYMBOLS, *SMALL_SYMBOLS}
    special = {config.pad_id, end, unknown, *nameless, *(i for piece, i in ids.items() if piece in symbols)}
    described = Symbols(
        pad_id=config.pad_id,
        begin_id=settings.token("decoder_start_token_id", form.begin),
        end_id=end,
        unknown_id=unknown,
        source_row=form.row,
        special_ids=tuple(sorted(special | ({begin} if form.wrapped else set()))),
        source_begin=(begin,) if form.wrapped else (),
        target_begin=() if forced is None else (forced,),
    )
    side = SideVocabulary(model, pieces)
    return PieceTokenizer(side, side, described), nameless


def _merged_bytes(folder: Folder, settings: Settings, *, space_first: bool) -> Vocabulary:
    space_first = settings.tokenizer.get("add_prefix_space", space_first) is True
    return merges(folder, mark=MergedBytes.PREFIX * space_first)


def _pegasus(folder: Folder, settings: Settings) -> Vocabulary:
    """SentencePiece's own pieces but for the first two, after the symbols."""
    if not folder.has(SPIECE) and folder.has(FAST):
        spm, ids, _ = fast(folder, PEGASUS_SYMBOLS)
        return ids, spm
    spm = folder.bytes(SPIECE)
    first = len(PEGASUS_SYMBOLS) - 2
    pieces = {piece: i + first for piece, i in piece_ids(spm).items() if i >= 2}
    return {symbol: i for i, symbol in enumerate(PEGASUS_SYMBOLS)} | pieces, spm


BART = Form(
    False,
    True,
    PositionCode.LEARNED,
    UNUSED_ROWS,
    pad=1,
    begin=2,
    end=2,
    activation="gelu",
    vocabulary=lambda folder, settings: _merged_bytes(folder, settings, space_first=False),
    wrapped=True,
)
PEGASUS = Form(True, False, PositionCode.HALVES, 0, 0, 0, 1, "gelu", _pegasus)
BLENDERBOT = Form(
    True,
    False,
    PositionCode.LEARNED,
    0,
    pad=0,
    begin=1,
    end=2,
    activation="gelu",
    vocabulary=lambda folder, settings: _merged_bytes(folder, settings, space_first=True),
)
BLENDERBOT_SMALL = Form(
    False,
    True,
    PositionCode.LEARNED,
    0,
    pad=0,
    begin=1,
    end=2,
    activation="gelu",
    vocabulary=lambda folder, settings: merges(folder, mark=MergedLetters.MARK),
    norm_before_positions=True,
    unknown="__unk__",
    row=SourceRow.BARE,
)
FAMILIES = tuple(
    Family(model_type, (f"{name}ForConditionalGeneration",), read(form))
    for model_type, name, form in (
        ("bart", "Bart", BART),
        ("pegasus", "Pegasus", PEGASUS),
        ("blenderbot", "Blenderbot", BLENDERBOT),
        ("blenderbot-small", "BlenderbotSmall", BLENDERBOT_SMALL),
    )
)
