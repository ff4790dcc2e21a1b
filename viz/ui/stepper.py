"""The stepper tab: decode token by token, choose otherwise, and compare what becomes of it.

The page holds whole paths and steps through them by itself; the server is asked only for what the model must compute,
one action at a time. Between actions it keeps token ids and probabilities, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import gradio as gr

from model.analysis import temperatures
from model.analysis.again import check_again
from model.trace.decoding import Decoding
from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz.maps.branches import Branch, Origin, Tree, compare
from viz.ui.component import Component
from viz.ui.desk import fields
from viz.ui.desk.desk import MODEL, PRIVATE, Desk
from viz.ui.desk.scene import Scene
from viz.ui.explorer import share_selection
from viz.ui.header import Header
from viz.ui.rpc import Message, announces, told
from viz.ui.session import serving
from viz.wire import steps
from viz.wire.payload import selection_dict
from viz.words import say

RECURRENT = say(
    "The steps are a Transformer's; this model is a recurrent network. Its alignment is in the tab Attention."
)


@dataclass(frozen=True, eq=False)
class Reply:
    """What an action gives back: values for the page, the tree after it, and what the other tabs are to show."""

    page: dict
    tree: Tree
    opened: TranslationTrace | None = None


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    session = header.session
    # It begins by asking: when the tab is opened the page may be at another sentence than it began with.
    stepper = Component("stepper", told(stale=True), events=("act", "select", "publish"), elem_id="stepper")
    tree_state, opened_state = gr.State(None), gr.State(header.first)

    desk = Desk(stepper, session, translators)

    def act(message: Message, scene: Scene, tree: Tree | None) -> dict | tuple:
        if AttentionKind.CROSS not in scene.trace.kinds:
            return {"invitation": RECURRENT}
        tree, data = tree or Tree.of(scene.trace), message.data
        if data.get("action") == "changed":
            return {"stale": not tree.holds(scene.trace)}, gr.skip(), gr.skip()
        if data.get("action") == "start":
            reply = start(scene, tree)
        else:  # of the tree's own sentence and model: the page may have gone on to another one
            reply = fields.entry(data, "action", ACTIONS)(serving(translators, tree), tree, data)
        if reply.opened is None:
            return reply.page, reply.tree, gr.skip()
        return {**reply.page, "publish": True}, reply.tree, reply.opened

    def publish(opened: TranslationTrace, tree: Tree | None, trace: TranslationTrace | None, event: gr.EventData):
        return header.shown(Message.of(event), opened) if is_of(tree, trace) else [gr.skip()] * 2

    def follow_the_sentence(trace: TranslationTrace, tree: Tree | None):
        return told(stale=tree is None or not tree.holds(trace))

    # Outside the queue, which would take longer than the action does.
    acting, states = desk.about(act)
    desk.answers("act", acting, [*states, tree_state], [tree_state, opened_state], turn=True, queue=False, **MODEL)
    # Apart from the action and after it: the other tabs must not keep the stepper waiting. Queued, as is the next: an
    # event outside the queue changes a state without telling who listens to it.
    stepper.publish(
        publish,
        [opened_state, tree_state, session.trace],
        header.shows,
        trigger_mode="multiple",
        **PRIVATE,
    )
    share_selection(stepper, session)
    # The page asks whether that concerns it. A value that says so would be lost where another arrives with it.
    session.trace.change(None, js=announces("atlas-changed"), **PRIVATE)


def is_of(tree: Tree | None, trace: TranslationTrace | None) -> bool:
    """Whether the other tabs still show the tree's sentence. Another may have come meanwhile, by a link or typed: that
    one stays."""
    return tree is not None and trace is not None and tree.holds(trace)


def start(scene: Scene, tree: Tree) -> Reply:
    """Begin with the sentence that the other tabs show, unless the tree is of it already."""
    trace, translator = scene.trace, scene.translator
    check_again(translator, trace)
    if tree.holds(trace):
        shown = _trace(translator, tree, tree.branches[0])
    else:
        shown, tree = trace, Tree.of(trace)
    page = _opened(translator, tree, tree.branches[0], shown, at=0).page
    return Reply({**page, "selection": selection_dict(scene.selection)}, tree)


def force(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Put tokens (ids, or text that becomes ids) after the first `step` tokens of a branch, and go on greedily."""
    branch, step = _branch(data, tree), _step(data, tree)
    if "text" in data:
        added = translator.encode_typed(fields.text(data, "text"), joined=bool(data.get("joined")))
    else:
        added = [fields.whole(data, "token")]
    given = [*branch.ids[:step], *added]
    return _open(translator, tree, _completed(translator, tree, given), Origin.FORCED, data, at=len(given))


def open_branch(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Show a branch that is in the tree."""
    branch = _branch(data, tree)
    return _opened(translator, tree, branch, _trace(translator, tree, branch), at=None, held=_held(tree, data))


def target(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Force-decode a translation that a person typed."""
    ids = translator.encode_target(fields.text(data, "text", ""), tree.direction)
    return _open(translator, tree, _followed(translator, tree, ids), Origin.TARGET, data, at=0)


def beam(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Search, and show the tree that was searched."""
    width, penalty = data.get("width"), fields.number(data, "penalty", 0)
    Decoding(width, penalty)  # raises
    (result,) = translator.beam(
        [tree.source_ids],
        tree.direction,
        width=width,
        length_penalty=penalty,
        n_best=width,
        keep_pruned=True,
        interventions=tree.interventions,
    )
    return Reply({"beam": steps.beam_payload(result, translator.tokenizer.pieces)}, tree)


def node(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Open a beam node: its prefix becomes a branch that greedy decoding completes; the other tabs show the prefix
    itself, unfinished where it is."""
    prefix = fields.wholes(data, "ids")
    trace = _completed(translator, tree, prefix)
    reply = _open(translator, tree, trace, Origin.BEAM, data, at=len(prefix))
    if len(prefix) == len(trace.target_ids):
        return reply
    return Reply(reply.page, reply.tree, _followed(translator, tree, prefix))


def details(translator: Translator, tree: Tree, data: dict) -> Reply:
    """A branch's lenses, and its distributions at every temperature."""
    branch = _branch(data, tree)
    found = temperatures.details(translator, tree.source_ids, branch.ids, tree.interventions)
    tokens = {lens: [translator.tokenizer.tokens(row) for row in one.top_ids] for lens, one in found.lenses.items()}
    page = steps.details_payload(found, temperatures.TEMPERATURES, tokens)
    return Reply({"details": {"number": branch.number, **page}}, tree)


def rows(translator: Translator, tree: Tree, data: dict) -> Reply:
    """One step's attention, of a branch whose maps are too large to send at once."""
    branch, step = _branch(data, tree), _step(data, tree)
    trace = _trace(translator, tree, branch)
    if step >= len(branch.ids):
        raise ValueError(f"Branch {branch.number} has {len(branch.ids)} steps, found step {step + 1}.")
    return Reply({"rows": {"number": branch.number, **steps.rows_payload(trace, step)}}, tree)


def side_by_side(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Compare two branches."""
    a, b = _branch(data, tree, "first"), _branch(data, tree, "second")
    found = compare(*(_trace(translator, tree, branch) for branch in (a, b)))
    return Reply({"comparison": steps.comparison_payload(a, b, found)}, tree)


ACTIONS: dict[str, Callable[[Translator, Tree, dict], Reply]] = {
    "force": force,
    "open": open_branch,
    "target": target,
    "beam": beam,
    "node": node,
    "details": details,
    "rows": rows,
    "compare": side_by_side,
}


def _branch(data: dict, tree: Tree, name: str = "branch") -> Branch:
    return tree.find(fields.whole(data, name))


def _step(data: dict, tree: Tree) -> int:
    step, length = fields.whole(data, "step"), len(_branch(data, tree).ids)
    if not 0 <= step <= length:
        raise ValueError(f"A step is from 0 to {length}, found {step!r}.")
    return step


def _trace(translator: Translator, tree: Tree, branch: Branch) -> TranslationTrace:
    return _followed(translator, tree, branch.ids, branch.decoding)


def _followed(
    translator: Translator, tree: Tree, ids: Sequence[int], decoding: Decoding | None = None
) -> TranslationTrace:
    found = translator.trace(
        tree.source_text, tree.direction, source_ids=tree.source_ids, target=ids, interventions=tree.interventions
    )
    return found if decoding is None else replace(found, decoding=decoding)


def _completed(translator: Translator, tree: Tree, prefix: Sequence[int]) -> TranslationTrace:
    return translator.trace(
        tree.source_text, tree.direction, source_ids=tree.source_ids, prefix=prefix, interventions=tree.interventions
    )


def _open(translator: Translator, tree: Tree, trace: TranslationTrace, origin: Origin, data: dict, *, at: int) -> Reply:
    """Open a branch for a trace that was made from a tree. One that was there already stays as it came about.

    Six parameters: all that a branch records of how it came about.
    """
    grown, branch = tree.add(trace, origin)
    shown = replace(trace, decoding=branch.decoding)
    return _opened(translator, grown, branch, shown, at=at, held=_held(tree, data))


def _held(tree: Tree, data: dict) -> tuple[set[int], Branch | None]:
    """Which branches of the tree the page holds already, and the one whose steps it has. None of another tree."""
    holds = data.get("holds")
    if not isinstance(holds, dict) or holds.get("tree") != tree.key:
        return set(), None
    return (
        {b.number for b in tree.branches if b.number in fields.wholes(holds, "branches")},
        next((b for b in tree.branches if b.number == holds.get("path")), None),
    )


def _opened(
    translator: Translator,
    tree: Tree,
    branch: Branch,
    trace: TranslationTrace,
    *,
    at: int | None,
    held: tuple[set[int], Branch | None] = (set(), None),
) -> Reply:
    # at: the step to go to; None: the page stays at its own.
    """The answer that shows an opened branch. Six parameters: each is a part of it."""
    tokenizer, (known, path) = translator.tokenizer, held
    written = [i for i in branch.ids if i not in tokenizer.special_ids]
    respelled = tokenizer.encode(tokenizer.decode(written))
    page = {
        "tree": steps.tree_payload(tree, known),
        "path": steps.path_payload(
            trace,
            branch,
            vocabulary=translator.config.num_target_tokens,
            respelled=None if respelled == written else tokenizer.tokens(respelled),
            held=path,
        ),
        "at": at,
    }
    return Reply(page, tree, trace)
