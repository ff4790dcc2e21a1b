"""What each edge is worth for a decision, and the circuits that one makes of that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attention_atlas.model.analysis.again import check_plain
from attention_atlas.model.analysis.circuits.contrast import Contrast, Method
from attention_atlas.model.analysis.circuits.graph import Edge, Graph, graph
from attention_atlas.model.analysis.circuits.pairs import Pair, batch, pair
from attention_atlas.model.analysis.circuits.tested import SHARES, Tested, tested
from attention_atlas.model.trace import check_count
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator

if TYPE_CHECKING:
    import pandas as pd

TOGETHER = 16  # pairs of one pass
STEPS = 5  # of EAP-IG


@dataclass(frozen=True, eq=False)
class Circuit:
    """scores float64 [edge], in nats: by how much the lead of the right token grows if the edge carries what the
    changed sentence puts into it; negative: the edge speaks for the token. metric, changed: that lead with the sentence
    and with the changed one, means over the pairs."""

    translator: Translator = field(repr=False)
    graph: Graph = field(repr=False)
    method: Method
    scores: np.ndarray = field(repr=False)
    metric: float
    changed: float
    pairs: tuple[Pair, ...] = field(repr=False)

    def best(self, count: int) -> np.ndarray:
        """Of so many edges with the largest scores, whatever their sign, those on a path to the logits: bool [edge]."""
        chosen = np.zeros(len(self.scores), bool)
        chosen[np.argsort(-np.abs(self.scores), kind="stable")[:count]] = True
        return self._on_paths(chosen)

    @cached_property
    def defined(self) -> np.ndarray:
        """The edges that can carry the changed sentence's part, bool [edge]: all, or, of sentences with different
        numbers of tokens, those that the decoder's parts write into."""
        return np.full(len(self.graph), True) if all(p.aligned for p in self.pairs) else self.graph.of_decoder

    def _on_paths(self, chosen: np.ndarray) -> np.ndarray:
        """Whatever cannot be cut is open."""
        return self.graph.on_paths(chosen & self.defined | ~self.defined) & self.defined

    def tried(self, count: int) -> int:
        """How many of the best edges one has to take for `count` of them to lie on paths."""
        return bisect_left(range(len(self.scores)), count, key=lambda n: int(self.best(n).sum()))

    def edges(self, count: int) -> list[tuple[Edge, float]]:
        """best(tried(count)) with their scores, the largest first."""
        kept = np.flatnonzero(self.best(self.tried(count)))
        return [(self.graph.edges[i], float(self.scores[i])) for i in kept[np.argsort(-np.abs(self.scores[kept]))]]

    def of_nodes(self, count: int) -> np.ndarray:
        """The same by whole nodes, bool [edge]: all edges between the best of them, as many as have at most `count`. A
        node's score is the sum over what it writes into: the slope by its output."""
        names = [name for side in self.graph.senders.values() for name in side]
        sums = np.abs(self.graph.sums(self.scores))
        order = np.argsort(-sums, kind="stable")

        def among(n: int) -> np.ndarray:
            return self.graph.among({names[i] for i in order[:n]}) & self.defined

        most = bisect_left(range(len(names) + 1), count + 1, key=lambda n: int(among(n).sum())) - 1
        return self._on_paths(among(max(0, most)))

    def measured(self, sender: str, reader: str = "") -> float:
        """Path patching: what the lead of the right token loses, in nats, a mean over the pairs, if all that `sender`
        writes into `reader` is what the changed sentence puts there, and everything behind goes on from it. reader: a
        head for its queries, keys and values together, one receiver ("decoder.2.cross.q.5"), "logits" for the
        sender's direct effect; empty: all that read it, its total effect. Positive: it speaks for the token.
        ValueError for names between which there is no edge."""
        (lost,) = self.losses(sender, (reader,))
        return lost

    def losses(self, sender: str, readers: Sequence[str]) -> list[float]:
        """measured() of each of several readers by itself, over the same two passes."""
        cuts = [~self.graph.between(sender, reader) for reader in readers]
        if any((~cut & ~self.defined).any() for cut in cuts):
            raise Refusal(
                "The two sentences differ in length: what the encoder writes cannot be put into the other run."
            )
        lost = [
            torch.stack([contrast.lead - contrast.kept(gates) for gates in cuts])
            for contrast in contrasts(self.translator, self.graph, self.pairs)
        ]
        return torch.cat(lost, dim=1).mean(1).tolist()

    def faithfulness(
        self,
        pairs: Sequence[Pair],
        *,
        shares: Sequence[float] = SHARES,
        seed: int = 0,
        watch: Callable[[int, int], object] = lambda done, total: None,
    ) -> Tested:
        """The best edges at each share of all, run alone on pairs that the circuit was not found with, beside whole
        nodes and edges drawn by lot. watch hears how many of how many passes are done. ValueError for no pairs, and
        where the two sentences of the pairs are all the same to the model."""
        masks = self.masks(shares, seed)
        parts = []
        for number, one in enumerate(contrasts(self.translator, self.graph, pairs)):
            parts.append(one.runs(masks.reshape(-1, masks.shape[-1])))
            watch(number + 1, -(-len(pairs) // TOGETHER))
        return tested(np.concatenate(parts, axis=1), masks, shares, seed)

    def masks(self, shares: Sequence[float] = SHARES, seed: int = 0) -> np.ndarray:
        """What is tested, bool [3, share, edge]: the best edges, the edges of whole nodes, edges drawn by lot."""
        chance, (defined,) = np.random.default_rng(seed), np.nonzero(self.defined)
        counts = [max(1, round(share * len(defined))) for share in shares]
        return np.stack(
            [
                [self.best(count) for count in counts],
                [self.of_nodes(count) for count in counts],
                [np.isin(np.arange(len(self.scores)), chance.permutation(defined)[:count]) for count in counts],
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """A pandas table of all edges, the largest scores first."""
        import pandas as pd  # nothing else here needs it

        table = pd.DataFrame(
            [(edge.sender, edge.receiver, score) for edge, score in zip(self.graph.edges, self.scores)],
            columns=["sender", "receiver", "score"],
        )
        return table.sort_values("score", key=np.abs, ascending=False, ignore_index=True)

    def to_mib(self, count: int) -> dict[str, Any]:
        """JSON-ready, in the form of the Mechanistic Interpretability Benchmark (Mueller et al. 2025; EAP-IG's
        Graph.to_json): cfg, nodes and edges by name, of which best(tried(count)) are in_graph. A decoder's nodes have
        that form's names ("a0.h3", "m0", "input", "logits"), cross-attention's begin with "c", the encoder's with
        "enc."; a score is positive where the edge speaks for the token."""
        kept, config = self.best(self.tried(count)), self.translator.config
        used = {e.sender for e, k in zip(self.graph.edges, kept) if k}
        names = [name for side in self.graph.senders.values() for name in side]
        return {
            "cfg": {
                "n_layers": config.num_decoder_layers,
                "n_encoder_layers": config.num_encoder_layers,
                "n_heads": config.of(Side.DECODER).num_heads,
                "parallel_attn_mlp": False,
                "d_model": config.d_model,
            },
            "nodes": {_mib(name): {"in_graph": name in used} for name in names} | {"logits": {"in_graph": True}},
            "edges": {
                f"{_mib(edge.sender)}->{_mib(edge.reader)}" + (f"<{edge.letter}>" if edge.letter else ""): {
                    "score": -float(score),
                    "in_graph": bool(k),
                }
                for edge, score, k in zip(self.graph.edges, self.scores, kept)
            },
        }


def _mib(name: str) -> str:
    side, *rest = name.split(".")
    start = "enc." if side == "encoder" else ""
    if name == "logits":
        return name
    if rest == ["embed"]:
        return f"{start}input"
    layer, part, *head = rest
    return f"{start}m{layer}" if part == "ffn" else f"{start}{'c' if part == 'cross' else 'a'}{layer}.h{head[0]}"


def contrasts(translator: Translator, edges: Graph, pairs: Sequence[Pair]) -> Iterator[Contrast]:
    """Pairs in batches, one after another. ValueError for none."""
    for start in range(0, max(len(pairs), 1), TOGETHER):
        part = batch(pairs[start : start + TOGETHER], translator.config.pad_id, translator.device)
        yield Contrast(translator, edges, part)


def find(
    translator: Translator, pairs: Sequence[Pair], method: Method | str = Method.EAP_IG, *, steps: int = STEPS
) -> Circuit:
    """Score every edge over pairs (EAP-IG; Hanna et al. 2024). method: or another of Method, by its name; steps: of
    EAP-IG. ValueError for no pairs; a Refusal, in words, for a model whose
    stream is no sum (graph)."""
    check_plain(translator)
    edges, method, steps = graph(translator.config), Method(method), check_count("number of steps", steps)
    return gathered(
        translator, pairs, method, [one.found(method, steps) for one in contrasts(translator, edges, pairs)]
    )


def gathered(
    translator: Translator, pairs: Sequence[Pair], method: Method, parts: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Circuit:
    """The circuit of what Contrast.found() gave for parts of the pairs."""
    leads = np.concatenate([ends for _, ends in parts], axis=1)
    metric, changed = leads.mean(1).tolist()
    total = np.sum([scores for scores, _ in parts], axis=0)
    return Circuit(translator, graph(translator.config), method, total / len(pairs), metric, changed, tuple(pairs))


def circuit(
    translator: Translator,
    clean: str,
    corrupt: str,
    contrast: Sequence[str],
    *,
    prefix: str = "",
    direction: str | None = None,
) -> Circuit:
    """Of one sentence and the same with a word changed: along which edges does the difference decide between two
    tokens, written after `prefix`? A Refusal as in pair(). For a claim about more than this sentence take pairs()
    and find()."""
    return find(translator, [pair(translator, clean, corrupt, contrast, prefix=prefix, direction=direction)])
