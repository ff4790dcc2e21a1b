"""Trace any encoder-decoder model of `transformers` (T5, BART, PEGASUS ..), for the explorer and the plots.

These traces hold only attention: the model is not this project's, so it cannot be edited, stepped through or verified.
The module takes objects of `transformers` and does not import it: install it with `pip install transformers`.

>>> from tokenizers import Tokenizer, models, pre_tokenizers
>>> from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration
>>> words = Tokenizer(models.WordLevel({"<pad>": 0, "</s>": 1, "<unk>": 2, "small": 3, "house": 4}, "<unk>"))
>>> words.pre_tokenizer = pre_tokenizers.Whitespace()
>>> marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
>>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **marks)
>>> sizes = {"vocab_size": 5, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
>>> config = T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
>>> trace_of(T5ForConditionalGeneration(config).eval(), tokenizer, "small house").cross.weights.shape[:2]
(1, 2)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import summarize
from attention_atlas.model.decode.recorded import BatchMaps, RecordedDecode
from attention_atlas.model.decode.trace_builder import Request, build_trace
from attention_atlas.model.text.interface import TokenNames
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import Token, TokenKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE

__all__ = ["trace_of"]

MAPS = {  # the fields of an output of `transformers`
    AttentionKind.ENCODER_SELF: "encoder_attentions",
    AttentionKind.DECODER_SELF: "decoder_attentions",
    AttentionKind.CROSS: "cross_attentions",
}
BYTE_LEVEL_SPACE = "\u0120"  # the space of a vocabulary of bytes, such as BART's
DIGEST_SAMPLES = 997  # numbers of each tensor


@torch.inference_mode()
def trace_of(
    model: Any, tokenizer: Any, text: str, *, target: str | None = None, direction: str = "", max_new_tokens: int = 128
) -> TranslationTrace:
    """Trace a model of `transformers` while it decodes greedily, or reads a target.

    model           an encoder-decoder, loaded with attn_implementation="eager"
    tokenizer       the model's
    text            the source, with the prefix that the model expects
    target          read as if the model had written it
    max_new_tokens  the limit of greedy decoding

    Raises ValueError for a model without maps or with maps that are not [query, key] over the tokens (LED, LongT5,
    ProphetNet), and for a target without tokens.
    """
    started = time.perf_counter()
    _check_model(model)
    source = tokenizer(text, return_tensors="pt").to(model.device)
    begin = _begin_id(model)
    if target is None:
        generated = model.generate(**source, num_beams=1, do_sample=False, max_new_tokens=max_new_tokens)[0]
        ids, decoding = generated[1:].tolist(), GREEDY
    else:
        ids = tokenizer(text_target=target)["input_ids"]
        decoding = Decoding(given=len(ids))
    if not ids:
        raise ValueError("the target has no tokens: there is nothing to follow")
    inputs = torch.tensor([[begin, *ids[:-1]]], device=model.device)
    output = model(**source, decoder_input_ids=inputs, output_attentions=True, use_cache=False, return_dict=True)
    steps = summarize(output.logits[0], torch.tensor(ids, device=model.device))
    return build_trace(
        RecordedDecode(_read_maps(output, source["input_ids"].shape[1], len(ids)), [steps.map(Tensor.cpu)]),
        _TokenNames(tokenizer, begin, _end_id(model, tokenizer)),
        0,
        Request(text, tuple(source["input_ids"][0].tolist()), direction, decoding=decoding),
        ids,
        seconds=time.perf_counter() - started,
        device=str(model.device),
        checkpoint=getattr(model.config, "_name_or_path", "") or type(model).__name__,
        digest=_digest(model),
        attention_only=True,
    )


def _check_model(model: Any) -> None:
    if not getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(f"{type(model).__name__} has no encoder and decoder: only models with both can be shown")
    if model.training:
        raise ValueError("the model is in training mode, with dropout: call its eval() first")
    if hasattr(model.config, "attention_window"):  # LED's maps have window + 1 columns, which are offsets, not keys
        raise ValueError(f"the maps of {type(model).__name__} are not [query, key]: it attends within a window")
    if getattr(model.config, "_attn_implementation", "eager") != "eager":
        raise ValueError(
            'the model keeps no attention maps: load it with attn_implementation="eager", found '
            f"{model.config._attn_implementation!r}"
        )


def _begin_id(model: Any) -> int:
    """Return the id that the decoder starts from. Raises ValueError if the model does not define it."""
    for settings in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if isinstance(token_id := getattr(settings, name, None), int):
                return token_id
    raise ValueError("neither the model nor its generation_config has a decoder_start_token_id")


def _end_id(model: Any, tokenizer: Any) -> int:
    """Return the id that ends a target, -1 if there is none."""
    token_id = model.generation_config.eos_token_id
    token_id = tokenizer.eos_token_id if token_id is None else token_id
    return token_id[0] if isinstance(token_id, list) else -1 if token_id is None else token_id


def _digest(model: Any) -> str:
    """Return 16 hex digits of the SHA-256 of all tensors' names, shapes and a sample of their numbers."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        sample = tensor.flatten()[:: max(1, tensor.numel() // DIGEST_SAMPLES)].float().cpu().numpy()
        digest.update(f"{name} {list(tensor.shape)}".encode() + sample.tobytes())
    return digest.hexdigest()[:16]


def _read_maps(output: Any, source: int, target: int) -> BatchMaps:
    """Return the maps of a pass of `transformers` over these numbers of tokens.

    Raises ValueError for maps of another shape.
    """
    maps = {kind: getattr(output, name) for kind, name in MAPS.items()}
    if any(not layers or layers[0] is None for layers in maps.values()):
        raise ValueError('the model gave no attention maps: load it with attn_implementation="eager"')
    sizes = {
        AttentionKind.ENCODER_SELF: (source, source),
        AttentionKind.DECODER_SELF: (target, target),
        AttentionKind.CROSS: (target, source),
    }
    for kind, layers in maps.items():
        for layer in layers:
            if layer.ndim != 4 or tuple(layer.shape[2:]) != sizes[kind]:
                raise ValueError(
                    f"the model's {kind.value} maps are {list(layer.shape)}, expected [batch, heads, query, key] "
                    f"with {' and '.join(map(str, sizes[kind]))} tokens: such attention cannot be shown"
                )
    return BatchMaps({kind: _to_float32(torch.stack(tuple(layers), dim=1)) for kind, layers in maps.items()})


def _to_float32(weights: Tensor) -> Tensor:
    """Return weights as float32; rows that half precision rounded sum to 1 again."""
    is_exact = weights.dtype in (torch.float32, torch.float64)
    return weights.float() if is_exact else weights.float() / weights.float().sum(-1, keepdim=True)


class _TokenNames(TokenNames):
    """The tokens of a tokenizer of `transformers`."""

    def __init__(self, tokenizer: Any, begin_id: int, end_id: int) -> None:
        self.tokenizer, self.begin_id, self.end_id = tokenizer, begin_id, end_id
        self.special = set(tokenizer.all_special_ids) | {begin_id}
        self.is_byte_level = any(piece.startswith(BYTE_LEVEL_SPACE) for piece in tokenizer.get_vocab())

    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]:
        return tuple(self._token(int(i)) for i in ids)

    def decode(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True).strip()

    def _token(self, i: int) -> Token:
        piece = self.tokenizer.convert_ids_to_tokens(i) or f"<unused {i}>"
        if i in self.special:
            return Token(piece, TokenKind.SYMBOL)
        if self.is_byte_level:  # the characters stand for bytes: show whole characters as themselves
            text = self.tokenizer.convert_tokens_to_string([piece])
            piece = piece if "\ufffd" in text else text.replace(" ", SPACE)
        return Token(piece)
