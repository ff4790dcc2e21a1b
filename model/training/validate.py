"""Validation during training: loss, BLEU and chrF on the dev corpora."""

from __future__ import annotations

import numpy as np
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Examples, make_batch, plan_batches
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.state import TrainingState
from attention_atlas.model.translator import Translator


def validate(
    model: Transformer, state: TrainingState, tokenizer: TextTokenizer, dev: list, config: TrainConfig
) -> dict:
    """Score the weights and their moving average on the dev corpora.

    dev: (direction, corpus) pairs. Returns {"weights": .., "average": .., "averaged_is_better": bool}. Each entry holds
    the loss per token (natural log, no smoothing) and, for each direction and corpus, greedy BLEU and chrF on the first
    `dev_sentences`. The average is better if its mean BLEU is higher.
    """
    model.eval()
    scores = {"weights": _scores(model, tokenizer, dev, config)}
    if state.average:
        state.swap()
        scores["average"] = _scores(model, tokenizer, dev, config)
        state.swap()
    scores["averaged_is_better"] = bool(
        state.average and scores["average"]["mean_bleu"] > scores["weights"]["mean_bleu"]
    )
    return scores


def _scores(model: Transformer, tokenizer: TextTokenizer, dev: list, config: TrainConfig) -> dict:
    import sacrebleu  # optional: installed with the extra "train"

    device = next(model.parameters()).device
    result: dict = {}
    loss, tokens, bleus = 0.0, 0, []
    for direction, corpus in dev:
        source, target = parse_direction(direction)
        limits = {"max_length": model.config.max_length, "source_language": source}
        pairs = corpus.oriented(direction)[: config.dev_sentences]
        pairs = [p for p in pairs if Examples.encode([p], tokenizer, target, **limits).source]
        examples = Examples.encode(pairs, tokenizer, target, **limits)
        corpus_loss, corpus_tokens = summed_loss(model, examples, tokenizer, config.tokens_per_batch)
        loss, tokens = loss + corpus_loss, tokens + corpus_tokens
        translator = Translator(Checkpoint("", model, tokenizer, (direction,), {}, ""), device)
        translations = translator.translate_batch([s for s, _ in pairs])
        references = [[t for _, t in pairs]]
        bleu = sacrebleu.corpus_bleu(translations, references).score
        bleus.append(bleu)
        result[f"{direction} {corpus.name}"] = {
            "bleu": round(bleu, 2),
            "chrf": round(sacrebleu.corpus_chrf(translations, references).score, 2),
        }
    return {"loss": round(loss / tokens, 4), "mean_bleu": round(float(np.mean(bleus)), 2), **result}


@torch.inference_mode()
def summed_loss(
    model: Transformer, examples: Examples, tokenizer: TextTokenizer, tokens_per_batch: int
) -> tuple[float, int]:
    """Return the cross-entropy summed over all target tokens (natural log, no smoothing), and their number."""
    total, tokens = 0.0, 0
    for rows in plan_batches(examples, tokens_per_batch, seed=0, epoch=0):
        batch = make_batch(examples, rows, tokenizer).to(next(model.parameters()).device)
        logits = model(batch.source, batch.inputs).logits
        total += torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.outputs.flatten(), ignore_index=tokenizer.pad_id, reduction="sum"
        ).item()
        tokens += batch.tokens
    return total, tokens
