"""Questions of the stepper: decode token by token, choose another token, and compare the branches.

The page keeps the tree of branches, and sends it with each question. It steps through whole paths by itself; the server
is asked only for what the model must compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.again import check_again
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps.branches import Branch, Origin, Tree, compare
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.questions.panels import scene_of
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire import fields as field
from attention_atlas.viz.wire import steps
from attention_atlas.viz.wire.payload import selection_dict
from attention_atlas.viz.wire.summary import INVITATION
from attention_atlas.viz.words import say

RECURRENT = say(
    "The steps are a Transformer's; this model is a recurrent network. Its alignment is in the tab Attention."
)


@dataclass(frozen=True, eq=False)
class Reply:
    """The result of an action: values for the page, the new tree, and the trace for the other tabs."""

    page: dict
    tree: Tree
    opened: TranslationTrace | None = None


@question(lane="model")
def page_step(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Run an action of the stepper. Returns {tree, path, at} of the branch that it opens, or what the action computes;
    with `state`, the tree that the page sends back, and `opened`, the address of the trace for the other tabs.

    fields: action ("start", "changed", or one of ACTIONS), the fields of that action, state, and holds: the branches
    that the page has already.
    """
    if address is None:
        return {"invitation": INVITATION}
    scene = scene_of(context, address, fields)
    if AttentionKind.CROSS not in scene.trace.kinds:
        return {"invitation": RECURRENT}
    state = fields.get("state")
    tree = Tree.of(scene.trace) if state is None else Tree.from_plain(state)
    if fields.get("action") == "changed":
        return {"stale": not tree.holds(scene.trace)}
    if fields.get("action") == "start":
        reply = start(scene, tree)
    else:  # of the tree's own sentence and model: the page may have gone on to another one
        translator, _ = context.traces.translator_of(tree.address)
        reply = field.entry(fields, "action", ACTIONS)(translator, tree, fields)
    page = {**reply.page, "state": reply.tree.to_plain()}
    if reply.opened is None:
        return page
    context.traces.add(reply.opened)
    return {**page, "opened": Address.of(reply.opened).to_plain()}


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
        added = translator.encode_typed(field.text(data, "text"), joined=bool(data.get("joined")))
    else:
        added = [field.whole(data, "token")]
    given = [*branch.ids[:step], *added]
    return _open(translator, tree, _traced(translator, tree, prefix=given), Origin.FORCED, data, at=len(given))


def open_branch(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Show a branch that is in the tree."""
    branch = _branch(data, tree)
    return _opened(translator, tree, branch, _trace(translator, tree, branch), at=None, held=_held(tree, data))


def target(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Force-decode a translation that a person typed."""
    ids = translator.encode_target(field.text(data, "text", ""), tree.address.direction)
    return _open(translator, tree, _traced(translator, tree, target=ids), Origin.TARGET, data, at=0)


def beam(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Search, and show the tree that was searched."""
    width, penalty = data.get("width"), field.number(data, "penalty", 0)
    Decoding(width, penalty)  # raises
    (result,) = translator.beam(
        [tree.address.source_ids],
        tree.address.direction,
        width=width,
        length_penalty=penalty,
        n_best=width,
        keep_pruned=True,
        interventions=tree.address.interventions,
    )
    return Reply({"beam": steps.beam_payload(result, translator.tokenizer.pieces)}, tree)


def node(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Open a beam node: greedy decoding completes its prefix as a branch; the other tabs show the prefix itself."""
    prefix = field.wholes(data, "ids")
    trace = _traced(translator, tree, prefix=prefix)
    reply = _open(translator, tree, trace, Origin.BEAM, data, at=len(prefix))
    if len(prefix) == len(trace.target_ids):
        return reply
    return Reply(reply.page, reply.tree, _traced(translator, tree, target=prefix))


def details(translator: Translator, tree: Tree, data: dict) -> Reply:
    """A branch's lenses, and its distributions at every temperature."""
    branch = _branch(data, tree)
    found = temperatures.details(translator, tree.address.source_ids, branch.ids, tree.address.interventions)
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
    return tree.find(field.whole(data, name))


def _step(data: dict, tree: Tree) -> int:
    step, length = field.whole(data, "step"), len(_branch(data, tree).ids)
    if not 0 <= step <= length:
        raise ValueError(f"A step is from 0 to {length}, found {step!r}.")
    return step


def _trace(translator: Translator, tree: Tree, branch: Branch) -> TranslationTrace:
    found = _traced(translator, tree, target=branch.ids)
    return found if branch.decoding is None else replace(found, decoding=branch.decoding)


def _traced(translator: Translator, tree: Tree, **ids: Sequence[int]) -> TranslationTrace:
    """Return the tree's sentence with a given `target`, or with a `prefix` that greedy decoding completes."""
    of = tree.address
    return translator.trace(of.text, of.direction, source_ids=of.source_ids, interventions=of.interventions, **ids)


def _open(translator: Translator, tree: Tree, trace: TranslationTrace, origin: Origin, data: dict, *, at: int) -> Reply:
    """Open a branch for a trace that was made from a tree. A branch that is there already keeps its origin."""
    grown, branch = tree.add(trace, origin)
    shown = replace(trace, decoding=branch.decoding)
    return _opened(translator, grown, branch, shown, at=at, held=_held(tree, data))


def _held(tree: Tree, data: dict) -> tuple[set[int], Branch | None]:
    """Which branches of the tree the page holds already, and the one whose steps it has. None of another tree."""
    holds = data.get("holds")
    if not isinstance(holds, dict) or holds.get("tree") != tree.key:
        return set(), None
    return (
        {b.number for b in tree.branches if b.number in field.wholes(holds, "branches")},
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
    """Return the answer that shows an opened branch. at: the step to go to; None: the page stays at its own."""
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
