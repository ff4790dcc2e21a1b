"""The stepper's branches, steps and comparisons as JSON-ready data, which viz/web/stepper/ draws."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np

from attention_atlas.model.trace.decoding import describe_decoding
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.branches import MAX_BRANCHES, Branch, Comparison, Tree, align_targets
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.wire.codecs import ROOT
from attention_atlas.viz.wire.inside import strips

MAX_BYTES = 1_000_000  # of maps in one answer; the rows of a path with larger maps are requested in several answers
# The size of each of these answers. Each costs a pass of the model, so it holds the rows of several steps.
STEPS_BYTES = 400_000
MAX_STATE_CELLS = 256  # of a recurrent decoder's state, drawn as a strip
_BYTES_PER_WEIGHT = 2 * 4 / 3  # two bytes in the codec, written in base64


def shown_kinds(trace: TranslationTrace) -> tuple[AttentionKind, ...]:
    """Return the kinds of attention whose rows each step has: those of the decoder."""
    return tuple(kind for kind in trace.kinds if kind.side is Side.DECODER)


def tree_payload(tree: Tree) -> dict:
    """Return the branches with their tokens and probabilities, the most that are kept ("limit") and how many were
    dropped for it, and the fields of a link to the first branch, such as the width of its beam."""
    return {
        **link_fields(tree.address, tree.branches[0].decoding),
        "limit": MAX_BRANCHES,
        "dropped": tree.dropped,
        "branches": list(map(_branch_to_plain, tree.branches)),
    }


def _branch_to_plain(branch: Branch) -> dict:
    unchanged = ("number", "ids", "total", "given", "text", "finished", "parent", "fork")
    return {
        **{name: getattr(branch, name) for name in unchanged},
        "origin": branch.origin.value,
        "tokens": list(map(labels.text_of, branch.tokens)),
        "probabilities": np.exp(branch.log_probabilities).tolist(),
        "decoding": describe_decoding(branch.decoding, len(branch.ids)),
    }


def path_payload(
    trace: TranslationTrace,
    branch: Branch,
    *,
    vocabulary: int | None = None,
    respelled: Sequence[str] | None = None,
    states: np.ndarray | None = None,
) -> dict:
    """Return every step of the path from the root to the end of a branch, whose trace this is.

    vocabulary  the number of tokens that each step chooses from
    respelled   the tokens into which the tokenizer splits the branch's text, if they are not the branch's own
    states      of a recurrent decoder, [step + 1, d_model]: before the first step and after each

    "read" holds the decoder's inputs, and "rows" each attention of the decoder [layers, heads, query, key] in the codec
    root16 and base64; null for a long path, see rows_payload().
    """
    length = len(trace.target_ids)
    size = _BYTES_PER_WEIGHT * sum(trace.maps(kind).weights.size for kind in shown_kinds(trace))
    kinds = {
        kind.value: dict(zip(("layers", "heads", "queries", "keys"), trace.maps(kind).weights.shape))
        for kind in trace.kinds
    }
    return {
        "number": branch.number,
        "vocabulary": vocabulary,
        "source": list(map(labels.text_of, trace.source_tokens)),
        "read": list(map(labels.text_of, trace.decoder_inputs)),
        "steps": [_step(trace, step) for step in range(length)],
        "kinds": kinds,
        "rows": _rows(trace) if size <= MAX_BYTES else None,
        "respelled": None if respelled is None else list(map(labels.text_of, respelled)),
        "states": None if states is None else {**strips(states, max_cells=MAX_STATE_CELLS), "width": states.shape[1]},
    }


def _rows(trace: TranslationTrace, first: int = 0, last: int | None = None) -> dict[str, str]:
    weights = {kind.value: trace.maps(kind).weights[:, :, first:last] for kind in shown_kinds(trace)}
    return {kind: base64.b64encode(ROOT.to_bytes(rows)).decode("ascii") for kind, rows in weights.items()}


def _step(trace: TranslationTrace, step: int) -> dict:
    return {
        "rank": int(trace.chosen_rank[step]),
        "log_probability": float(trace.log_probability[step]),
        "id": trace.target_ids[step],
        "candidates": [
            {"id": int(i), **labels.text_of(token), "probability": float(p)}
            for i, token, p in zip(trace.top_ids[step], trace.top_tokens[step], trace.top_probabilities[step])
        ],
    }


def rows_payload(trace: TranslationTrace, step: int) -> dict:
    """Return the rows [layers, heads, query, key] of some steps, as in path_payload(), for a path whose maps are too
    large for one answer: from a step on, up to STEPS_BYTES. The next answer begins at "last"."""
    shapes = [trace.maps(kind).weights.shape for kind in shown_kinds(trace)]
    bytes_per_step = _BYTES_PER_WEIGHT * sum(layers * heads * keys for layers, heads, _, keys in shapes)
    last = min(len(trace.target_ids), step + max(1, int(STEPS_BYTES / bytes_per_step)))
    return {"first": step, "last": last, "rows": _rows(trace, step, last)}


def details_payload(
    details: object, temperatures: Sequence[float], top_tokens: Mapping[str, Sequence[Sequence[str]]]
) -> dict:
    """Return the effect of temperatures and the tokens that lenses decode from each layer, JSON-ready.

    details     a model.analysis.temperatures.Details
    top_tokens  lens -> [embeddings and layers][step] its most probable tokens

    "nats" is the mean Kullback-Leibler divergence of each layer's distribution from the last one's.
    """
    return {
        "temperatures": list(temperatures),
        "log_normalisers": _rounded(details.log_normalisers, 6),
        "lenses": {
            slug.value: {
                "tokens": [[labels.display(token) for token in row] for row in top_tokens[slug]],
                "probabilities": _rounded(lens.top_probabilities, 5),
                "ranks": lens.chosen_ranks.tolist(),
                "chosen": _rounded(lens.chosen_probabilities, 6),
                "ids": lens.top_ids.tolist(),
                "nats": _rounded(lens.divergences.mean(1), 4),
            }
            for slug, lens in details.lenses.items()
        },
    }


def comparison_payload(a: Branch, b: Branch, comparison: Comparison) -> dict:
    """Return how two branches differ: the steps that they share, their aligned tokens, and for each layer and head the
    mean Jensen-Shannon divergence of its rows in bits by kind of attention; {} if no step can be compared."""
    return {
        "numbers": [a.number, b.number],
        "shared": comparison.shared,
        "rows": align_targets(a.ids, b.ids),
        "steps": len(comparison.steps),
        "divergences": {
            kind.value: _rounded(values, 6) for kind, values in comparison.divergences.items() if comparison.steps
        },
    }


def beam_payload(result: object, pieces: Sequence[str]) -> dict:
    """Return the tree of a beam search, JSON-ready. result: a model.decode.beam.BeamResult; pieces: the vocabulary."""
    return {
        "nodes": [
            {
                "parent": n.parent,
                "id": n.token_id,
                **labels.text_of(pieces[n.token_id]),
                "depth": n.depth,
                "probability": float(np.exp(n.log_probability)),
                "total": n.total,
                "score": n.score,
                "fate": n.fate.value,
            }
            for n in result.nodes
        ],
        "hypotheses": [
            {"node": h.node, "score": h.score, "total": h.log_probability, "finished": h.finished}
            for h in result.hypotheses
        ],
    }


def _rounded(values: np.ndarray, digits: int) -> list:
    return np.round(np.asarray(values, np.float64), digits).tolist()
