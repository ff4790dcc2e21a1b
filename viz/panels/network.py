"""The map of a recurrent network in the tab Inside: its parts and the shapes between them."""

from __future__ import annotations

from dataclasses import asdict

from attention_atlas.model.analysis.gates import Unit, widths
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks

# part of the map -> the panel that shows it
OPENS = {
    "embedding": blocks.to_panel("inside", "embedding"),
    Unit.FORWARDS.value: blocks.to_panel("train", "gates", set1=Unit.FORWARDS.value),
    Unit.BACKWARDS.value: blocks.to_panel("train", "gates", set1=Unit.BACKWARDS.value),
    Unit.WRITER.value: blocks.to_panel("train", "gates", set1=Unit.WRITER.value),
    "attention": blocks.to_panel("train", "additive"),
    "output": blocks.to_panel("inside", "logits"),
}


def overview(scene: Scene) -> list[dict]:
    """Draw the network that the page shows, and the same one without or with attention."""
    trace, model = scene.trace, scene.translator.model
    own = model.config.attention
    maps = [widths(model, attention=attention) for attention in (own, not own)]
    named = {attention: n for attention, n in zip((own, not own), maps)}
    return [
        blocks.network(len(trace.source_ids), [asdict(shape) for shape in maps], OPENS),
        blocks.facts(
            blocks.fact("This sentence", f"{len(trace.source_ids)} → {len(trace.target_ids)}", "tokens, in → out"),
            blocks.fact("State", named[own].state, "numbers, all that the decoder remembers of its words"),
            blocks.fact("Vocabulary", named[own].vocabulary, "one embedding for source, target and output"),
            blocks.fact(
                "Parameters",
                maps[0].parameters,
                "{n} with attention, {m} without",
                n=named[True].parameters,
                m=named[False].parameters,
            ),
        ),
        blocks.note(
            "Dashed: the query is the decoder’s state, not its input, which some courses call the query. Without "
            "attention, the last states of the encoder are all that the decoder knows of the source."
        ),
    ]
