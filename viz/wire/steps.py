"""What the stepper's page needs, as plain JSON-ready values; viz/web/stepper/ draw them."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from attention_atlas.model.trace.decoding import describe_decoding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz import theme
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.branches import MAX_BRANCHES, Branch, Comparison, Tree, aligned, common_prefix
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.wire.codecs import ROOT
from attention_atlas.viz.wire.payload import block

SHOWN_KINDS = (AttentionKind.CROSS, AttentionKind.DECODER_SELF)
LARGEST = 1_000_000  # bytes above which a path's maps of these kinds come some steps at a time
AT_ONCE = 400_000  # bytes of those steps: an answer costs the model a pass, so that one step each would be too few
_BYTES_A_WEIGHT = 2 * 4 / 3


def tree_payload(tree: Tree, known: Collection[int] = ()) -> dict:
    """The branches with their tokens and probabilities; of those the page knows, numbers. beam: the width of the search
    that found the translation which the tree began with; null where that is not known."""
    return {
        "key": tree.key,
        **link_fields(tree.address, tree.branches[0].decoding),
        "limit": MAX_BRANCHES,
        "dropped": tree.dropped,
        "branches": [b.number if b.number in known else _branch(b) for b in tree.branches],
    }


def _branch(branch: Branch) -> dict:
    return {
        "number": branch.number,
        "origin": branch.origin.value,
        "ids": branch.ids,
        "tokens": _tokens(branch.tokens),
        "probabilities": np.exp(branch.log_probabilities).tolist(),
        "total": branch.total,
        "given": branch.given,
        "decoding": describe_decoding(branch.decoding, len(branch.ids)),
        "text": branch.text,
        "finished": branch.finished,
        "parent": branch.parent,
        "fork": branch.fork,
    }


def path_payload(
    trace: TranslationTrace,
    branch: Branch,
    *,
    vocabulary: int | None = None,
    respelled: Sequence[str] | None = None,
    held: Branch | None = None,
) -> dict:
    """Every step of one branch. vocabulary: how many tokens each step chooses from. respelled: how the tokenizer would
    spell its text, where that is another way. held: a branch whose path the page has: the steps that the two share stay
    out, and `rows` [layers, heads, query, key] of the others, as in viz/wire/codecs.py but not compressed, take the
    blocks' place."""
    whole = _whole(trace, len(trace.target_ids))
    if held and whole and not _whole(trace, len(held.ids)):
        held = None  # of that one, the page has only some rows
    shared = common_prefix(held.ids, branch.ids) if held else 0
    kinds = {
        kind.value: dict(zip(("layers", "heads", "queries", "keys"), trace.maps(kind).weights.shape))
        for kind in trace.kinds
    }
    return {
        "number": branch.number,
        "vocabulary": vocabulary,
        "source": _tokens(trace.source_tokens),
        "read": _tokens(trace.decoder_inputs),
        "shared": shared,
        "steps": [_step(trace, step) for step in range(shared, len(trace.target_ids))],
        "kinds": kinds,
        "colours": theme.SCALES["viridis"],
        "blocks": [block(trace, kind, 0, trace.maps(kind).num_layers) for kind in SHOWN_KINDS]
        if whole and not shared
        else [],
        "rows": {kind.value: _rows(trace, kind, shared) for kind in SHOWN_KINDS} if whole and shared else None,
        "respelled": None if respelled is None else _tokens(respelled),
    }


def _whole(trace: TranslationTrace, length: int) -> bool:
    """Whether the maps of a target of this length, of the trace's sentence, are sent at once."""
    maps = trace.cross
    return _BYTES_A_WEIGHT * maps.num_layers * maps.num_heads * length * (length + len(maps.key_tokens)) <= LARGEST


def _rows(trace: TranslationTrace, kind: AttentionKind, first: int, last: int | None = None) -> str:
    return base64.b64encode(ROOT.to_bytes(trace.maps(kind).weights[:, :, first:last])).decode("ascii")


def _step(trace: TranslationTrace, step: int) -> dict:
    return {
        "rank": int(trace.chosen_rank[step]),
        "entropy": float(trace.entropy[step]),
        "log_probability": float(trace.log_probability[step]),
        "id": trace.target_ids[step],
        "candidates": [
            {"id": int(i), "text": labels.display(token), "symbol": is_symbol(token), "probability": float(p)}
            for i, token, p in zip(trace.top_ids[step], trace.top_tokens[step], trace.top_probabilities[step])
        ],
    }


def rows_payload(trace: TranslationTrace, step: int) -> dict:
    """Rows [layers, heads, steps, keys] of each kind, of a step and those after it up to about 0.4 MB, as `rows` of
    path_payload(): for a path whose maps are too large to send at once."""
    shapes = [trace.maps(kind).weights.shape for kind in SHOWN_KINDS]
    a_step = _BYTES_A_WEIGHT * sum(layers * heads * keys for layers, heads, _, keys in shapes)
    last = min(len(trace.target_ids), step + max(1, int(AT_ONCE / a_step)))
    return {"first": step, "last": last, "rows": {kind.value: _rows(trace, kind, step, last) for kind in SHOWN_KINDS}}


def details_payload(
    details: object, temperatures: Sequence[float], top_tokens: Mapping[str, Sequence[Sequence[str]]]
) -> dict:
    """details: a model.analysis.temperatures.Details; top_tokens: by lens, [layers + 1][step], the pieces it finds.
    A lens' nats [layers + 1]: how far from the end each layer is, the mean over steps."""
    return {
        "temperatures": list(temperatures),
        "log_normalisers": _rounded(details.log_normalisers, 6),
        "entropies": _rounded(details.entropies, 4),
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


def comparison_payload(a: Branch, b: Branch, found: Comparison) -> dict:
    """Two branches side by side. Maps [layers][heads] in bits, or null where no step can be compared."""
    none = not len(found.steps)
    return {
        "numbers": [a.number, b.number],
        "shared": found.shared,
        "rows": aligned(a.ids, b.ids),
        "steps": len(found.steps),
        "cross": None if none else _rounded(found.cross, 6),
        "decoder_self": None if none else _rounded(found.decoder_self, 6),
    }


def beam_payload(result: object, pieces: Sequence[str]) -> dict:
    """result: a model.decode.beam.BeamResult; pieces: the vocabulary."""
    return {
        "nodes": [
            {
                "parent": n.parent,
                "id": n.token_id,
                "text": labels.display(pieces[n.token_id]),
                "symbol": is_symbol(pieces[n.token_id]),
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


def _tokens(tokens: Sequence[str]) -> list[dict]:
    return [{"text": labels.display(token), "symbol": is_symbol(token)} for token in tokens]


def _rounded(values: np.ndarray, digits: int) -> list:
    return np.round(np.asarray(values, np.float64), digits).tolist()
