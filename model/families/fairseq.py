"""Open a model with the network of fairseq or Marian, whose families differ in its variants and in their tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from attention_atlas.model.config import LIMITS, ModelConfig, PositionCode
from attention_atlas.model.families import tensors
from attention_atlas.model.families.family import Family, OpenedModel
from attention_atlas.model.families.folder import Folder, Weights
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.families.vocabulary import list_directions, list_pieces
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.trace.directions import Languages


class Vocabulary(NamedTuple):
    """A family's tokenizer, the ids that decoding may not choose, and the directions as in OpenedModel."""

    tokenizer: PieceTokenizer
    banned: tuple[int, ...]
    directions: tuple[str, ...]
    languages: Languages | None = None


def fairseq_vocabulary(
    config: ModelConfig,
    spm: bytes,
    ids: dict[str, int],
    codes: dict[str, int],
    targets: list[str],
    *,
    begin_id: int,
    source_row: SourceRow,
    forced: bool,
) -> Vocabulary:
    """Return the vocabulary of a model of many languages that fairseq trained.

    spm      the SentencePiece model of both sides
    ids      of all pieces
    codes    language -> id of its symbol
    targets  the languages that it writes
    forced   whether the decoder is made to write the target language's symbol first
    """
    pieces, nameless = list_pieces(ids, config.vocabulary_size)
    side = SideVocabulary(spm, pieces)
    symbols = Symbols(
        pad_id=config.pad_id,
        begin_id=begin_id,
        end_id=2,
        unknown_id=3,
        source_row=source_row,
        forced=forced,
        languages=tuple(codes.items()),
        special_ids=tuple(sorted({0, 1, 2, 3, *nameless, *(ids[m] for m in ("<mask>",) if m in ids)})),
    )
    return Vocabulary(PieceTokenizer(side, side, symbols), tuple(nameless), *list_directions(list(codes), targets))


@dataclass(frozen=True)
class Form:
    """The properties that a family's class fixes, whatever its config says.

    network  fields of ModelConfig
    read     reads the vocabulary, or raises ValueError with the value that cannot be read
    pad, activation, scale_embedding  the defaults of what a config may lack
    """

    network: Mapping[str, object]
    read: Callable[[Folder, Settings, ModelConfig], Vocabulary]
    pad: int = 1
    activation: str = "gelu"
    scale_embedding: bool = False


def family(model_type: str, architecture: str, form: Form) -> Family:
    """Return the registry entry of a family with this network."""
    return Family(model_type, (architecture,), partial(read, form))


def read(form: Form, folder: Folder, settings: Settings, weights: Weights) -> OpenedModel:
    """Open a folder. Raises ValueError, with the value, for another family's settings or unreadable files."""
    shared = settings.flag("share_encoder_decoder_embeddings", True)
    targets = None if shared else settings.integer("decoder_vocab_size", settings.integer("vocab_size"))
    heads, units = settings.integer("encoder_attention_heads"), settings.integer("encoder_ffn_dim")
    decoder_heads, decoder_units = settings.integer("decoder_attention_heads"), settings.integer("decoder_ffn_dim")
    config = ModelConfig(
        vocabulary_size=settings.integer("vocab_size"),
        d_model=settings.integer("d_model"),
        num_heads=heads,
        decoder_num_heads=None if decoder_heads == heads else decoder_heads,
        num_encoder_layers=settings.integer("encoder_layers"),
        num_decoder_layers=settings.integer("decoder_layers"),
        d_feedforward=units,
        decoder_d_feedforward=None if decoder_units == units else decoder_units,
        max_length=min(settings.integer("max_position_embeddings", 1024), LIMITS["max_length"]),
        pad_id=settings.integer("pad_token_id", form.pad),
        activation=settings.activation(form.activation),
        scale_embedding=settings.flag("scale_embedding", form.scale_embedding),
        **form.network,
        shared_embeddings=shared,
        target_vocabulary_size=targets,
        logits_bias=tensors.BIAS in weights.shapes,
    )
    if config.position_code is PositionCode.FAIRSEQ:
        config = replace(config, position_offset=config.pad_id + 1)
    matrices = tensors.find_embeddings(weights, tied=settings.flag("tie_word_embeddings", True), shared=shared)
    config, notes = tensors.use_stored_positions(matrices.configure(config), weights)
    tokenizer, banned, directions, languages = form.read(folder, settings, config)
    config = replace(config, banned_ids=settings.banned_ids(config, banned))
    ignored = tuple(tensors.POSITIONS.values()) + (() if shared else tensors.embedding_names("model.")[:1])
    converted = tensors.convert(weights, config, matrices, ignored=ignored)
    return OpenedModel(config, converted, tokenizer, directions, languages, (*matrices.notes, *notes))
