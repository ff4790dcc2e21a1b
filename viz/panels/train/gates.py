"""The panel "Gates": the gates and states of a recurrent network's unit at one token."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.gates import Unit, unit_steps
from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Choice, Panel, Slider, count_tokens
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.train.recurrent import not_served, recurrent_reading
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

UNITS = {
    Unit.WRITER.value: say("Decoder"),
    Unit.FORWARDS.value: say("Encoder, from the left"),
    Unit.BACKWARDS.value: say("Encoder, from the right"),
}
UNIT = Choice(say("Unit"), UNITS, Unit.WRITER.value)
POSITION = Slider(say("Token"), 0, 64, 0, info=say("0: current selection"), of=count_tokens)


def gates(scene: Scene, unit: str, position: int) -> list[dict]:
    """Draw the gates and states at one token. position: the token from 1; 0 for the selected one."""
    reading = recurrent_reading(scene)
    if reading is None:
        return not_served(scene)
    translator, trace = reading
    unit, writes = Unit(unit), unit == Unit.WRITER.value
    steps = unit_steps(translator, trace, record_pass(translator, trace), unit)
    selected = scene.selection.query if writes else scene.selection.key
    at = min(position - 1 if position else 1 if selected is None else selected, len(steps.after) - 1)
    if writes:
        names = [" → ".join(map(labels.display, pair)) for pair in zip(trace.decoder_inputs, trace.target_tokens)]
    else:
        names = list(map(labels.display, trace.source_tokens))
    h, r, z, n, after = (part[at] for part in (steps.before, steps.reset, steps.update, steps.new, steps.after))
    parts = (
        (say("state before"), "h", h),
        (say("reset gate"), "r = σ(W_r x + U_r h)", r),
        (say("update gate"), "z = σ(W_z x + U_z h)", z),
        (say("candidate"), "n = tanh(W_n x + r ⊙ (U_n h))", n),
        (say("kept"), "z ⊙ h", z * h),
        (say("replaced"), "(1 − z) ⊙ n", (1 - z) * n),
        (say("state after"), "h′ = (1 − z) ⊙ n + z ⊙ h", after),
    )
    return [
        blocks.paragraph("{unit}, token {n}: {token}", unit=UNITS[unit.value], n=at + 1, token=names[at]),
        blocks.columns(
            (say("Part"), [name for name, *_ in parts]),
            (say("formula"), [blocks.symbols(formula) for _, formula, _ in parts]),
            (say("numbers"), [blocks.strip(values, limit=1.0, name=name) for name, _, values in parts]),
            (say("mean size"), [blocks.number(float(np.abs(values).mean())) for *_, values in parts]),
            marked=(len(parts) - 1,),
            caption=say(
                "{n} numbers per strip, from −1 (blue) over 0 to 1 (orange). x: {inputs}.",
                n=len(h),
                inputs=_inputs(unit, attends=trace.alignment is not None),
            ),
        ),
        blocks.columns(
            (say("Token"), map(blocks.token, names)),
            (say("state after"), blocks.strips(steps.after, limit=1.0)),
            (say("kept: mean of z"), map(blocks.bar, steps.update.mean(-1))),
            (say("mean of r"), map(blocks.bar, steps.reset.mean(-1))),
            marked=(at,),
            caption=say(
                "Every token that this unit reads. Where z is 1, a number of the old state stays; where r is 0, "
                "the candidate ignores it."
            ),
        ),
        blocks.facts(
            blocks.fact("Largest error", steps.error, "the formulas, computed again, against the recorded pass")
        ),
        *_query_note(trace, writes, at),
    ]


def _inputs(unit: Unit, *, attends: bool) -> object:
    """Return what the unit reads besides its state, in words."""
    if unit.side is Side.ENCODER:
        return say("the token’s embedding")
    return say("the token’s embedding and the context") if attends else say("the token’s embedding")


def _query_note(trace: object, writes: bool, at: int) -> list[dict]:
    """Return the link from the decoder's state to the attention that asks with it."""
    if not writes or AttentionKind.ALIGNMENT not in trace.kinds:
        return []
    link = blocks.to_panel("train", "additive", set1=at + 1)
    return [blocks.action(say("The attention that this state asks with"), link)]


PANEL = Panel(
    "gates",
    "Gates",
    "What does a recurrent unit keep of its state at a word, and what does it replace?",
    say("Cho et al. 2014"),
    gates,
    controls=(UNIT, POSITION),
    of_any_network=True,
    paper="https://arxiv.org/abs/1406.1078",
    method=say(
        "σ is between 0 and 1. As in torch.nn.GRU, r multiplies U_n h; in the paper it multiplies h before U_n. "
        "Biases are left out of the formulas, not of the numbers."
    ),
)
