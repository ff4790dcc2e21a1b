"""How often the encoder's lens finds words of a sentence's own translation, beside another sentence's."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attention_atlas.model.analysis.lenses.encoder import best, pointed
from attention_atlas.model.analysis.lenses.fitted import Found, Lenses
from attention_atlas.model.analysis.lenses.streams import streams
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

COMMON = 300  # the first pieces of a vocabulary are symbols, endings and the commonest words: they prove nothing
BATCH = 32


@torch.inference_mode()
def found_words(translator: Translator, lenses: Lenses, pairs: Sequence[tuple[str, str]], direction: str) -> Found:
    """Of pairs (source, reference). Another sentence is the next one. ValueError for fewer than two that fit."""
    pairs = [(s, t) for s, t in pairs if s.strip() and t.strip() and translator.fits(s, direction)]
    if len(pairs) < 2:
        raise ValueError("this takes two sentences at the least")
    names, tokenizer = streams(translator.config, Side.ENCODER), translator.tokenizer
    wanted = [{piece for piece in tokenizer.encode(target) if piece >= COMMON} for _, target in pairs]
    hits, tokens, first = torch.zeros(2, len(names)), 0, 0
    for part in batched(pairs, BATCH):
        run = translator.run([s for s, _ in part], [t for _, t in part], names=names, direction=direction)
        for row, (source, _) in enumerate(run.tokens):
            words = [i for i, token in enumerate(source) if not is_symbol(token)]
            read = torch.stack([run[name][row, words] for name in names])
            ids, _ = best(translator.model, pointed(read, lenses))
            for side, shift in enumerate((0, 1)):
                chosen = wanted[(first + row + shift) % len(pairs)]
                hits[side] += torch.tensor([[bool(chosen & {*top}) for top in layer] for layer in ids.tolist()]).sum(1)
            tokens += len(words)
        first += len(part)
    own, other = (tuple(round(share, 4) for share in side) for side in (hits / tokens).tolist())
    return Found(len(pairs), own, other)
