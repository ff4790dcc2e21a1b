"""Folders at the sizes of published models, with random weights, in the format of Marian or T5, for `bench.own`."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers builds a model here and must not fetch one

import sentencepiece
import torch

from attention_atlas.model.config import ModelConfig
from bench.made.captions import texts
from bench.made.peers import random_marian

SHAPES = {
    "opus-mt": ModelConfig(58_101, 512, 8, 6, 6, 2048, norm_first=False, max_length=512),
    "nllb-600m": ModelConfig(256_206, 1024, 16, 12, 12, 4096, max_length=1024),
    "tiny": ModelConfig(301, 32, 4, 2, 2, 64, max_length=64),
    "t5-base": ModelConfig(32_128, 768, 12, 12, 12, 3072, max_length=512),
    "t5-tiny": ModelConfig(301, 32, 4, 2, 2, 64, max_length=64),
}
SENTINELS = 100  # of T5, after the pieces


def random_model(shape: str):
    """Return transformers' MarianMTModel or T5ForConditionalGeneration of a shape, which returns attention maps."""
    config = SHAPES[shape]
    torch.manual_seed(0)
    if not shape.startswith("t5"):
        return random_marian(
            config,
            maps=True,
            max_position_embeddings=config.max_length,
            activation_function="swish",
            pad_token_id=config.vocabulary_size - 1,
            eos_token_id=0,
            decoder_start_token_id=config.vocabulary_size - 1,
        )
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = T5Config(
        vocab_size=config.vocabulary_size,
        d_model=config.d_model,
        d_kv=config.d_model // config.num_heads,
        d_ff=config.d_feedforward,
        num_layers=config.num_encoder_layers,
        num_heads=config.num_heads,
        decoder_start_token_id=0,
    )
    sizes._attn_implementation = "eager"
    return T5ForConditionalGeneration(sizes).eval()


def write(model, folder: Path, *, pickled: bool = False) -> Path:
    """Save a random_model() with a tokenizer's files; return the folder. pickled: in the format before torch 1.6."""
    folder.mkdir(parents=True)
    if pickled:
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    else:
        model.save_pretrained(folder)
    if model.config.model_type == "t5":
        pieces = model.config.vocab_size - SENTINELS
        words = [f"word{i}" for i in range(pieces - 100)]
        (folder / "spiece.model").write_bytes(_train_pieces(pieces, words, pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": SENTINELS}), encoding="utf-8"
        )
        return folder
    spm = _train_pieces(100, [], unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    names = ["</s>", "<unk>", *(processor.IdToPiece(i) for i in range(3, processor.GetPieceSize()))]
    names += [f"▁word{i}" for i in range(model.config.vocab_size - len(names) - 1)] + ["<pad>"]
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(spm)
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(names)}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "de", "target_lang": "en"}), encoding="utf-8"
    )
    return folder


def _train_pieces(size: int, words: list[str], **ids: int) -> bytes:
    """Return a SentencePiece model of `size` pieces, which include `words`. ids: of its special symbols."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts(200, "de")),
        model_writer=model,
        vocab_size=size,
        user_defined_symbols=words,
        minloglevel=2,
        character_coverage=1.0,
        **ids,
    )
    return model.getvalue()
