"""Activations of units on sentences, for neurons and dictionary units alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.rerun import check_unedited
from attention_atlas.model.analysis.units.dictionary import Dictionary, read_place
from attention_atlas.model.serve.work import Parts, Work
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

BATCH = 25  # sentences in one part
Peaks = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Units:
    """The neurons of an encoder layer's feed-forward block, or the units of a dictionary of its output stream.

    layer  from 0
    texts  the sentences on which units are compared
    """

    translator: Translator
    direction: str
    layer: int
    texts: tuple[str, ...]
    dictionary: Dictionary | None = None

    @property
    def place(self) -> str:
        """The place of the encoder at which the units are read."""
        return f"encoder.{self.layer}.{'resid_post' if self.dictionary else 'ffn.post'}"

    @property
    def directions(self) -> Tensor:
        """The vector that each unit adds to the layer's output stream at activation 1: [unit, d_model]."""
        if self.dictionary is not None:
            return self.dictionary.directions
        return self.translator.model.encoder.layers[self.layer].feed_forward.contract.weight.T.detach()

    @property
    def peaks(self) -> Work[Peaks]:
        """The largest activation of each unit in each sentence, float32 [sentence, unit], and its token, int16."""
        key = "units", self.direction, self.layer, self.dictionary is not None, len(self.texts)
        return Work(self.translator, key, self._compute_peaks)

    def _compute_peaks(self) -> Parts[Peaks]:
        starts, parts = range(0, len(self.texts), BATCH), []
        for done, start in enumerate(starts, 1):
            ids = [self.translator.encode(text, self.direction) for text in self.texts[start : start + BATCH]]
            maxima = [rows.max(0) for rows in self._read(ids)]
            values = torch.stack([maximum.values for maximum in maxima]).float().cpu().numpy()
            parts.append((values, torch.stack([maximum.indices for maximum in maxima]).short().cpu().numpy()))
            yield done, len(starts)
        return tuple(np.concatenate(arrays) for arrays in zip(*parts))

    def activations(self, source_ids: Sequence[int], interventions: Interventions = NO_INTERVENTIONS) -> np.ndarray:
        """Return the activation of every unit at every token: float32 [token, unit]."""
        return self._read([list(source_ids)], interventions)[0].cpu().numpy()

    @torch.inference_mode()
    def _read(self, ids: list[list[int]], interventions: Interventions = NO_INTERVENTIONS) -> list[Tensor]:
        """Return the activations [token, unit] of each sentence, 0 at symbols, where most units are active without
        meaning."""
        check_unedited(self.translator)
        batch, activations = read_place(self.translator, self.place, ids, interventions), []
        for i, sentence in enumerate(ids):
            rows = batch[self.place][i, : len(sentence)]
            rows = rows if self.dictionary is None else self.dictionary.codes(rows)
            symbols = torch.tensor([is_symbol(token) for token in self.translator.tokenizer.tokens(sentence)])
            activations.append(rows.masked_fill(symbols[:, None].to(rows.device), 0))
        return activations
