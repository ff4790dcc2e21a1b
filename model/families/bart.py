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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, OpenedModel
from attention_atlas.model.families.folder import Folder, Weights
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
Vocabulary = tuple[dict[str, int], bytes]  # ids of all pieces, and the splitter's model


@dataclass(frozen=True)
class Form:
    """The properties that a family's class fixes, whatever its config says.

    network          fields of ModelConfig
    pad, begin, end  the default ids of padding, of the decoder's start and of a text's end
    wrapped          whether <s> precedes a source, as </s> follows it
    """

    network: Mapping[str, object]
    vocabulary: Callable[[Folder, Settings], Vocabulary]
    pad: int = 0
    begin: int = 1
    end: int = 2
    wrapped: bool = False
    unknown: str = "<unk>"
    row: SourceRow = SourceRow.PLAIN


def reader(form: Form) -> Callable[[Folder, Settings, Weights], OpenedModel]:
    """Return the function that opens a folder of this form (model.families.family.Family.read)."""

    def read(folder: Folder, settings: Settings, weights: Weights) -> OpenedModel:
        config = replace(
            settings.model_config(activation="gelu", scale_embedding=False, pad=form.pad),
            **form.network,
            logits_bias=tensors.BIAS in weights.shapes,
        )
        matrices = tensors.find_embeddings(weights, tied=settings.flag("tie_word_embeddings", True), shared=True)
        config, notes = tensors.use_stored_positions(matrices.configure(config), weights)
        tokenizer, nameless = _tokenizer(form, folder, settings, config)
        config = replace(config, banned_ids=settings.banned_ids(config, nameless))
        ignored = tuple(tensors.POSITIONS.values())
        return OpenedModel(
            config,
            tensors.convert(weights, config, matrices, ignored=ignored),
            tokenizer,
            (UNNAMED,),
            notes=(*matrices.notes, *notes),
        )

    return read


def _tokenizer(form: Form, folder: Folder, settings: Settings, config: ModelConfig) -> tuple[PieceTokenizer, list[int]]:
    """Return the tokenizer and the ids without a piece."""
    ids, model = form.vocabulary(folder, settings)
    unknown = ids.get(form.unknown)
    if unknown is None:
        raise ValueError(f"{folder.path}: the vocabulary has no {form.unknown}")
    pieces, nameless = list_pieces(ids, config.vocabulary_size)
    begin, end = settings.token("bos_token_id", 0), settings.token("eos_token_id", form.end)
    forced = settings.token("forced_bos_token_id")
    symbol_pieces = {"<s>", "<mask>", *PEGASUS_SYMBOLS, *SMALL_SYMBOLS}
    special = {config.pad_id, end, unknown, *nameless, *(i for piece, i in ids.items() if piece in symbol_pieces)}
    symbols = Symbols(
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
    return PieceTokenizer(side, side, symbols), nameless


def _merged_bytes(folder: Folder, settings: Settings) -> Vocabulary:
    """Read merged bytes; "add_prefix_space" says whether a space precedes any text, by default Blenderbot's."""
    is_blenderbot = settings.config.get("model_type") == "blenderbot"
    space_first = settings.tokenizer.get("add_prefix_space", is_blenderbot) is True
    return read_merges(folder, mark=MergedBytes.PREFIX * space_first)


def _pegasus(folder: Folder, settings: Settings) -> Vocabulary:
    """Return the ids of SentencePiece's pieces but its first two, numbered after PEGASUS' own symbols."""
    if not folder.has(SPIECE) and folder.has(TOKENIZER_JSON):
        spm, ids, _ = convert_json(folder, PEGASUS_SYMBOLS)
        return ids, spm
    spm = folder.bytes(SPIECE)
    first = len(PEGASUS_SYMBOLS) - 2
    pieces = {piece: i + first for piece, i in sentencepiece_ids(spm).items() if i >= 2}
    return {symbol: i for i, symbol in enumerate(PEGASUS_SYMBOLS)} | pieces, spm


BART = Form(
    {
        "norm_first": False,
        "norm_embedding": True,
        "position_code": PositionCode.LEARNED,
        "position_offset": UNUSED_ROWS,
    },
    _merged_bytes,
    pad=1,
    begin=2,
    wrapped=True,
)
PEGASUS = Form({"norm_first": True, "position_code": PositionCode.HALVES}, _pegasus, begin=0, end=1)
BLENDERBOT = Form({"norm_first": True, "position_code": PositionCode.LEARNED}, _merged_bytes)
BLENDERBOT_SMALL = Form(
    {
        "norm_first": False,
        "norm_embedding": True,
        "norm_before_positions": True,
        "position_code": PositionCode.LEARNED,
    },
    lambda folder, settings: read_merges(folder, mark=MergedLetters.MARK),
    unknown="__unk__",
    row=SourceRow.BARE,
)
FAMILIES = tuple(
    Family(model_type, (f"{name}ForConditionalGeneration",), reader(form))
    for model_type, name, form in (
        ("bart", "Bart", BART),
        ("pegasus", "Pegasus", PEGASUS),
        ("blenderbot", "Blenderbot", BLENDERBOT),
        ("blenderbot-small", "BlenderbotSmall", BLENDERBOT_SMALL),
    )
)
