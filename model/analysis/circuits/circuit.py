"""Circuits: find the edges that carry a decision, patch single paths, and measure what a circuit keeps alone.

`find_circuit` scores every edge over pairs, `find_sentence_circuit` over a single pair. `Study` finds a circuit on some
pairs and tests it on others, step by step. `translate_with_edges` lets only a circuit's edges read the sentence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attention_atlas.model.analysis.circuits.graph import Edge, Graph, build_graph
from attention_atlas.model.analysis.circuits.pairs import Pair, make_batch, make_pair
from attention_atlas.model.analysis.circuits.passes import GatedPass, PairRuns, ScoringMethod
from attention_atlas.model.analysis.rerun import check_unedited
from attention_atlas.model.serve.work import Parts, finish
from attention_atlas.model.trace import check_count
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator

if TYPE_CHECKING:
    import pandas as pd

BATCH_SIZE = 16  # pairs in one pass
STEPS = 5  # of EAP-IG
MAX_DISCOVERY, MAX_HELD_OUT = 16, 32  # pairs of a study
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the edges (Mueller et al. 2025, MIB)
RESAMPLES = 1000
STUDY_BATCH_SIZE = 4  # held-out pairs in one pass of a study, small enough for steady progress


@dataclass(frozen=True, eq=False)
class Curve:
    """Faithfulness at each share of the edges.

    edges         number of edges kept at each share
    faithfulness  float64 [share], f = (m(circuit) - m(none)) / (m(all) - m(none)), m the right token's mean lead
    interval      float64 [share, 2], its 95 % bootstrap interval over pairs
    cpr           area under f over the share of edges; large is good
    cmd           area between f and 1; small is good
    """

    edges: tuple[int, ...]
    faithfulness: np.ndarray
    interval: np.ndarray
    cpr: float
    cmd: float


@dataclass(frozen=True, eq=False)
class FaithfulnessCurves:
    """The faithfulness of three kinds of circuit at the same shares of the edges, over `num_pairs` pairs.

    best    the edges with the largest scores that lie on paths to the logits
    nodes   all edges between the best whole nodes
    random  edges drawn at random
    """

    shares: tuple[float, ...]
    best: Curve
    nodes: Curve
    random: Curve
    num_pairs: int

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with a row for each share and kind of circuit."""
        import pandas as pd  # an optional dependency

        return pd.concat(
            pd.DataFrame(
                {
                    "circuit": name,
                    "share": self.shares,
                    "edges": curve.edges,
                    "faithfulness": curve.faithfulness,
                    "low": curve.interval[:, 0],
                    "high": curve.interval[:, 1],
                }
            )
            for name, curve in (("best", self.best), ("nodes", self.nodes), ("random", self.random))
        ).reset_index(drop=True)


def compute_curves(
    leads: np.ndarray, masks: np.ndarray, shares: Sequence[float] = SHARES, seed: int = 0
) -> FaithfulnessCurves:
    """Return the curves of the masks bool [3, share, edge] of the best, whole-node and random edges.

    leads: float64 [2 + 3 * share, pair], with no edge, with all edges, and with each mask. Raises a Refusal if no edge
    and all edges have the same mean lead.
    """
    none, full, *partial = leads
    if not abs((full - none).mean()) > 0:
        raise Refusal("The changed sentence leads to the same decision, so there is nothing to explain.")
    rows = np.random.default_rng(seed).integers(len(none), size=(RESAMPLES, len(none)))

    def compute_curve(leads: np.ndarray, masks: np.ndarray) -> Curve:
        faithfulness = _faithfulness(leads, none, full)
        resampled = np.stack([_faithfulness(leads[:, row], none[row], full[row]) for row in rows])
        return Curve(
            tuple(int(mask.sum()) for mask in masks),
            faithfulness,
            np.nanpercentile(resampled, (2.5, 97.5), axis=0).T,
            _area(faithfulness, shares),
            _area(np.abs(1 - faithfulness), shares),
        )

    curves = map(compute_curve, np.stack(partial).reshape(*masks.shape[:2], -1), masks)
    return FaithfulnessCurves(tuple(shares), *curves, num_pairs=len(none))


def _faithfulness(leads: np.ndarray, none: np.ndarray, full: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may hold only pairs without a difference
        return (leads.mean(-1) - none.mean()) / (full.mean() - none.mean())


def _area(heights: np.ndarray, at: Sequence[float]) -> float:
    """Return the area under a curve by trapezoids."""
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())


@dataclass(frozen=True, eq=False)
class Circuit:
    """The scores of all edges for a decision.

    scores   float64 [edge], nats: by how much the right token's lead grows if the edge carries the changed sentence's
             value; negative if the edge speaks for the token
    metric   the mean lead over the pairs, in nats, with the sentence
    changed  the same with the changed sentence
    """

    translator: Translator = field(repr=False)
    graph: Graph = field(repr=False)
    method: ScoringMethod
    scores: np.ndarray = field(repr=False)
    metric: float
    changed: float
    pairs: tuple[Pair, ...] = field(repr=False)

    @cached_property
    def cuttable(self) -> np.ndarray:
        """The edges that can carry the changed sentence's value, bool [edge].

        All edges; if sentences differ in their number of tokens, only those from the decoder's senders.
        """
        return np.full(len(self.graph), True) if all(p.is_aligned for p in self.pairs) else self.graph.decoder_edges

    def select_edges(self, candidates: int) -> np.ndarray:
        """Select, of the `candidates` edges of largest |score|, those on a path to the logits: bool [edge]."""
        mask = np.zeros(len(self.scores), bool)
        mask[np.argsort(-np.abs(self.scores), kind="stable")[:candidates]] = True
        return self._keep_paths(mask)

    def _keep_paths(self, mask: np.ndarray) -> np.ndarray:
        """Edges that cannot be cut count as open."""
        return self.graph.keep_paths(mask & self.cuttable | ~self.cuttable) & self.cuttable

    def candidates_for(self, count: int) -> int:
        """Return how many candidates select_edges() needs to return at least `count` edges."""
        return bisect_left(range(len(self.scores)), count, key=lambda n: int(self.select_edges(n).sum()))

    def top_edges(self, count: int) -> list[tuple[Edge, float]]:
        """Return at least `count` edges on paths to the logits with their scores, the largest |score| first."""
        numbers = np.flatnonzero(self.select_edges(self.candidates_for(count)))
        order = numbers[np.argsort(-np.abs(self.scores[numbers]))]
        return [(self.graph.edges[i], float(self.scores[i])) for i in order]

    def select_nodes(self, limit: int) -> np.ndarray:
        """Return a mask, bool [edge], of at most `limit` edges: all edges between the best whole nodes, on paths.

        A node's score is the sum over its outgoing edges.
        """
        order = np.argsort(-np.abs(self.graph.sum_by_sender(self.scores)), kind="stable")
        nodes = self.graph.nodes

        def edges_of(count: int) -> np.ndarray:
            return self.graph.edges_among({nodes[i] for i in order[:count]}) & self.cuttable

        count = bisect_left(range(len(nodes) + 1), limit + 1, key=lambda n: int(edges_of(n).sum())) - 1
        return self._keep_paths(edges_of(max(0, count)))

    def path_effect(self, sender: str, reader: str = "") -> float:
        """Measure a path (path patching): what the right token's lead loses without it, in nats, a mean over pairs.

        All that `sender` writes into `reader` is replaced by the changed sentence's value, and everything downstream is
        computed from it. reader: a head, for its queries, keys and values together; one receiver, such as
        "decoder.2.cross.q.5"; "logits", for the sender's direct effect; empty, for its total effect. Positive if the
        path speaks for the token. Raises ValueError if there is no such edge.
        """
        (effect,) = self.path_effects(sender, (reader,))
        return effect

    def path_effects(self, sender: str, readers: Sequence[str]) -> list[float]:
        """Measure path_effect() for each of several readers, over the same plain passes."""
        cuts = [self.graph.edges_between(sender, reader) for reader in readers]
        if any((cut & ~self.cuttable).any() for cut in cuts):
            raise Refusal(
                "The two sentences differ in length, so the encoder's activations cannot be put into the other run."
            )
        effects = [
            torch.stack([runs.lead - runs.leads_with(~cut) for cut in cuts])
            for runs in run_batches(self.translator, self.graph, self.pairs)
        ]
        return torch.cat(effects, dim=1).mean(1).tolist()

    def measure_faithfulness(
        self,
        pairs: Sequence[Pair],
        *,
        shares: Sequence[float] = SHARES,
        seed: int = 0,
    ) -> FaithfulnessCurves:
        """Measure how much of the decision the best edges keep when they run alone, at each share of all edges.

        pairs: others than the circuit was found with. Raises ValueError if there are no pairs, and a Refusal if the two
        sentences make no difference to the model.
        """
        masks = self.test_masks(shares, seed)
        return compute_curves(finish(self.measure_leads(pairs, masks, BATCH_SIZE)), masks, shares, seed)

    def measure_leads(
        self, pairs: Sequence[Pair], masks: np.ndarray, batch_size: int, done: int = 0, total: int = 0
    ) -> Parts[np.ndarray]:
        """Measure the right token's lead with no edge, all edges, and each of masks bool [.., edge] alone.

        Return float64 [2 + mask, pair]. Yield (batches done, total) after each pass; `done` is added to the batches.
        """
        leads = []
        for number, runs in enumerate(run_batches(self.translator, self.graph, pairs, batch_size), done):
            rows = [runs.changed_lead, runs.lead]
            for mask in masks.reshape(-1, masks.shape[-1]):
                rows.append(runs.lead if mask.all() else runs.leads_with(mask))
                yield number, total
            leads.append(torch.stack(rows).cpu().numpy())
        return np.concatenate(leads, axis=1)

    def test_masks(self, shares: Sequence[float] = SHARES, seed: int = 0) -> np.ndarray:
        """Return the masks to test, bool [3, share, edge]: the best edges, those of whole nodes, random ones."""
        chance, (cuttable,) = np.random.default_rng(seed), np.nonzero(self.cuttable)
        counts = [max(1, round(share * len(cuttable))) for share in shares]
        return np.stack(
            [
                [self.select_edges(count) for count in counts],
                [self.select_nodes(count) for count in counts],
                [np.isin(np.arange(len(self.scores)), chance.permutation(cuttable)[:count]) for count in counts],
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table of all edges, the largest |score| first."""
        import pandas as pd  # an optional dependency

        table = pd.DataFrame(
            [(edge.sender, edge.receiver, score) for edge, score in zip(self.graph.edges, self.scores)],
            columns=["sender", "receiver", "score"],
        )
        return table.sort_values("score", key=np.abs, ascending=False, ignore_index=True)

    def to_mib(self, count: int) -> dict[str, Any]:
        """Return the circuit, JSON-ready, in the format of the Mechanistic Interpretability Benchmark.

        The format is that of EAP-IG's Graph.to_json (Mueller et al. 2025): cfg, nodes and edges by name, with the
        edges of top_edges(count) in_graph. Decoder nodes have the format's names ("a0.h3", "m0", "input", "logits"),
        those of cross-attention begin with "c", those of the encoder with "enc.". A score is positive if the edge
        speaks for the token.
        """
        mask, config = self.select_edges(self.candidates_for(count)), self.translator.config
        used = {edge.sender for edge, is_kept in zip(self.graph.edges, mask) if is_kept}
        nodes = {_mib_name(name): {"in_graph": name in used} for name in self.graph.nodes}
        return {
            "cfg": {
                "n_layers": config.num_decoder_layers,
                "n_encoder_layers": config.num_encoder_layers,
                "n_heads": config.of(Side.DECODER).num_heads,
                "parallel_attn_mlp": False,
                "d_model": config.d_model,
            },
            "nodes": nodes | {"logits": {"in_graph": True}},
            "edges": {
                f"{_mib_name(edge.sender)}->{_mib_name(edge.reader)}" + (f"<{edge.letter}>" if edge.letter else ""): {
                    "score": -float(score),
                    "in_graph": bool(is_kept),
                }
                for edge, score, is_kept in zip(self.graph.edges, self.scores, mask)
            },
        }


def _mib_name(name: str) -> str:
    if name == "logits":
        return name
    side, *rest = name.split(".")
    prefix = "enc." if side == "encoder" else ""
    if rest == ["embed"]:
        return f"{prefix}input"
    layer, part, *head = rest
    return f"{prefix}m{layer}" if part == "ffn" else f"{prefix}{'c' if part == 'cross' else 'a'}{layer}.h{head[0]}"


def run_batches(
    translator: Translator, graph: Graph, pairs: Sequence[Pair], size: int = BATCH_SIZE
) -> Iterator[PairRuns]:
    """Yield the plain passes of pairs, batch after batch. Raises ValueError if there are no pairs."""
    for start in range(0, max(len(pairs), 1), size):
        batch = make_batch(pairs[start : start + size], translator.config.pad_id, translator.device)
        yield PairRuns(translator, graph, batch)


def find_circuit(
    translator: Translator,
    pairs: Sequence[Pair],
    method: ScoringMethod | str = ScoringMethod.EAP_IG,
    *,
    steps: int = STEPS,
) -> Circuit:
    """Score every edge over pairs, by default with EAP-IG (Hanna et al. 2024).

    steps: of EAP-IG. Raises ValueError if there are no pairs, and a Refusal for a model whose residual stream is not a
    sum.
    """
    check_unedited(translator)
    steps = check_count("number of steps", steps)
    return finish(_score_pairs(translator, pairs, ScoringMethod(method), steps, BATCH_SIZE, 0))


def _score_pairs(
    translator: Translator, pairs: Sequence[Pair], method: ScoringMethod, steps: int, batch_size: int, total: int
) -> Parts[Circuit]:
    """Score every edge over pairs, batch by batch; yield (batches done, total), and return the circuit."""
    graph, parts = build_graph(translator.config), []
    for runs in run_batches(translator, graph, pairs, batch_size):
        leads = torch.stack([runs.lead, runs.changed_lead]).cpu().numpy()
        parts.append((runs.score_edges(method, steps), leads))
        yield len(parts), total
    scores = np.sum([scores for scores, _ in parts], axis=0) / len(pairs)
    metric, changed = np.concatenate([leads for _, leads in parts], axis=1).mean(1).tolist()
    return Circuit(translator, graph, method, scores, metric, changed, tuple(pairs))


def find_sentence_circuit(
    translator: Translator,
    clean: str,
    corrupt: str,
    contrast: Sequence[str],
    *,
    prefix: str = "",
    direction: str | None = None,
) -> Circuit:
    """Find along which edges a changed word decides between two tokens that follow `prefix`.

    clean, corrupt: the sentence, and the sentence with the word changed. contrast: the two tokens. Raises a Refusal as
    make_pair() does. For a claim about more than this sentence use make_pairs() and find_circuit().
    """
    return find_circuit(
        translator, [make_pair(translator, clean, corrupt, contrast, prefix=prefix, direction=direction)]
    )


def translate_with_edges(circuit: Circuit, edges: np.ndarray, pair: Pair, direction: str | None = None) -> list[int]:
    """Translate greedily with only these edges, bool [edge], reading the sentence, and return the target ids.

    All other edges carry what the changed sentence puts into them after the same prefix. With all edges the result is
    the sentence's translation, with none the changed sentence's.
    """
    *_, ids = decode_with_edges(circuit, edges, pair, direction)
    return ids


def decode_with_edges(
    circuit: Circuit, edges: np.ndarray, pair: Pair, direction: str | None = None
) -> Iterator[list[int]]:
    """Yield the ids of translate_with_edges() written so far, after each token."""
    translator, model = circuit.translator, circuit.translator.model
    source, changed = (torch.tensor([ids], device=translator.device) for ids in (pair.source_ids, pair.changed_ids))
    gates = torch.as_tensor(edges, dtype=torch.float32, device=translator.device)
    forced = [translator.tokenizer.begin_id, *translator.forced_prefix(direction)]
    written: list[int] = []
    for _ in range(translator.step_limit(len(pair.source_ids))):
        target = torch.tensor([[*forced, *written]], device=translator.device)
        with torch.no_grad():
            reference = GatedPass(model, circuit.graph)
            reference.run(changed, target)
            if not pair.is_aligned:
                reference.parts[Side.ENCODER].clear()
            gated = GatedPass(model, circuit.graph, gates, reference)
            written.append(int(model.project(gated.run(source, target)[:, -1]).argmax()))
        yield written
        if written[-1] == translator.tokenizer.end_id:
            return


@dataclass(frozen=True)
class Study:
    """A circuit that is found on the pairs of `discovery` and tested on those of `held_out`."""

    translator: Translator
    discovery: tuple[Pair, ...]
    held_out: tuple[Pair, ...]

    @classmethod
    def split(cls, translator: Translator, pairs: Sequence[Pair]) -> Study:
        """Use a third of the pairs for discovery and the rest for the test. Raises ValueError for fewer than two."""
        if len(pairs) < 2:
            raise ValueError(f"a study needs at least two pairs, found {len(pairs)}")
        check_unedited(translator)
        count = min(MAX_DISCOVERY, max(1, len(pairs) // 3))
        return cls(translator, tuple(pairs[:count]), tuple(pairs[count : count + MAX_HELD_OUT]))

    def run(self) -> Parts[tuple[Circuit, FaithfulnessCurves]]:
        """Find and test the circuit; yield (steps done, steps in all), and return the circuit and its curves."""
        found, num_batches = len(self.discovery), -(-len(self.held_out) // STUDY_BATCH_SIZE)
        total = found + num_batches
        circuit = yield from _score_pairs(self.translator, self.discovery, ScoringMethod.EAP_IG, STEPS, 1, total)
        masks = circuit.test_masks()
        leads = yield from circuit.measure_leads(self.held_out, masks, STUDY_BATCH_SIZE, found, total)
        yield total, total
        return circuit, compute_curves(leads, masks)
