"""A circuit found on some pairs and tested on others, in parts of seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.circuits.contrast import Contrast, Method
from attention_atlas.model.analysis.circuits.found import STEPS, Circuit, gathered
from attention_atlas.model.analysis.circuits.graph import graph
from attention_atlas.model.analysis.circuits.pairs import Pair, batch
from attention_atlas.model.analysis.circuits.tested import Tested, tested
from attention_atlas.model.analysis.parts import Parts
from attention_atlas.model.translator import Translator

FOUND, TESTED = 16, 32  # pairs at most
TOGETHER = 4  # pairs of a part: a part is to take seconds, of a model of OPUS-MT's size, too


@dataclass(frozen=True)
class Study:
    """found: the pairs that a circuit is found with; held_out: those that it is tested on. What is done lies in the
    translator's scratch folder, under a name of the pairs: a study of the same pairs goes on there."""

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

    def step(self) -> tuple[int, int]:
        """The next part; how many are done, of how many."""
        return self.parts.step(self._part)

    def circuit(self) -> Circuit:
        """Once its parts are done: they come first."""
        done = [(part["scores"], part["ends"]) for _, part in zip(self._batches[0], self.parts.read())]
        return gathered(self.translator, self.found, Method.EAP_IG, done)

    def result(self) -> tuple[Circuit, Tested]:
        """Once all parts are done: the circuit, and how much it keeps."""
        circuit = self.circuit()
        leads = [part["leads"] for part in self.parts.read() if "leads" in part]
        return circuit, tested(np.concatenate(leads, axis=1), circuit.masks())

    @property
    def whole(self) -> bool:
        """Whether all parts are done."""
        return not self.parts.missing

    @cached_property
    def parts(self) -> Parts:
        name = hashlib.sha256(repr((self.translator.digest, self.found, self.held_out)).encode()).hexdigest()[:24]
        return Parts(self.translator.scratch / "circuits" / name, sum(map(len, self._batches)))

    @cached_property
    def _batches(self) -> list[list[tuple[Pair, ...]]]:
        return [
            [pairs[start : start + TOGETHER] for start in range(0, len(pairs), TOGETHER)]
            for pairs in (self.found, self.held_out)
        ]

    def _part(self, number: int) -> dict[str, np.ndarray]:
        finding, testing = self._batches
        pairs = [*finding, *testing][number]
        translator = self.translator
        contrast = Contrast(
            translator, graph(translator.config), batch(pairs, translator.config.pad_id, translator.device)
        )
        if number < len(finding):
            scores, ends = contrast.found(Method.EAP_IG, STEPS)
            return {"scores": scores, "ends": ends}
        masks = self.circuit().masks()
        return {"leads": contrast.runs(masks.reshape(-1, masks.shape[-1]))}
