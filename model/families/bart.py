"""BART (Lewis et al. 2020), PEGASUS (Zhang et al. 2020), Blenderbot and Blenderbot-small (Roller et al. 2021).

They summarise, answer, or do what else they were fine-tuned for, in one language: no symbol names a direction.

                  norms   on embeddings  positions          decoder begins with  pieces
BART              after   yes            learned, 2 unused  </s>                 merged bytes
PEGASUS           before  no             sines in halves    <pad>                SentencePiece's, 103 symbols first
Blenderbot        before  no             learned            <s>                  merged bytes, a space first
Blenderbot-small  after   yes, in the    learned            <s>                  merged letters in lower case, and
                          decoder before positions                               nothing around a source
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families.fairseq import Form, Vocabulary, family
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.vocabulary import (
    SPIECE,
    TOKENIZER_JSON,
    UNNAMED,
    convert_json,
    list_pieces,
    read_merges,
    sentencepiece_ids,
)
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.text.splitters import MergedBytes, MergedLetters

UNUSED_ROWS = 2  # of BART's table of positions, a legacy of fairseq's padding symbol
PEGASUS_SYMBOLS = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 103)))
SMALL_SYMBOLS = ("__null__", "__start__", "__end__", "__unk__")
Pieces = tuple[dict[str, int], bytes]  # ids of all pieces, and the splitter's model


def _vocabulary(
    folder: Folder,
    settings: Settings,
    config: ModelConfig,
    *,
    read_pieces: Callable[[Folder, Settings], Pieces],
    begin: int = 1,
    end: int = 2,
    wrapped: bool = False,
    unknown: str = "<unk>",
    row: SourceRow = SourceRow.PLAIN,
) -> Vocabulary:
    """Read a vocabulary of one language.

    begin, end  the default ids of the decoder's start and of a text's end
    wrapped     whether <s> precedes a source, as </s> follows it
    """
    ids, model = read_pieces(folder, settings)
    if unknown not in ids:
        raise ValueError(f"{folder.path}: the vocabulary has no {unknown}")
    pieces, nameless = list_pieces(ids, config.vocabulary_size)
    begin_source, end_id = settings.token("bos_token_id", 0), settings.token("eos_token_id", end)
    forced = settings.token("forced_bos_token_id")
    symbol_pieces = {"<s>", "<mask>", unknown, *PEGASUS_SYMBOLS, *SMALL_SYMBOLS}
    special = {config.pad_id, end_id, *nameless, *(i for piece, i in ids.items() if piece in symbol_pieces)}
    symbols = Symbols(
        pad_id=config.pad_id,
        begin_id=settings.token("decoder_start_token_id", begin),
        end_id=end_id,
        unknown_id=ids[unknown],
        source_row=row,
        special_ids=tuple(sorted(special | ({begin_source} if wrapped else set()))),
        source_begin=(begin_source,) if wrapped else (),
        target_begin=() if forced is None else (forced,),
    )
    side = SideVocabulary(model, pieces)
    return Vocabulary(PieceTokenizer(side, side, symbols), tuple(nameless), (UNNAMED,))


def _merged_bytes(folder: Folder, settings: Settings) -> Pieces:
    """Read merged bytes; "add_prefix_space" says whether a space precedes any text, by default Blenderbot's."""
    is_blenderbot = settings.config.get("model_type") == "blenderbot"
    space_first = settings.tokenizer.get("add_prefix_space", is_blenderbot) is True
    return read_merges(folder, mark=MergedBytes.PREFIX * space_first)


def _pegasus(folder: Folder, settings: Settings) -> Pieces:
    """Return the ids of SentencePiece's pieces but its first two, numbered after PEGASUS' own symbols."""
    if not folder.has(SPIECE) and folder.has(TOKENIZER_JSON):
        spm, ids, _ = convert_json(folder, PEGASUS_SYMBOLS)
        return ids, spm
    spm = folder.bytes(SPIECE)
    first = len(PEGASUS_SYMBOLS) - 2
    pieces = {piece: i + first for piece, i in sentencepiece_ids(spm).items() if i >= 2}
    return {symbol: i for i, symbol in enumerate(PEGASUS_SYMBOLS)} | pieces, spm


POST_NORM = {"norm_first": False, "norm_embedding": True, "position_code": PositionCode.LEARNED}
BART = Form(
    {**POST_NORM, "position_offset": UNUSED_ROWS},
    partial(_vocabulary, read_pieces=_merged_bytes, begin=2, wrapped=True),
    pad=1,
)
PEGASUS = Form(
    {"norm_first": True, "position_code": PositionCode.HALVES},
    partial(_vocabulary, read_pieces=_pegasus, begin=0, end=1),
    pad=0,
)
BLENDERBOT = Form(
    {"norm_first": True, "position_code": PositionCode.LEARNED},
    partial(_vocabulary, read_pieces=_merged_bytes),
    pad=0,
)
BLENDERBOT_SMALL = Form(
    {**POST_NORM, "norm_before_positions": True},
    partial(
        _vocabulary,
        read_pieces=lambda folder, settings: read_merges(folder, mark=MergedLetters.MARK),
        unknown="__unk__",
        row=SourceRow.BARE,
    ),
    pad=0,
)
FAMILIES = (
    family("bart", "BartForConditionalGeneration", BART),
    family("pegasus", "PegasusForConditionalGeneration", PEGASUS),
    family("blenderbot", "BlenderbotForConditionalGeneration", BLENDERBOT),
    family("blenderbot-small", "BlenderbotSmallForConditionalGeneration", BLENDERBOT_SMALL),
)
