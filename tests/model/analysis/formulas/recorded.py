"""A sentence's way through a tiny model, for the tests of the formulas."""

from __future__ import annotations

import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

TEXT = "Meine Schwester malt ein rotes Boot."


def recorded(
    model: Transformer | Translator, tokenizer: Tokenizer
) -> tuple[Translator, TranslationTrace, ForwardOutput]:
    """The translator, the trace of TEXT, and the records of its pass."""
    if isinstance(model, Transformer):
        model = Translator(Checkpoint("other", model, tokenizer, ("de-en",), {}, "6" * 16), torch.device("cpu"))
    trace = model.translate(TEXT)
    return model, trace, model.inspect(trace.source_ids, trace.target_ids)
