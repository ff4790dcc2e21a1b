"""The tab that checks: every claim on the current sentence, and BLEU laid out."""

from __future__ import annotations

import time
from collections.abc import Iterator

import gradio as gr

from model.checks.verify import CHECKS, Result, Shown, verify
from model.evaluation import bleu
from model.trace.translation import TranslationTrace
from model.translator import Translator, Translators
from viz.export.formats import FORMATS, Taken
from viz.figures.grid import SIDE
from viz.maps.reduce import View, score_map
from viz.ui.header import Header
from viz.ui.lab.panel import Lab, Panel, Scene, heading
from viz.ui.language import label
from viz.wire import blocks, readback
from viz.words import Words, known, say

DRAWN = 1e-6  # float32 rounding of a figure's numbers
PROGRESS = 0.25  # seconds between two pictures of a check that is running: each costs the page a redraw
SHOWN = {
    say("Sent to the page"): say("What the explorer receives, unpacked, is the trace (16 bits a weight)."),
    say("Drawn heatmap"): say("The heatmap of the selected head holds its weights."),
    say("Drawn grid"): say("So does the grid of all heads, each in its place."),
}
VERIFY = Panel(
    "verify", label("Verify"), say(
        "Every claim of this page, tried on the sentence above, just now. The error is the largest difference "
        "found; a check that fails says so."),
    say("Paper, section {n}", n="3"))
BLEU = Panel(
    "bleu", label("BLEU"), say(
        "How much of the translation stands in a reference, word by word, pair by pair. Look at how fast the "
        "precisions fall as the pieces get longer."),
    say("Paper, section {n}", n="6.1"))


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    lab = Lab(translators, header.session)
    with gr.Tabs(elem_id="checks-tabs"):
        with gr.Tab(VERIFY.title, id=VERIFY.name):
            heading(VERIFY)
            with gr.Row():
                again = gr.Button(label("Verify again"), variant="primary", scale=0, min_width=160,
                                  elem_id="verify-again")
            lab.add(VERIFY, check_all, buttons=(again,))
        with gr.Tab(BLEU.title, id=BLEU.name):
            heading(BLEU)
            reference = gr.Textbox("", label=label(
                "Reference: a good translation of the sentence above, by a person"), elem_id="bleu-reference")
            lab.follow(reference, known_reference)
            lab.add(BLEU, score, controls=(reference,))
    lab.follow_the_sentence()


def shown_elsewhere(scene: Scene) -> dict[Words, tuple[list[Shown], float]]:
    """What the page and its exports hold of this trace, read back: the explorer's payload, the figures, the files."""
    trace, selected = scene.trace, scene.selection

    def all_kinds(maps: dict) -> list[Shown]:
        return [Shown(kind, weights) for kind, weights in maps.items()]

    head = readback.drawn_head(trace, selected.kind, selected.layer, selected.head)
    found = {
        say("Sent to the page"): (all_kinds(readback.sent_maps(trace)), readback.PAYLOAD_TOLERANCE),
        say("Drawn heatmap"): ([Shown(selected.kind, head, selected.layer, selected.head)], DRAWN)}
    if max(len(trace.source_ids), len(trace.target_ids)) <= SIDE:
        found[say("Drawn grid")] = (all_kinds(readback.drawn_maps(trace)), DRAWN)
    return found | {_exported(name): (_read_back(name, scene), 0.0) for name in FORMATS}


def _exported(name: str) -> Words:
    return say("Exported {format}", format=name.upper())


def _read_back(name: str, scene: Scene) -> list[Shown]:
    """What a file of this format holds of the trace, or of the selected head where it holds one map."""
    trace, (kind, layer, head) = scene.trace, (scene.selection.kind, scene.selection.layer, scene.selection.head)
    form, view = FORMATS[name], View(kind, layer, head)
    taken = Taken(trace, view, score_map(trace, view), scene.selection)
    if form.trace:
        return [Shown(kind, weights) for kind, weights in form.trace.read(form.trace.write(taken)).items()]
    return [Shown(kind, form.map.read(form.map.write(taken)), layer, head)]


def check_all(scene: Scene) -> Iterator[list[dict]]:
    """The list of checks, filled in as they are carried out."""
    names = [(known(check.name), known(check.claim)) for check in CHECKS]
    yield _report(names, [])
    shown = shown_elsewhere(scene)
    claims = SHOWN | {_exported(name): say("The {format} export reads back bit by bit.", format=name.upper())
                      for name in FORMATS}
    names += [(say("{what} = trace", what=name), claims[name]) for name in shown]
    done: list[Result] = []
    told = time.perf_counter()
    for result in verify(scene.translator, scene.trace, shown=shown):
        done.append(result)
        if time.perf_counter() - told > PROGRESS:
            told = time.perf_counter()
            yield _report(names, done)
    yield _report(names, done)


def _report(names: list[tuple[str, str]], done: list[Result]) -> list[dict]:
    failed = [result.name for result in done if not result.passed]
    waiting = len(names) - len(done)
    if failed:
        verdict = blocks.text(say("{failed} of {n} checks failed: {names}.", failed=len(failed), n=len(done),
                                  names=", ".join(failed)), tone="bad")
    elif waiting:
        verdict = blocks.text(say("Checking … {done} of {n} done.", done=len(done), n=len(names)), tone="note")
    else:
        seconds = sum(result.seconds for result in done)
        verdict = blocks.text(say("All {n} checks passed on this sentence, in {seconds} s.", n=len(done),
                                  seconds=f"{seconds:.2f}"), tone="good")
    rows = [[name, blocks.verdict(result.passed if result else None),
             blocks.number(result.error) if result else "", blocks.number(result.tolerance) if result else "",
             claim, known(result.detail) if result else "",
             f"{1e3 * result.seconds:.0f} ms" if result else ""]
            for (name, claim), result in zip(names, [*done, *([None] * waiting)])]
    columns = (say("Check"), say("passed"), say("error"), say("tolerance"), say("claim"), say("on what"), say("time"))
    return [verdict, blocks.table(columns, rows)]


def known_reference(trace: TranslationTrace, translator: Translator) -> str:
    """That of the example whose text the trace translates; "" for any other sentence."""
    examples = translator.examples.get(trace.direction, ())
    return next((example.reference for example in examples if example.text == trace.source_text), "")


def score(scene: Scene, reference: str) -> list[dict]:
    if not (reference or "").strip():
        return [blocks.text(say("There is nothing to compare with: type a good translation of the sentence into the "
                                "field above.")), blocks.cards((
                    say("Translation"), scene.trace.translation or say("(nothing)"),
                    say("{n} tokens", n=len(scene.trace.target_ids))))]
    found = bleu.lay_out(scene.trace.translation, reference)
    rows = [[say("{n}-grams", n=p.order), blocks.number(p.matched), blocks.number(p.total),
             blocks.bar(p.matched / p.total if p.total else 0.0, say("{n} of {total}", n=p.matched, total=p.total)),
             f"{p.percent:.1f}%" if p.total else "–", f"{p.weight:g}"] for p in found.precisions]
    smoothed = any(p.total and not p.matched for p in found.precisions)
    return [
        blocks.cards((say("Translation"), scene.trace.translation or say("(nothing)"),
                      say("{n} tokens", n=found.translation_length)),
                     (say("Reference"), reference, say("{n} tokens", n=found.reference_length))),
        blocks.table(("", say("found in the reference"), say("in the translation"), say("precision"),
                      say("sacreBLEU's precision"), say("textbook's exponent")), rows,
                     caption=say("An n-gram counts at most as often as it stands in the reference. Where nothing "
                                 "matched, sacreBLEU smooths: it halves a virtual match.") if smoothed
                     else say("An n-gram counts at most as often as it stands in the reference.")),
        blocks.formula(say("BLEU = brevity penalty · (p₁ p₂ p₃ p₄)^(1/4)"), "Papineni et al. 2002"),
        blocks.formula(say("textbook: exp(min(0, 1 − reference / translation)) · Π pₙ^(1/2ⁿ)"), "Zhang et al., 10.7"),
        blocks.facts(
            (say("sacreBLEU, this sentence"), f"{found.score:.1f}", found.signature),
            (say("Brevity penalty"), f"{found.brevity_penalty:.3f}", say(
                "{n} tokens against {m}", n=found.translation_length, m=found.reference_length)),
            (say("Textbook variant"), f"{found.textbook:.1f}",
             say("unsmoothed: 0 as soon as one order matches nothing"))),
        blocks.text(say("One sentence says little: BLEU is meant for whole test sets, where the counts are summed "
                        "first."), tone="note")]
