"""The tab on the way through the model: a map with live shapes, and a panel for each station."""

from __future__ import annotations

import gradio as gr
import numpy as np

from model.analysis import stations
from model.trace.kinds import Side
from model.translator import Translators
from viz.figures.matrix import plot_matrix
from viz.maps import labels
from viz.ui.header import Header
from viz.ui.lab import attention
from viz.ui.lab.panel import Lab, Panel, Scene, heading
from viz.ui.language import choices, label
from viz.wire import blocks
from viz.words import known, say

ENCODER, DECODER = Side.ENCODER.value, Side.DECODER.value
SIDES = {ENCODER: label("encoder (reads the source)"), DECODER: label("decoder (writes the target)")}

MAP = Panel(
    "map", label("Map"), say(
        "The whole model, with the shapes of this sentence at every arrow. Click on a box to open it up."),
    say("Paper, figure {n}", n="1"))
EMBEDDING = Panel(
    "embedding", label("Embedding"), say(
        "A token's row of the embedding, times √d_model, plus the code of its position: what enters the first "
        "layer. Compare the lengths: which of the two is louder?"),
    say("Paper, sections {n}", n="3.4, 3.5"))
RESIDUAL = Panel(
    "residual", label("Residual stream"), say(
        "Every sub-layer adds to one stream and never overwrites it. Watch how it grows: a late layer has to speak"
        " louder to be heard."),
    say("Paper, section {n}", n="3.1"))
ADD_NORM = Panel(
    "add-norm", label("Add & norm"), say(
        "One sub-layer adds its vector to each token's stream; a layer norm brings every stream to mean 0 and "
        "variance 1. Look at how much is added, and in which direction."),
    say("Paper, section {n}", n="3.1"))
FEED_FORWARD = Panel(
    "feed-forward", label("Feed-forward"), say(
        "Wider inside, and mostly silent: after the ReLU only some units are above zero. Do similar words wake the"
        " same units?"),
    say("Paper, section {n}", n="3.3"))
LOGITS = Panel(
    "logits", label("Logits"), say(
        "The last vector, compared with every token of the vocabulary. The softmax makes probabilities of the "
        "scores: a small lead in the logit is a large one in probability."),
    say("Paper, section {n}", n="3.4"))


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    lab = Lab(translators, header.session)
    longest = max(t.config.max_length for t in translators.values())
    layers = max(t.config.num_encoder_layers for t in translators.values())
    layers = max(layers, *(t.config.num_decoder_layers for t in translators.values()))

    def side() -> gr.Radio:
        return gr.Radio(choices(SIDES), value=ENCODER, label=label("Side"))

    def layer() -> gr.Slider:
        return gr.Slider(1, layers, min(2, layers), step=1, label=label("Layer"))

    with gr.Tabs(elem_id="inside-tabs", selected=MAP.name) as tabs:
        with gr.Tab(MAP.title, id=MAP.name):
            heading(MAP)
            architecture = lab.add(MAP, overview)
        with gr.Tab(EMBEDDING.title, id=EMBEDDING.name):
            heading(EMBEDDING)
            lab.add(EMBEDDING, embedding, controls=(side(),))
        attention.build(lab)
        with gr.Tab(RESIDUAL.title, id=RESIDUAL.name):
            heading(RESIDUAL)
            lab.add(RESIDUAL, residual, controls=(side(),))
        with gr.Tab(ADD_NORM.title, id=ADD_NORM.name):
            heading(ADD_NORM)
            with gr.Row():
                controls = (side(), layer(), gr.Slider(1, 3, 1, step=1, label=label("Sub-layer")))
            lab.add(ADD_NORM, add_and_norm, controls=controls)
        with gr.Tab(FEED_FORWARD.title, id=FEED_FORWARD.name):
            heading(FEED_FORWARD)
            with gr.Row():
                controls = (side(), layer())
            lab.add(FEED_FORWARD, feed_forward, controls=controls)
        with gr.Tab(LOGITS.title, id=LOGITS.name):
            heading(LOGITS)
            step = gr.Slider(1, min(64, longest), 1, step=1,
                             label=label("Step (past the end: the last one)"))
            lab.add(LOGITS, logits, controls=(step,))

    def open_panel(event: gr.EventData) -> gr.Tabs:
        return gr.Tabs(selected=event._data["panel"])

    architecture.open(open_panel, outputs=tabs, show_progress="hidden", api_visibility="private")
    lab.follow_the_sentence()


def overview(scene: Scene) -> list[dict]:
    arrows = stations.arrows(scene.translator, scene.inspect(), scene.trace.source_ids)
    columns = [{"title": title, "boxes": [
        {"name": known(a.station), "shape": " × ".join(map(str, a.shape)), "axes": [known(axis) for axis in a.axes],
         "panel": a.panel, "repeated": a.repeated} for a in arrows if a.side in sides]} for title, sides in (
             (say("Encoder: reads the source"), ("source",)),
             (say("Decoder: reads its own words and, in cross-attention, the memory"), ("target", "output")))]
    config = scene.translator.config
    return [
        blocks.flow(columns),
        blocks.facts(
            (say("This sentence"), f"{len(scene.trace.source_ids)} → {len(scene.trace.target_ids)}",
             say("tokens, in → out")),
            ("d_model", str(config.d_model), say("{n} heads of d_k = {width}", n=config.num_heads,
                                                width=config.d_head)),
            (say("Norm"), "pre-norm" if config.norm_first else "post-norm", say("before each sub-layer")
             if config.norm_first else say("after each sub-layer, as in the paper")),
            (say("Vocabulary"), f"{config.vocabulary_size:,}", say("one embedding for source, target and output")))]


def tokens_of(scene: Scene, side: str) -> list[str]:
    tokens = scene.trace.source_tokens if side == ENCODER else scene.trace.decoder_inputs
    return [labels.display(token) for token in tokens]


def records(scene: Scene, side: str):
    return scene.inspect().layers(Side(side))


def embedding(scene: Scene, side: str) -> list[dict]:
    encoder = side == ENCODER
    ids = scene.trace.source_ids if encoder else scene.trace.decoder_ids
    found = stations.embedding_rows(scene.translator, ids, scene.inspect(), side="source" if encoder else "target")
    limit = float(np.abs(found.added).max())
    rows = [[blocks.token(token), blocks.number(i), *(
        cell for values in (found.scaled[n], found.positions[n], found.added[n]) for cell in (
            blocks.strip(values[:48], limit=limit, name=token), blocks.number(float(np.linalg.norm(values)))))]
        for n, (token, i) in enumerate(zip(tokens_of(scene, side), ids))]
    error = float(np.abs(found.scaled + found.positions - found.added).max())
    return [
        blocks.formula("x = E[token] · √d_model + PE(pos)"),
        blocks.table((say("Token"), "id", "E · √d_model", say("length"), say("+ position"), say("length"), "= x",
                      say("length")), rows,
                     caption=say("The first 48 of {n} dimensions; blue is negative, orange positive, one scale for "
                                 "all. Length: the Euclidean norm of the whole vector.", n=found.added.shape[1])),
        blocks.facts((say("Largest error of the sum"), blocks.compact(error),
                      say("against what entered the first layer")))]


def residual(scene: Scene, side: str) -> list[dict]:
    found = stations.residual_norms(records(scene, side))
    tokens = tokens_of(scene, side)
    picture = plot_matrix(found.norms, rows=found.stations, columns=tokens, signed=False, unit="norm",
                          column_title="token")
    mean = found.norms.mean(1)
    return [blocks.row(
        blocks.figure(picture, height=100 + 24 * len(found.stations), rows=[known(name) for name in found.stations],
                      label=say("Norm of the residual stream at every station, for each token")),
        blocks.table((say("Station"), say("mean norm"), say("grows by the factor")), [
            [known(name), blocks.number(float(m)), blocks.number(float(m / mean[max(0, i - 1)]))]
            for i, (name, m) in enumerate(zip(found.stations, mean))]))]


def _record(scene: Scene, side: str, layer: int):
    """The layer's record; the last layer where the side has fewer. Also its index from 0."""
    found = records(scene, side)
    index = min(int(layer), len(found)) - 1
    return found[index], index


def add_and_norm(scene: Scene, side: str, layer: int, sublayer: int) -> list[dict]:
    record, index = _record(scene, side, layer)
    passed = record.sublayers[min(int(sublayer), len(record.sublayers)) - 1]
    config, name = scene.translator.config, known(stations.STATION_NAMES[passed.name])
    found = stations.add_and_norm(passed)
    limit, normed = float(np.abs(found.stream[:, :48]).max()), float(np.abs(found.normed[:, :48]).max())
    rows = [[blocks.token(token), blocks.strip(found.stream[i, :48], limit=limit, name=token),
             blocks.number(float(found.before[i])), blocks.number(float(found.scale[i])),
             blocks.strip(found.normed[i, :48], limit=normed, name=token), blocks.number(float(found.added[i])),
             blocks.number(float(found.cosine[i])), blocks.number(float(found.after[i]))]
            for i, token in enumerate(tokens_of(scene, side))]
    return [
        blocks.formula("x + f(norm(x))" if config.norm_first else "norm(x + f(x))",
                       say("encoder layer {layer}, f = {f}", layer=index + 1, f=name) if side == ENCODER
                       else say("decoder layer {layer}, f = {f}", layer=index + 1, f=name)),
        blocks.table((say("Token"), say("stream x"), say("length"), say("norm scales by"),
                      say("normed"), say("length of what f adds"), say("cosine to x"), say("length after")), rows,
                     caption=say("The first 48 dimensions, each column on one scale. A cosine near 0: f adds something "
                                 "new; below 0: it takes something back."))]


def feed_forward(scene: Scene, side: str, layer: int) -> list[dict]:
    record, index = _record(scene, side, layer)
    found = stations.active_units(record, count=6)
    width = record.activations.shape[-1]
    largest = float(found.values.max())
    rows = [[blocks.token(token), blocks.bar(float(found.share[i]), f"{found.share[i]:.0%}"), *(
        blocks.shade(float(v) / largest, f"{u}: {blocks.compact(float(v))}")
        for u, v in zip(found.units[i], found.values[i]))] for i, token in enumerate(tokens_of(scene, side))]
    busy = np.bincount(found.units.ravel(), minlength=width)
    shared = [int(u) for u in busy.argsort()[::-1][:5] if busy[u] > 1]
    common = ", ".join(f"{u} (× {busy[u]})" for u in shared) or say("none")
    return [
        blocks.formula("FFN(x) = max(0, x W₁ + b₁) W₂ + b₂", say("equation {n}", n=2)),
        blocks.table((say("Token"), say("units above 0"), *(f"{i + 1}." for i in range(found.units.shape[1]))), rows,
                     caption=say("Layer {layer}: the most active of {n} hidden units at each position, as unit: value.",
                                 layer=index + 1, n=f"{width:,}")),
        blocks.facts((say("Units active at a position"), f"{found.share.mean():.0%}",
                      say("mean of {n} positions", n=len(rows))),
                     (say("Units in several lists"), str(len(shared)), common))]


def logits(scene: Scene, step: int) -> list[dict]:
    trace = scene.trace
    at = min(int(step), len(trace.target_ids)) - 1
    found = stations.next_token(scene.translator, scene.inspect(), at)
    rows = [[blocks.token(labels.display(token)), blocks.number(float(logit)),
             blocks.number(float(np.exp(logit - found.log_sum))), blocks.bar(float(p))]
            for token, logit, p in zip(found.tokens, found.logits, found.probabilities)]
    chosen = [i for i, token_id in enumerate(found.ids) if token_id == trace.target_ids[at]]
    prefix = " ".join(labels.display(token) for token in trace.decoder_inputs[:at + 1])
    size = scene.translator.config.vocabulary_size
    return [
        blocks.text(say("Step {n} of {total}, after {prefix}", n=at + 1, total=len(trace.target_ids), prefix=prefix)),
        blocks.formula("logits = E · x,   p = exp(logit − log Σ exp(logits))"),
        blocks.row(
            blocks.table((say("Next token"), "logit", "exp(logit − log Σ)", say("probability")), rows, marked=chosen,
                         caption=say("The best 20 of the whole vocabulary; the token taken is marked.")),
            blocks.facts(
                ("log Σ exp(logits)", blocks.compact(found.log_sum), say("over {n} tokens", n=f"{size:,}")),
                (say("Entropy"), say("{bits} bits", bits=f"{found.entropy:.2f}"),
                 say("as unsure as {n} equal choices", n=f"{2 ** found.entropy:.1f}")),
                (say("All other tokens"), blocks.compact(found.rest), say("probability together"))))]
