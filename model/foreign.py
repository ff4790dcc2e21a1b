"""Traces of any encoder-decoder that `transformers` runs (T5, BART, PEGASUS ..), for the explorer and the plots.

Attention only: such a model is not this project's, so that nothing can be switched off in it, stepped through or
checked, and its traces say so. An extra: `pip install transformers`; this module takes its objects and imports nothing
of it.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attention_atlas.model.decode.distributions import summarised
from attention_atlas.model.decode.recorded import Recorded
from attention_atlas.model.decode.trace_builder import Request, TraceBuilder
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import Token, TokenKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE, number_words, words_by_spaces

__all__ = ["trace_of"]

THEIRS = {
    AttentionKind.ENCODER_SELF: "encoder_attentions",
    AttentionKind.DECODER_SELF: "decoder_attentions",
    AttentionKind.CROSS: "cross_attentions",
}
BYTE_LEVEL_SPACE = "\u0120"  # how a vocabulary of bytes, such as BART's, writes a space
SAMPLED = 997  # numbers of each tensor that its digest goes over


@torch.inference_mode()
def trace_of(
    model: Any, tokenizer: Any, text: str, *, target: str | None = None, direction: str = "", max_new_tokens: int = 128
) -> TranslationTrace:
    """What a model of `transformers` attends to while it writes greedily, or reads a target that is given.

    model: with encoder and decoder, loaded with attn_implementation="eager"; tokenizer: its own; text: what it is to
    read, with whatever prefix it expects. ValueError for a model without maps or with maps of another form than
    [query, key] over the tokens (LED, LongT5, ProphetNet), or a target without tokens.
    """
    started = time.perf_counter()
    _check(model)
    source = tokenizer(text, return_tensors="pt").to(model.device)
    begin = _begin(model)
    if target is None:
        written = model.generate(**source, num_beams=1, do_sample=False, max_new_tokens=max_new_tokens)[0]
        ids, decoding = written[1:].tolist(), GREEDY
    else:
        ids = tokenizer(text_target=target)["input_ids"]
        decoding = Decoding(given=len(ids))
    if not ids:
        raise ValueError("the target has no tokens: there is nothing to follow")
    inputs = torch.tensor([[begin, *ids[:-1]]], device=model.device)
    output = model(**source, decoder_input_ids=inputs, output_attentions=True, use_cache=False, return_dict=True)
    names = _Names(tokenizer, begin, _end(model, tokenizer))
    steps = summarised(output.logits[0], torch.tensor(ids, device=model.device))
    build = TraceBuilder(
        Recorded(_Maps.of(output, source["input_ids"].shape[1], len(ids)), [steps]),
        names,
        seconds=time.perf_counter() - started,
        device=str(model.device),
        checkpoint=getattr(model.config, "_name_or_path", "") or type(model).__name__,
        digest=_digest(model),
    )
    request = Request(text, tuple(source["input_ids"][0].tolist()), direction, decoding=decoding)
    return replace(build(0, request, ids), attention_only=True)


def _check(model: Any) -> None:
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


def _begin(model: Any) -> int:
    """What its decoder starts from. ValueError if nothing says so."""
    for settings in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if isinstance(found := getattr(settings, name, None), int):
                return found
    raise ValueError("neither the model nor its generation_config has a decoder_start_token_id")


def _end(model: Any, tokenizer: Any) -> int:
    found = model.generation_config.eos_token_id
    found = tokenizer.eos_token_id if found is None else found
    return found[0] if isinstance(found, list) else -1 if found is None else found


def _digest(model: Any) -> str:
    """Tells models apart: 16 hex digits of the SHA-256 of all tensors' names, shapes and some numbers of each."""
    found = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        some = tensor.flatten()[:: max(1, tensor.numel() // SAMPLED)].float().cpu().numpy()
        found.update(f"{name} {list(tensor.shape)}".encode() + some.tobytes())
    return found.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class _Maps:
    """Their maps in the form of ours."""

    weights: dict[AttentionKind, Tensor]  # [layers, batch, heads, query, key]

    @classmethod
    def of(cls, output: Any, source: int, target: int) -> _Maps:
        """Of a pass over so many source and target tokens. ValueError unless each map is [query, key] over them."""
        maps = {kind: getattr(output, name) for kind, name in THEIRS.items()}
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
        return cls({kind: _rows(torch.stack(tuple(layers))) for kind, layers in maps.items()})

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        return tuple(self.weights)

    def maps(self, kind: AttentionKind, row: int) -> Tensor:
        return self.weights[kind][:, row]


def _rows(weights: Tensor) -> Tensor:
    """In float32; what half precision has rounded sums to 1 again."""
    exact = weights.dtype in (torch.float32, torch.float64)
    return weights.float() if exact else weights.float() / weights.float().sum(-1, keepdim=True)


class _Names:
    """A tokenizer of theirs, as far as a trace asks for it."""

    def __init__(self, tokenizer: Any, begin_id: int, end_id: int) -> None:
        self.theirs, self.begin_id, self.end_id = tokenizer, begin_id, end_id
        self.special = set(tokenizer.all_special_ids) | {begin_id}
        self.bytes = any(piece.startswith(BYTE_LEVEL_SPACE) for piece in tokenizer.get_vocab())

    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]:
        return tuple(self._token(int(i)) for i in ids)

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]:
        return self.tokens(ids)

    def in_words(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        return number_words(tokens, words_by_spaces(tokens))

    def decode(self, ids: Iterable[int]) -> str:
        return self.theirs.decode(list(ids), skip_special_tokens=True).strip()

    def _token(self, i: int) -> Token:
        piece = self.theirs.convert_ids_to_tokens(i) or f"<unused {i}>"
        if i in self.special:
            return Token(piece, TokenKind.SYMBOL)
        if self.bytes:  # each character stands for a byte: whole characters are shown as themselves
            text = self.theirs.convert_tokens_to_string([piece])
            piece = piece if "\ufffd" in text else text.replace(" ", SPACE)
        return Token(piece)
