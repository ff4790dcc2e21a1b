"""The panel "Verify": every claim of the page, checked on the current sentence."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from attention_atlas.model.checks.evidence import Evidence
from attention_atlas.model.checks.verify import Check, MapCopy, Result, checks_of, verify
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.figures.attention import SIDE
from attention_atlas.viz.maps.reduce import View, score_map
from attention_atlas.viz.panels.panel import Button, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, readback
from attention_atlas.viz.wire.codecs import ROOT, UNCOMPRESSED
from attention_atlas.viz.words import Words, join, say

DRAWN = 1e-6  # float32 rounding of a figure's numbers
PROGRESS = 0.25  # seconds between two reports of progress


def read_back_all(scene: Scene) -> dict[Words, tuple[Words, list[MapCopy], float]]:
    """Read the maps back from the explorer's payload, the figures and the exported files.

    Returns name -> (claim, maps, tolerance).
    """
    trace = scene.trace
    kind, layer, head = scene.selection.kind, scene.selection.layer, scene.selection.head
    view = View(kind, layer, head)

    def all_kinds(maps: dict) -> list[MapCopy]:
        return [MapCopy(kind, weights) for kind, weights in maps.items()]

    copies = {
        say("Sent to the page"): (
            say("What the explorer receives, unpacked, is the trace (16 bits a weight)."),
            all_kinds(readback.sent_maps(trace)),
            readback.PAYLOAD_TOLERANCE,
        ),
        say("Notebook heatmap"): (
            say("The heatmap of the selected head holds its weights."),
            [MapCopy(kind, readback.drawn_head(trace, kind, layer, head), layer, head)],
            DRAWN,
        ),
    }
    if max(len(trace.source_ids), len(trace.target_ids)) <= SIDE:
        claim = say("The grid of all heads holds each head's weights in the right place.")
        copies[say("Notebook grid")] = (claim, all_kinds(readback.drawn_maps(trace)), DRAWN)
    for name, form in FORMATS.items():
        claim = say("The {format} export reads back bit by bit.", format=name.upper())
        if form.trace:
            maps = all_kinds(form.trace.read(form.trace.write(trace, scene.selection)))
        else:
            weights = form.map.read(form.map.write(trace, view, score_map(trace, view)))
            maps = [MapCopy(kind, weights, layer, head)]
        copies[say("Exported {format}", format=name.upper())] = (claim, maps, 0.0)
    return copies


def drawn_error(trace: TranslationTrace, drawn: object) -> tuple[float, int]:
    """Return the largest difference between the drawn weights and the trace's, and the number of layers compared.

    drawn: {key, layers}, not validated; layers has for each kind a list of the layers' weights, encoded by
    viz.wire.codecs.ROOT, or None for layers that the page does not have. A Refusal if it is malformed or about another
    translation.
    """
    if not isinstance(drawn, dict) or drawn.get("key") != trace.key or not isinstance(drawn.get("layers"), dict):
        raise Refusal("the page has not drawn this translation yet")
    largest, count = 0.0, 0
    for kind in trace.kinds:
        layers, maps = drawn["layers"].get(kind.value), trace.maps(kind)
        if not isinstance(layers, list) or len(layers) != maps.num_layers:
            raise Refusal("the page has not drawn this translation yet")
        for weights, encoded in zip(maps.weights, layers, strict=True):
            if encoded is not None:
                count += 1
                largest = max(largest, float(np.abs(_decode(encoded, weights.shape) - weights).max(initial=0.0)))
    return largest, count


def _decode(encoded: object, shape: Sequence[int]) -> np.ndarray:
    """Decode weights that the page sends. Only the unpacked form is accepted: its size is known before decoding."""
    size = 2 * math.prod(shape)  # bytes
    if not isinstance(encoded, str) or encoded[:1] != UNCOMPRESSED or len(encoded) != 1 + 4 * -(-size // 3):
        raise Refusal("the page has not drawn this translation yet")
    try:
        return ROOT.decode(encoded, shape)
    except ValueError as error:  # no base64
        raise Refusal("the page has not drawn this translation yet") from error


def _page_check(scene: Scene) -> Check:
    """Return the check of the weights that the page draws."""

    def measure(evidence: Evidence) -> tuple[float, Words]:
        largest, count = drawn_error(evidence.trace, scene.drawn)
        total = sum(evidence.trace.maps(kind).num_layers for kind in evidence.trace.kinds)
        return largest, say("{n} of {total} layers, as the page draws them", n=count, total=total)

    return Check(
        say("Drawn on the page = trace"),
        say("The weights that the page draws are the trace's (16 bits a weight)."),
        readback.PAYLOAD_TOLERANCE,
        measure,
    )


def check_all(scene: Scene) -> Iterator[list[dict]]:
    """Run all checks. Yields the table of checks as it is filled in."""
    page_check = _page_check(scene)
    names = [(check.name, check.claim) for check in checks_of(scene.translator)]
    yield _report(names, [])
    copies = read_back_all(scene)
    names += [(say("{what} = trace", what=name), claim) for name, (claim, *_) in copies.items()]
    names.append((page_check.name, page_check.claim))
    done: list[Result] = []
    reported = time.perf_counter()
    maps_by_name = {name: (maps, tolerance) for name, (_, maps, tolerance) in copies.items()}
    for result in verify(scene.translator, scene.trace, copies=maps_by_name, also=(page_check,)):
        done.append(result)
        if time.perf_counter() - reported > PROGRESS:
            reported = time.perf_counter()
            yield _report(names, done)
    yield _report(names, done)


def _report(names: list[tuple[str, str]], done: list[Result]) -> list[dict]:
    failed = [result.name for result in done if not result.passed]
    waiting = len(names) - len(done)
    if failed:
        numbers = {"failed": len(failed), "n": len(done)}
        words = say("{failed} of {n} checks failed: {names}.", names=join(failed, ", "), **numbers)
        verdict = blocks.text(words, tone="bad")
    elif waiting:
        verdict = blocks.note("Checking … {done} of {n} done.", done=len(done), n=len(names))
    else:
        seconds = f"{sum(result.seconds for result in done):.2f}"
        words = say("All {n} checks passed on this sentence, in {seconds} s.", n=len(done), seconds=seconds)
        verdict = blocks.text(words, tone="good")
    rows = [_row(name, claim, result) for (name, claim), result in zip(names, done)]
    rows += [[name, blocks.verdict(None), "", "", "", claim, "", ""] for name, claim in names[len(done) :]]
    columns = blocks.headings("Check", "passed", "error", "relative", "tolerance", "claim", "on what", "time")
    return [blocks.stack(verdict, blocks.table(columns, rows))]


def _row(name: str, claim: str, result: Result) -> list:
    return [
        name,
        blocks.verdict(result.passed),
        blocks.number(result.error),
        "–" if result.relative is None else blocks.number(result.relative),  # as a share of the largest value compared
        blocks.number(result.tolerance),
        claim,
        result.detail,
        f"{1e3 * result.seconds:.0f} ms",
    ]


PANEL = Panel(
    "verify",
    "Verify",
    "Every claim on this page, checked just now on the sentence above.",
    say("Paper, section {n}", n="3"),
    check_all,
    button=Button(say("Verify again"), elem_id="verify-again"),
    checks_page=True,
    of_any_network=True,
    method=say("Error: the largest difference found. Failed checks are named."),
)
