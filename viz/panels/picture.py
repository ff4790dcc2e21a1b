"""The stages of the picture of the tab Inside: the whole model, a layer, a head at one query, the ends, a number.

Each function returns JSON-ready values of one recorded pass, at most 64 kB packed. viz/web/inside/ draws them.
"""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import follow, stations
from attention_atlas.model.analysis.formulas import stages
from attention_atlas.model.analysis.why.questions import default_step
from attention_atlas.model.nets.records import LayerRecord, SubLayerRecord
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.scene import MAX_TOKENS, Scene
from attention_atlas.viz.wire.inside import Rows, lines, number, numbers, strips

MAX_KEYS = 24  # of an open head: more keys are a window, and the others are one row
BEST = 10  # tokens of the output
LARGEST = 3  # addends that are followed


def rows_of(scene: Scene, side: Side) -> Rows:
    """Return the rows of a side: of the decoder, the tokens that it reads."""
    return Rows.of(scene.trace.source_tokens if side is Side.ENCODER else scene.trace.decoder_inputs)


def _sides(kind: AttentionKind) -> tuple[Side, Side]:
    """Return the sides of a kind's queries and keys."""
    return kind.side, Side.DECODER if kind is AttentionKind.DECODER_SELF else Side.ENCODER


def overview(scene: Scene) -> dict:
    """Return the whole model: its sizes, both sides' rows and stream, one head of each layer, and every step."""
    trace, config = scene.trace, scene.translator.config
    rows = {side: rows_of(scene, side) for side in Side}
    sides, attentions = {}, {}
    for side in Side:
        records, own = scene.output.layers(side), config.of(side)
        _, lengths = stations.residual_norms(records)
        sides[side.value] = {
            **rows[side].payload(),
            "lengths": numbers(lengths),
            "layers": len(records),
            "heads": own.num_heads,
            "d_head": own.d_head,
            "units": own.d_feedforward,
            "norm_first": config.norm_first,
            "parts": [sublayer.name.value for sublayer in records[0].sublayers],
            "active": [strips(_units(record)[_drawn_positions(rows[side])]) for record in records],
        }
    for kind in TRANSFORMER_KINDS:
        weights = scene.output.maps(kind, 0).float().cpu().numpy()
        heads = [clearest_head(scene, kind, layer) for layer in weights]
        attentions[kind.value] = [
            {"head": head, **lines(layer[head], *(rows[side] for side in _sides(kind)))}
            for head, layer in zip(heads, weights)
        ]
    return {
        "key": trace.key,
        "d_model": config.d_model,
        "vocabulary": config.num_target_tokens,
        "divided": config.scale_scores,
        "positions": config.adds_positions,
        "residual": config.residual,
        "sides": sides,
        "attentions": attentions,
        "step": default_step(trace, MAX_TOKENS),
        "written": list(map(labels.text_of, trace.target_tokens)),
        "steps": [
            [[labels.display(token), number(p)] for token, p in zip(tokens[:5], best[:5].tolist())]
            for tokens, best in zip(trace.top_tokens, trace.top_probabilities)
        ],
    }


def clearest_head(scene: Scene, kind: AttentionKind, weights: np.ndarray) -> int:
    """Return the head of a layer whose rows peak highest on a word: not on a symbol, nor on the row's own token.

    weights: [heads, query, key].
    """
    tokens = scene.trace.maps(kind).key_tokens
    on_words = weights * np.array([not is_symbol(token) for token in tokens])
    if kind is not AttentionKind.CROSS:
        on_words = on_words * ~np.eye(*on_words.shape[1:], dtype=bool)
    return int(on_words.max(-1).mean(-1).argmax())


def _drawn_positions(rows: Rows) -> list[int]:
    """Return the positions whose vectors are drawn: all, or in a long text the last of each row."""
    return [group[-1] for group in rows.groups] if rows.pooled else list(range(len(rows.tokens)))


def _units(record: LayerRecord) -> np.ndarray:
    return record.activations[0].float().cpu().numpy()


def layer(scene: Scene, side: Side, index: int) -> dict:
    """Return one layer, from 0: of each sub-layer what it reads and adds, the lines of all heads, active units."""
    records = scene.output.layers(side)
    if not 0 <= index < len(records):
        raise Refusal("The page asked for something unknown: {what}", what=f"layer {index + 1}")
    record, own = records[index], rows_of(scene, side)
    positions = _drawn_positions(own)
    parts = {}
    for sublayer in record.sublayers:
        part = {"residual": sublayer.residual, **_vectors(sublayer, positions)}
        kind = next((kind for kind in TRANSFORMER_KINDS if (kind.side, kind.sublayer) == (side, sublayer.name)), None)
        if kind is None:
            units = _units(record)
            part |= {"units": strips(units[positions]), "active": (units > 0).sum(-1).tolist()}
        else:
            keys = rows_of(scene, _sides(kind)[1])
            weights = record.attention(kind).weights[0].float().cpu().numpy()
            part["heads"] = [lines(head, own, keys) for head in weights]
            part["shares"] = numbers(stages.head_lengths(scene.translator, scene.output, kind, index)[:, positions])
        parts[sublayer.name.value] = part
    return {"parts": parts, "shown": positions}


def _vectors(sublayer: SubLayerRecord, positions: list[int]) -> dict:
    """Return what a sub-layer reads and adds at the drawn positions, as strips, with the vectors' lengths."""
    arrays = {name: vectors[positions] for name, vectors in stations.stream_vectors(sublayer).items()}
    return {
        **{name: strips(arrays[name]) for name in ("read", "added")},
        "lengths": {name: numbers(np.linalg.norm(array, axis=-1)) for name, array in arrays.items()},
    }


def head(scene: Scene, kind: AttentionKind, index: int, number_: int, query: int, first: int | None = None) -> dict:
    """Return a head at one query: every stage of softmax(q k^T / sqrt(d_k)) v, and its share of W_O.

    first: of the window of MAX_KEYS keys, if there are more. None: the window around the query, in cross-attention
    around the largest weight.
    """
    try:
        parts = stages.dissect(scene.output, kind, index, number_, query=query)
    except ValueError:
        raise Refusal(
            "The page asked for something unknown: {what}", what=f"head {(index + 1, number_ + 1, query + 1)}"
        ) from None
    joined = stages.join_heads(scene.translator, scene.output, kind, index, query=query)
    count = len(parts.weights)
    centre = int(parts.recorded.argmax()) if kind is AttentionKind.CROSS else query
    start = max(0, min(centre - MAX_KEYS // 2 if first is None else first, count - MAX_KEYS))
    keys = slice(start, min(count, start + MAX_KEYS))
    others = np.ones(count, bool)
    others[keys] = False
    most = float(parts.masked.max())
    powers = np.exp(parts.masked - most)
    share = joined.head_outputs[number_]
    used = parts.recorded * parts.heard
    return {
        "first": start,
        "count": count,
        "query": numbers(parts.query),
        "keys": numbers(parts.keys[keys]),
        "values": numbers(parts.values[keys]),
        "dots": numbers(parts.dots[keys]),
        "bias": None if parts.bias is None else numbers(parts.bias[keys]),
        "scaled": numbers(parts.scaled[keys]),
        "allowed": parts.allowed[keys].tolist(),
        "weights": numbers(parts.recorded[keys]),
        "divided": parts.divided,
        "largest": number(most),
        "sum": number(powers.sum()),  # of e^(score - largest), over all keys
        "others": {"count": int(others.sum()), "weight": number(used[others].sum())},
        "output": numbers(used @ parts.values),
        "share": strips(share[None]),
        "length": number(np.linalg.norm(share)),
        "part": number(joined.shares[number_]),
    }


def output(scene: Scene, step: int) -> dict:
    """Return the ten most probable tokens of a step with logits and probabilities, and all others as one."""
    best = stations.next_token(scene.translator, scene.output, _check_step(scene, step), count=BEST)
    hidden = scene.output.hidden[:, step].float().cpu().numpy()
    return {
        "tokens": list(map(labels.display, best.tokens)),
        "ids": best.ids.tolist(),
        "logits": numbers(best.logits),
        "probabilities": numbers(best.probabilities),
        "log_sum": number(best.log_sum),
        "rest": number(best.rest),
        "others": scene.translator.config.num_target_tokens - len(best.ids),
        "hidden": strips(hidden),
        "length": number(np.linalg.norm(hidden)),
        "taken": scene.trace.target_ids[step],
    }


def _check_step(scene: Scene, step: int) -> int:
    if not 0 <= step < len(scene.trace.target_ids):
        raise Refusal("The page asked for something unknown: {what}", what=f"step {step + 1}")
    return step


def embedding(scene: Scene, side: Side) -> dict:
    """Return a side's embeddings, positions and their sum, where the stream begins, at the drawn positions."""
    trace = scene.trace
    ids, name = (trace.source_ids, "source") if side is Side.ENCODER else (trace.decoder_ids, "target")
    rows = stations.embedding_rows(scene.translator, ids, scene.output, side=name, interventions=trace.interventions)
    positions = _drawn_positions(rows_of(scene, side))
    return {
        "shown": positions,
        "ids": [ids[position] for position in positions],
        **{name: strips(getattr(rows, name)[positions], sampled=True) for name in ("scaled", "positions", "added")},
        "lengths": {
            name: numbers(np.linalg.norm(getattr(rows, name)[positions], axis=-1))
            for name in ("scaled", "positions", "added")
        },
    }


def memory(scene: Scene, step: int) -> dict:
    """Return the encoder's output, and the share of a step's cross-attention on each row, over all layers and heads."""
    rows, vectors = rows_of(scene, Side.ENCODER), scene.output.memory[0].float().cpu().numpy()
    positions = _drawn_positions(rows)
    weights = scene.output.maps(AttentionKind.CROSS, 0)[:, :, _check_step(scene, step)].double().mean((0, 1))
    return {
        "shown": positions,
        "memory": strips(vectors[positions]),
        "lengths": numbers(np.linalg.norm(vectors[positions], axis=-1)),
        "read": numbers(np.add.reduceat(weights.cpu().numpy(), rows.starts)),
    }


def follow_weight(scene: Scene, kind: AttentionKind, index: int, number_: int, query: int, key: int) -> dict:
    """Return what an attention weight is made of and what it feeds.

    back     the products of its score; each of the largest with the addends of its query's and key's number
    forward  weight * value of its key; each of the largest with the addends of the head's output
    """
    place = (kind, index, number_)
    stage = head(scene, *place, query, key - MAX_KEYS // 2)
    at = key - stage["first"]
    if not 0 <= at < len(stage["weights"]):
        raise Refusal("The page asked for something unknown: {what}", what=f"key {key + 1}")
    score = follow.score_addends(scene.output, *place, query=query, key=key)
    values = np.array(stage["values"][at]) * stage["weights"][at]

    def projected(part: str, position: int, dimension: int) -> dict:
        numbers_ = follow.projected_addends(
            scene.translator, scene.output, *place, part=part, position=position, dimension=dimension
        )
        return _addends(numbers_)

    spread = follow.Addends(values, 0.0, float(values.sum()))
    return {
        "weight": stage["weights"][at],
        "dot": stage["dots"][at],
        "bias": None if stage["bias"] is None else stage["bias"][at],
        "scaled": stage["scaled"][at],
        "score": _addends(score),
        "back": [
            {"dimension": i, "query": projected("query", query, i), "key": projected("key", key, i)}
            for i in score.largest(LARGEST)
        ],
        "values": _addends(spread),
        "forward": [
            {
                "dimension": i,
                "value": projected("value", key, i),
                "output": _addends(follow.output_addends(scene.output, *place, query=query, dimension=i)),
            }
            for i in spread.largest(LARGEST)
        ],
        "length": stage["length"],
        "part": stage["part"],
    }


def follow_probability(scene: Scene, step: int, token: int) -> dict:
    """Return what a token's probability is made of: its logit's addends, and the sum of e^x over all tokens."""
    if not 0 <= token < scene.translator.config.num_target_tokens:
        raise Refusal("The page asked for something unknown: {what}", what=f"token {token}")
    logit = follow.logit_addends(scene.translator, scene.output, step=_check_step(scene, step), token=token)
    best = stations.next_token(scene.translator, scene.output, step, count=BEST)
    return {
        "logit": _addends(logit),
        "log_sum": number(best.log_sum),
        "probability": number(np.exp(logit.recorded - best.log_sum)),
        "hidden": [
            {"dimension": i, "value": number(float(scene.output.hidden[0, step, i]))} for i in logit.largest(LARGEST)
        ],
    }


def _addends(numbers_: follow.Addends) -> dict:
    """Return a number with its largest addends, the sum of the others, and the bias."""
    largest = numbers_.largest(LARGEST)
    named = [[i, number(numbers_.values[i])] for i in largest]
    rest = float(np.delete(numbers_.values, largest).sum())
    return {
        "total": number(numbers_.recorded),
        "largest": named,
        "rest": number(rest),
        "others": len(numbers_.values) - len(largest),
        "bias": number(numbers_.bias),
    }
