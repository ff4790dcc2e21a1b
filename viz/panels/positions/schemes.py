"""The panel "Schemes": criteria for position codes, tried on seven codes and on the model's own."""

from __future__ import annotations

from attention_atlas.model.analysis.positions import codes, geometry
from attention_atlas.model.analysis.positions.codes import SCHEMES, Scheme, of_table
from attention_atlas.model.config import PositionCode
from attention_atlas.model.training.toy import measure
from attention_atlas.viz.panels.formulas import SECTION
from attention_atlas.viz.panels.panel import TRANSFORMER, Choice, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

MOST = 64  # positions of the model's table that are judged
SHIFT = 3  # the shift that is tried as a rotation
# 355 = 113 pi - 3e-5: two sines, of pos and of pos / 113, meet at positions 11 and 344.
PRESETS = {"collision": (352, 2, 113**2)}
PRESET = Choice(
    say("Preset"),
    {
        "": say("as set below"),
        "collision": say("the sine-only code collides"),
    },
    "",
    folded=True,
)
BASES = {
    **{str(base): str(base) for base in (2, 10, 100, 1000)},
    **{str(10**n): f"10{power}" for n, power in ((4, "⁴"), (5, "⁵"), (6, "⁶"), (9, "⁹"))},
    "inf": "∞",
}


def schemes(scene: Scene, preset: str, length: int, d_model: int, base_choice: str) -> list[dict]:
    """Judge every code at these sizes. preset: the name of sizes to use instead, or ""."""
    length, d_model, base = PRESETS.get(preset, (length, d_model, float(base_choice)))
    judged = [(scheme.name, codes.judge(scheme, length, d_model, base=base)) for scheme in SCHEMES] + _judge_model(
        scene
    )
    columns, ours = (say("Code"), *(name for name, _ in codes.CRITERIA.values())), (len(SCHEMES) - 1,)
    dots = [[name, *(blocks.dot(v.passed, v.shown_by) for v in verdicts)] for name, verdicts in judged]
    rows = [[name, *(blocks.verdict(v.passed, v.shown_by) for v in verdicts)] for name, verdicts in judged]
    sizes = {
        "n": length,
        "width": d_model,
        "base": BASES.get(base_choice) if preset not in PRESETS else blocks.compact(base),
    }

    def fewest(margin: float) -> list[Words]:
        return [_width(*codes.fewest_dimensions(scheme, length, margin=margin, base=base)) for scheme in SCHEMES]

    return [
        blocks.table(
            columns,
            dots,
            marked=ours,
            caption=say("For {n} positions, d_model {width} and base {base}.", **sizes),
        ),
        blocks.folded(
            say("What decides each criterion, and what the criteria mean"),
            blocks.table(columns, rows, marked=ours),
            blocks.table(blocks.headings("Criterion", "Meaning"), [*codes.CRITERIA.values()]),
            blocks.note(
                "Tutorials define two of these differently. The normalised count is divided by n − 1 here, so "
                "that the last of n tokens has 1; others divide by n. Padding is not counted, and a decoder "
                "divides by the source's length. In the paper's exponent 2i/d, i counts "
                "pairs of dimensions; where it counts dimensions, the exponent is twice as large, and a sine and "
                "its cosine have different ones: a tutorial's exponents, above."
            ),
        ),
        blocks.columns(
            (say("Code"), [scheme.name for scheme in SCHEMES]),
            (say("Value"), [blocks.symbols(scheme.formula) for scheme in SCHEMES]),
            (say("Fewest dimensions that distinguish {n} positions", n=length), fewest(codes.SAME)),
            (say("Fewest dimensions with all codes at least 0.5 apart"), fewest(0.5)),
            marked=ours,
        ),
        blocks.table(
            (
                say("Code"),
                say("Before the first position: −1"),
                say("Error of a shift by {k} as a rotation", k=SHIFT),
                say("Error in 32 bits"),
            ),
            [
                [
                    scheme.name,
                    *_outside(codes.fit(scheme, length), length, d_model, base),
                    blocks.number(codes.float32_error(scheme, length, d_model, base=base)),
                ]
                for scheme in SCHEMES
            ],
            marked=ours,
            caption=say(
                "If a code is the same at −1 and at a real position, an off-by-one shift goes unnoticed. A "
                "rotation needs pairs of dimensions with one frequency: if a cosine's differs from its "
                "sine's, no matrix is a shift. In 32 bits, a number has seven digits. The larger the base, the "
                "slower the waves: at ∞, all but the first stand still."
            ),
        ),
        *_gradients(length, d_model, base),
    ]


def _gradients(length: int, d_model: int, base: float) -> list[dict]:
    """Return why a code should be bounded: the gradient of a matrix that reads it, and what a norm does to a count."""
    longer = codes.LONGER * length
    positions = (1, length - 1, longer - 1)
    rows = []
    for scheme in map(lambda scheme: codes.fit(scheme, length), SCHEMES):
        table = scheme.table(min(longer, scheme.rows or longer), d_model, base=base)
        norms = codes.weight_gradients(table[[at for at in positions if at < len(table)]])
        rows.append([scheme.name, *map(blocks.number, norms), *["–"] * (len(positions) - len(norms))])
    losses, last = measure.read(), max(measure.UPDATES)
    ranges = {
        f"{place}_{code}": " – ".join(f"{value:.3g}" for value in losses[f"{place} positions_{code}"][last])
        for place in ("order", "post")
        for code in ("count", "none")
    }
    return [
        blocks.stack(
            blocks.paragraph(
                "Why bounded? A matrix W that reads x has the gradient ∂L/∂W = (∂L/∂y) xᵀ, which grows with x."
            ),
            blocks.table(
                (say("Size of ∂L/∂W, for a ∂L/∂y of length 1"), *(say("position {at}", at=at) for at in positions)),
                rows,
            ),
            blocks.paragraph(
                "In a model, a count adds the same number to every dimension. A norm before each sub-layer (pre-norm) "
                "subtracts it with the mean. With post-norm the first attention reads it. Loss on word order, measured "
                "in Train after {n} updates: pre-norm {order_count} (without positions {order_none}), post-norm "
                "{post_count} (without {post_none}).",
                n=last,
                **ranges,
            ),
        )
    ]


def _judge_model(scene: Scene) -> list[tuple[Words, tuple[codes.Verdict, ...]]]:
    """Judge the table that the model adds to its embeddings, if it adds one."""
    translator = scene.translator
    config = translator.config
    if not TRANSFORMER.is_met(scene) or not config.adds_positions:
        return []
    rows = config.max_length if config.position_code is PositionCode.LEARNED else None
    length = min(MOST, config.max_length)
    name = say("this model’s own table, {n} positions", n=length)
    scheme = of_table(name, lambda n: translator.model.source_positions(0, n).flatten(0, -2), rows=rows)
    return [(name, codes.judge(scheme, length, config.d_model))]


def _width(width: int | None, gap: float, pair: tuple[int, int]) -> Words:
    """Return the cell about the fewest dimensions."""
    values = {"first": pair[0], "second": pair[1], "gap": blocks.compact(gap)}
    if width is None:
        return say("none: {first} and {second} stay {gap} apart", **values)
    return say("{width}: positions {first} and {second} are {gap} apart", width=width, **values)


def _outside(scheme: Scheme, length: int, d_model: int, base: float) -> list:
    """Return the cells about position −1, and about a shift as a rotation."""
    gap, at = codes.nearest_to(scheme, -1, length, d_model, base=base)
    before = (
        say("the same code as position {at}", at=at)
        if gap <= codes.SAME
        else say("nearest is position {at}, {gap} away", at=at, gap=blocks.compact(gap))
    )
    if scheme.step != 2:
        return [before, say("no pairs")]
    table = scheme.table(max(length, SHIFT + 1), d_model, base=base)
    return [before, blocks.compact(geometry.rotation_residual(table, SHIFT, geometry.waves(d_model, base)))]


PANEL = Panel(
    "position-schemes",
    "Schemes",
    "Why not simply number the positions? Five properties a code should have, tested on seven codes.",
    SECTION,
    schemes,
    controls=(
        PRESET,
        Slider(say("Positions"), 2, 384, 64),
        Slider("d_model", 2, 256, 64, step=2),
        Choice(say("base"), BASES, "10000", folded=True),
    ),
    of_any_network=True,
    method=say(
        "Each answer is computed and shows the positions that decide it. The binary index has as many bits as the "
        "longest text needs, here the number of positions above. The preset breaks one of the properties."
    ),
)
