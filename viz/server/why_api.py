"""The named endpoints that run experiments on one translation: why a token was written, and what it took."""

from __future__ import annotations

from model.analysis.lenses.encoder import TOP, encoder_lens, layer_translations
from model.analysis.why.attribution import answer, check_methods
from model.analysis.why.experiments import heads, smallest
from model.analysis.why.experiments.asking import voices
from model.analysis.why.experiments.patching import Direction, grid_of
from model.analysis.why.registry import METHODS
from model.analysis.why.split import parts
from model.trace.why.heads import Replacement, effects_table, sets_table
from model.trace.why.plain import plain
from model.trace.why.question import Against
from viz.server.answers import one_of, string, whole
from viz.server.endpoints import Served, endpoint
from viz.ui.asked import Asked
from viz.ui.desk.scene import Scene
from viz.ui.desk.studied import circuit_of, pair_of
from viz.ui.lab.downloads import question_fields, translation_fields
from viz.ui.lab.why.circuit import as_plain
from viz.ui.lab.why.patch import patched_with
from viz.ui.lab.why.smallest import ORDERS
from viz.ui.selection import Selection

MOST_EDGES = 500


@endpoint(
    returns="why one token was written and not another: each word's part by several methods, each measured, an exact "
    "split or a proxy"
)
def why(
    served: Served, text: str, step: int = -1, contrast: str = "", methods: list[str] | None = None, direction: str = ""
) -> dict:
    """Why the model wrote one token of its translation and not another: words taken away, logits taken apart.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        methods: names of rows; empty for all
        direction: such as "de-en"; empty for the app's first

    Returns:
        question (step, token, contrast, note); metric: log p(token) - log p(contrast) in nats; columns: words of
        the source, then (from source_columns on) of the prefix; special: which of them are symbols; rows (method,
        evidence: "measured", "exact split" or "proxy", unit, values by column, sum with its error, notes,
        agreement: rank correlation with occlusion under another replacement, null where that row was not asked
        for); parts: the metric as a sum over the decoder's parts; translation and target_tokens.
    """
    about = _scene(served, text, step, contrast, direction)
    found = answer(about.case, check_methods(methods or tuple(METHODS)))
    return {**translation_fields(about), **plain(found), "parts": plain(parts(about.case))}


@endpoint(returns="what that token loses without each head, measured one by one, and what gradients foretold")
def why_heads(
    served: Served, text: str, step: int = -1, contrast: str = "", instead: str = "zero", direction: str = ""
) -> dict:
    """What one token of a translation loses without each attention head, measured: one run for each.

    Args:
        text: the sentence
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        instead: what is heard of a head that is off: "zero", "mean" (of many sentences) or "resample" (of others)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; rows (kind, layer, evidence, unit, values: the nats that the metric loses
        without each head; flips: whether another token is then written), first all that is measured, then what the
        heads' gradients foretold (evidence "proxy"); replacement, draws: over how many sentences it is a mean;
        text, translation and target_tokens.
    """
    replacement = one_of("instead", instead, Replacement)
    about = _scene(served, text, step, contrast, direction)
    heard = voices(about.case, about.translator, about.trace, replacement)
    found = heads.measured(about.case, heard), heads.estimated(about.case, heard)
    return plain({**question_fields(about), **effects_table(*found)})


@endpoint(returns="one sentence's activations put into another's run, place by place: how far each brings it")
def why_patch(
    served: Served,
    text: str,
    second: str,
    step: int = -1,
    contrast: str = "",
    place: str = "decoder stream",
    way: str = "denoise",
    direction: str = "",
) -> dict:
    """Put what one sentence's run had at one place into another's, after the same prefix: where is the difference?

    The parameters are a request's fields: all but the two texts may be left out.

    Args:
        text: the sentence
        second: another one, such as the same with one word changed
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        place: "decoder stream", "encoder stream", "decoder self", "decoder cross", "decoder feed", "encoder
            self", "encoder feed", "cross heads", "decoder heads" or "encoder heads"
        way: "denoise" (this sentence into the second: is it enough?) or "noise" (the second into this one)
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; base and other: the metric of the run that receives and of the one that
        gives; rows (layer, evidence, unit, values: the metric with that place patched, null where the sentences
        have no common place), columns: tokens or heads; recovered: shares of the way from base to other, null
        where they are less than 1 nat apart; text, second, translation and target_tokens.
    """
    grid_of(string("place", place))  # raises
    how = one_of("way", way, Direction)
    about = _scene(served, text, step, contrast, direction)
    found = patched_with(about, string("second", second), place, how)
    return plain({**question_fields(about), "second": second, "place": place, **found.as_plain()})


@endpoint(
    returns="the edges, from head to head, along which the difference to a second sentence reaches that token, and how "
    "much of it they keep alone"
)
def why_circuit(
    served: Served, text: str, second: str, step: int = -1, contrast: str = "", edges: int = 25, direction: str = ""
) -> dict:
    """By which path does what two sentences differ by decide a token? Edges by EAP-IG, tested by running them alone.

    The parameters are a request's fields: all but the two texts may be left out.

    Args:
        text: the sentence
        second: the same with a word changed; where it has more or fewer tokens, only edges from the decoder's
            parts are scored
        step: which token of the translation, from 0; -1 for the least certain content word
        contrast: another word to compare with; empty for the next most probable (of a word, one with letters)
        edges: how many edges, 1 to 500
        direction: such as "de-en"; empty for the app's first

    Returns:
        question and metric as why does; other: the metric of the second sentence; edges (sender, receiver, nats:
        estimated, positive: the edge speaks for the token), the largest first; total: of how many; kept: the share of
        metric - other that they keep alone, measured, and random, that of as many edges drawn by lot; second, text,
        translation and target_tokens.
    """
    if not 1 <= whole("edges", edges) <= MOST_EDGES:
        raise ValueError(f"edges must be 1 to {MOST_EDGES}, found {edges}.")
    about = _scene(served, text, step, contrast, direction)
    return as_plain(about, second, *circuit_of(about, pair_of(about, string("second", second)), edges))


@endpoint(
    returns="each source token in target words after every encoder layer, and what the decoder writes of each layer"
)
def lens(served: Served, text: str, words: int = 3, direction: str = "") -> dict:
    """The encoder read in target words, by a lens that was fitted to the model, and a translation from each layer.

    Args:
        text: the sentence
        words: how many target pieces of each cell, 1 to 10
        direction: such as "de-en"; empty for the app's first

    Returns:
        pieces and shares [layer][source token][word], the embeddings first, null without fitted lenses; a share is how
        clearly the lens points there, a proxy; translations: of each layer's stream in place of the encoder's output;
        source_tokens, text, translation and target_tokens.
    """
    if not 1 <= whole("words", words) <= TOP:
        raise ValueError(f"words must be 1 to {TOP}, found {words}.")
    about = _scene(served, text, 0, "", direction)
    translator, trace = about.translator, about.trace
    found = about.lenses and encoder_lens(translator.model, about.output, about.lenses)
    layers = layer_translations(translator, list(trace.source_ids), trace.direction, trace.interventions)
    pieces = found and [
        [translator.tokenizer.tokens(row) for row in layer] for layer in found.ids[..., :words].tolist()
    ]
    return plain(
        {
            **translation_fields(about),
            "source_tokens": trace.source_tokens,
            "pieces": pieces,
            "shares": found and found.shares[..., :words],
            "translations": [translator.tokenizer.decode(ids) for ids in layers],
        }
    )


@endpoint(returns="the heads with which alone the translation stays the same, verified by decoding again")
def why_smallest(served: Served, text: str, instead: str = "zero", orders: int = 1, direction: str = "") -> dict:
    """The heads with which alone a sentence is still translated into the same words; no single one of them can go.

    Args:
        text: the sentence
        instead: what is heard of a head that is off: "zero" or "mean" (of many sentences)
        orders: how many orders to take heads away in, 1 to 3; each may end elsewhere
        direction: such as "de-en"; empty for the app's first

    Returns:
        sets, one for each order (kept: kind, layer, head of each; heads: of how many; tried: how many sets of heads
        were; verified: decoding again gave the same words); rows (order, kind, layer, values: 1 for a head that is
        needed); replacement; text, translation and target_tokens.
    """
    replacement = one_of("instead", instead, Replacement)
    if replacement is Replacement.RESAMPLE:
        raise ValueError('instead must be "zero" or "mean" here, found "resample".')
    if not 1 <= whole("orders", orders) <= len(ORDERS):
        raise ValueError(f"orders must be 1 to {len(ORDERS)}, found {orders}.")
    about = _scene(served, text, 0, "", direction)
    found = smallest.whole(about.case, about.translator, about.trace)
    heard = voices(found.case, about.translator, about.trace, replacement).draws[0]
    sets = [smallest.smallest_set(found, heard, seed=seed) for seed in ORDERS[:orders]]
    model = about.translator.model
    return plain({**translation_fields(about), **sets_table(sets, replacement, model.num_layers, model.num_heads)})


def _scene(served: Served, text: str, step: int, contrast: str, direction: str) -> Scene:
    translator, trace = served.chosen(direction)[0], served.traced(text, direction)
    at = None if whole("step", step) == -1 else step
    wanted = Asked.of(trace, at, string("contrast", contrast) or Against.RUNNER_UP)
    return Scene(trace, Selection(), translator, asked=wanted, means_cache=served.means_cache)
