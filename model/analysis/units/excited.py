"""The sentences that excite each unit most, for neurons and a dictionary alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.units.fitted import stored
from attention_atlas.model.analysis.units.sparse import Dictionary
from attention_atlas.model.decode.runs import run
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

TOGETHER = 25  # sentences of a part
Peaks = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Units:
    """The neurons of an encoder layer's feed-forward; with a dictionary of its stream, the units of that. texts: that
    are read."""

    translator: Translator
    direction: str
    layer: int  # from 0
    texts: tuple[str, ...]
    dictionary: Dictionary | None = None

    @property
    def place(self) -> str:
        return f"encoder.{self.layer}.{'resid_post' if self.dictionary else 'ffn.post'}"

    @property
    def written(self) -> Tensor:
        """What each unit adds to the stream behind the layer at strength 1: [unit, d_model]."""
        if self.dictionary is not None:
            return self.dictionary.directions
        return self.translator.model.encoder.layers[self.layer].feed_forward.contract.weight.T.detach()

    @property
    def peaks(self) -> Work[Peaks]:
        """How strongly each sentence excites each unit where it does most, float32 [sentence, unit], and at which of
        its tokens, int16."""
        settings = "units", self.direction, self.layer, self.dictionary is not None, len(self.texts)
        return Work(self.translator, settings, self._in_parts)

    def _in_parts(self) -> Parts[Peaks]:
        starts, found = range(0, len(self.texts), TOGETHER), []
        for done, start in enumerate(starts, 1):
            found.append(self._peaks(self.texts[start : start + TOGETHER]))
            yield done, len(starts)
        return tuple(np.concatenate(arrays) for arrays in zip(*found))

    def of(self, source_ids: Sequence[int], interventions: Interventions = NO_INTERVENTIONS) -> np.ndarray:
        """How active every unit is at every token: float32 [token, unit]."""
        return self._read([list(source_ids)], interventions)[0].cpu().numpy()

    def _peaks(self, texts: Sequence[str]) -> Peaks:
        ids = [self.translator.encode(text, self.direction) for text in texts]
        best = [rows.max(0) for rows in self._read(ids)]
        values, places = (torch.stack([getattr(one, name) for one in best]) for name in ("values", "indices"))
        return values.float().cpu().numpy(), places.short().cpu().numpy()

    @torch.inference_mode()
    def _read(self, ids: list[list[int]], interventions: Interventions = NO_INTERVENTIONS) -> list[Tensor]:
        """Of each sentence [token, unit]; nothing where a token is a symbol: most units speak there, of nothing."""
        check_plain(self.translator)
        tokenizer = self.translator.tokenizer
        found = run(
            self.translator.model,
            ids,
            [[tokenizer.end_id]] * len(ids),
            (self.place,),
            begin_id=tokenizer.begin_id,
            interventions=interventions,
        )
        rows = [found[self.place][i, : len(one)] for i, one in enumerate(ids)]
        rows = rows if self.dictionary is None else [self.dictionary.codes(one) for one in rows]
        marks = [torch.tensor([is_symbol(token) for token in tokenizer.tokens(one)]) for one in ids]
        return [one.masked_fill(mark[:, None].to(one.device), 0) for one, mark in zip(rows, marks)]


def trained(translator: Translator) -> tuple[int, Dictionary] | None:
    """The layer and the dictionary beside the weights, if there is one."""
    found = stored(translator.folder, translator.digest, translator.config.d_model)
    return found and (found.layer, found.dictionary)
