"""Folders at the sizes of published models, with random weights, in Marian's form or in T5's: what `bench.own`
measures."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers is to build a model, not to fetch one

import sentencepiece
import torch

from bench.speed import SENTENCES

# vocabulary, d_model, layers a side, heads, d_feedforward, positions
SHAPES = {
    "opus-mt": (58_101, 512, 6, 8, 2048, 512),
    "nllb-600m": (256_206, 1024, 12, 16, 4096, 1024),
    "tiny": (301, 32, 2, 4, 64, 64),
    "t5-base": (32_128, 768, 12, 12, 3072, 512),
    "t5-tiny": (301, 32, 2, 4, 64, 64),
}
SENTINELS = 100  # of T5, after the pieces


def theirs(shape: str, *, maps: bool = True):
    """transformers.MarianMTModel, or T5ForConditionalGeneration, of this shape; maps: with the kernel that gives
    attention maps."""
    from transformers import MarianConfig, MarianMTModel, T5Config, T5ForConditionalGeneration

    vocabulary, d_model, layers, heads, wide, positions = SHAPES[shape]
    torch.manual_seed(0)
    if shape.startswith("t5"):
        sizes = T5Config(
            vocab_size=vocabulary,
            d_model=d_model,
            d_kv=d_model // heads,
            d_ff=wide,
            num_layers=layers,
            num_heads=heads,
            decoder_start_token_id=0,
        )
        sizes._attn_implementation = "eager" if maps else "sdpa"
        return T5ForConditionalGeneration(sizes).eval()
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=d_model,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=wide,
        decoder_ffn_dim=wide,
        max_position_embeddings=positions,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=vocabulary - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
        decoder_start_token_id=vocabulary - 1,
    )
    config._attn_implementation = "eager" if maps else "sdpa"
    return MarianMTModel(config).eval()


def write(model, folder: Path, *, pickled: bool = False) -> Path:
    """Save a model of theirs() with a tokenizer's files; pickled: in the form before torch 1.6. The folder itself."""
    folder.mkdir(parents=True)
    if pickled:
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    else:
        model.save_pretrained(folder)
    if model.config.model_type == "t5":
        pieces = model.config.vocab_size - SENTINELS
        words = [f"word{i}" for i in range(pieces - 100)]
        (folder / "spiece.model").write_bytes(_pieces(pieces, words, pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": SENTINELS}), encoding="utf-8"
        )
        return folder
    spm = _pieces(100, [], unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
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


def _pieces(size: int, words: list[str], **ids: int) -> bytes:
    """A SentencePiece model of so many pieces, these words among them, with these ids of its symbols."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([text for texts in SENTENCES.values() for text in texts] * 5),
        model_writer=written,
        vocab_size=size,
        user_defined_symbols=words,
        minloglevel=2,
        character_coverage=1.0,
        **ids,
    )
    return written.getvalue()
