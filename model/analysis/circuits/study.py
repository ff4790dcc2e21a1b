"""A circuit found on some pairs and tested on others, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.circuits.contrast import Contrast, Method
from attention_atlas.model.analysis.circuits.found import STEPS, Circuit, gathered
from attention_atlas.model.analysis.circuits.graph import graph
from attention_atlas.model.analysis.circuits.pairs import Pair, batch
from attention_atlas.model.analysis.circuits.tested import Tested, tested
from attention_atlas.model.serve.work import Parts
from attention_atlas.model.translator import Translator

FOUND, TESTED = 16, 32  # pairs at most
TOGETHER = 4  # pairs that are tested at once


@dataclass(frozen=True)
class Study:
    """found: the pairs that a circuit is found with; held_out: those that it is tested on."""

    translator: Translator
    found: tuple[Pair, ...]
    held_out: tuple[Pair, ...]

    @classmethod
    def of(cls, translator: Translator, pairs: Sequence[Pair]) -> Study:
        """A third of the pairs finds, the rest tests. ValueError for fewer than two."""
        if len(pairs) < 2:
            raise ValueError(f"a study takes two pairs at the least, found {len(pairs)}")
        check_plain(translator)
        finding = min(FOUND, max(1, len(pairs) // 3))
        return cls(translator, tuple(pairs[:finding]), tuple(pairs[finding : finding + TESTED]))

    def parts(self) -> Parts[tuple[Circuit, Tested]]:
        """The circuit, and how much it keeps."""
        finding, testing = (
            [pairs[start : start + together] for start in range(0, len(pairs), together)]
            for pairs, together in ((self.found, 1), (self.held_out, TOGETHER))
        )
        of, done = len(finding) + len(testing), []
        for pairs in finding:
            done.append(self._contrast(pairs).found(Method.EAP_IG, STEPS))
            yield len(done), of
        circuit = gathered(self.translator, self.found, Method.EAP_IG, done)
        masks, leads = circuit.masks(), []
        for pairs in testing:
            contrast, kept = self._contrast(pairs), []
            for mask in masks.reshape(-1, masks.shape[-1]):
                kept.append(contrast.runs(mask[None]))
                yield len(finding) + len(leads), of
            leads.append(np.concatenate([kept[0][:2], *(one[2:] for one in kept)]))
        yield of, of
        return circuit, tested(np.concatenate(leads, axis=1), masks)

    def _contrast(self, pairs: Sequence[Pair]) -> Contrast:
        config = self.translator.config
        return Contrast(self.translator, graph(config), batch(pairs, config.pad_id, self.translator.device))
