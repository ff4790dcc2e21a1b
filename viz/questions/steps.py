"""Questions of the stepper: decode token by token, choose another token, and compare the branches.

The page keeps the tree of branches and sends it with each question. It steps through a branch by itself, and asks the
server only for what the model must compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.gates import decoder_states
from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import Decoding
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


@dataclass(frozen=True, eq=False)
class Reply:
    """The result of an action: fields of the answer, the new tree, and the trace for the other tabs, if any."""

    page: dict
    tree: Tree
    opened: TranslationTrace | None = None


@question(lane="model")
def page_step(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Run an action of the stepper. Returns {tree, path, at} of the opened branch or the action's own fields, and with
    them state, the tree that the page sends back, and opened, the address of the trace for the other tabs.

    The fields are action ("start", "changed", or one of ACTIONS), the fields of that action, and state.
    """
    if address is None:
        return {"invitation": INVITATION}
    scene = scene_of(context, address, fields)
    state = fields.get("state")
    tree = Tree.of(scene.trace) if state is None else Tree.from_plain(state)
    if fields.get("action") == "changed":
        return {"stale": not tree.holds(scene.trace)}
    if fields.get("action") == "start":
        reply = start(scene, tree)
    else:  # with the tree's own sentence and model: the page may show another one by now
        translator, _ = context.traces.translator_of(tree.address)
        reply = field.read_entry(fields, "action", ACTIONS)(translator, tree, fields)
    page = {**reply.page, "state": reply.tree.to_plain()}
    if reply.opened is None:
        return page
    context.traces.add(reply.opened)
    return {**page, "opened": Address.of(reply.opened).to_plain()}


def start(scene: Scene, tree: Tree) -> Reply:
    """Start with the sentence that the other tabs show; keep the tree if it is of that sentence."""
    trace, translator = scene.trace, scene.translator
    check_rerun(translator, trace)
    if tree.holds(trace):
        trace = _branch_trace(translator, tree, tree.branches[0])
    else:
        tree = Tree.of(trace)
    page = _reply(translator, tree, tree.branches[0], trace, at=0).page
    return Reply({**page, "selection": selection_dict(scene.selection)}, tree)


def force(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Force tokens (an id, or a text) after the first `step` tokens of a branch, and continue greedily."""
    branch, step = _branch(data, tree), _step(data, tree)
    if "text" in data:
        forced = translator.encode_typed(field.read_text(data, "text"), joined=bool(data.get("joined")))
    else:
        forced = [field.read_integer(data, "token")]
    prefix = [*branch.ids[:step], *forced]
    return _open(translator, tree, _translate(translator, tree, prefix=prefix), Origin.FORCED, at=len(prefix))


def open_branch(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Show a branch of the tree."""
    branch = _branch(data, tree)
    trace = _branch_trace(translator, tree, branch)
    return _reply(translator, tree, branch, trace, at=None)


def force_target(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Force-decode a translation that the visitor typed."""
    ids = translator.encode_target(field.read_text(data, "text", ""), tree.address.direction)
    return _open(translator, tree, _translate(translator, tree, target=ids), Origin.TARGET, at=0)


def search_beam(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Run a beam search and return its whole tree, pruned nodes included."""
    width, penalty = data.get("width"), field.read_number(data, "penalty", 0)
    Decoding(width, penalty)  # raises ValueError
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


def open_beam_node(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Open a node of the beam search: a branch completes its prefix greedily; the other tabs show the prefix alone."""
    prefix = field.read_integers(data, "ids")
    trace = _translate(translator, tree, prefix=prefix)
    reply = _open(translator, tree, trace, Origin.BEAM, at=len(prefix))
    if len(prefix) == len(trace.target_ids):
        return reply
    return Reply(reply.page, reply.tree, _translate(translator, tree, target=prefix))


def branch_details(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Return a branch's lenses and its distributions at every temperature."""
    branch = _branch(data, tree)
    details = temperatures.compute_details(translator, tree.address.source_ids, branch.ids, tree.address.interventions)
    tokens = {name: [translator.tokenizer.tokens(row) for row in lens.top_ids] for name, lens in details.lenses.items()}
    page = steps.details_payload(details, temperatures.TEMPERATURES, tokens)
    return Reply({"details": {"number": branch.number, **page}}, tree)


def attention_rows(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Return one step's attention rows, for a branch whose maps are too large to be sent whole."""
    branch, step = _branch(data, tree), _step(data, tree)
    trace = _branch_trace(translator, tree, branch)
    if step >= len(branch.ids):
        raise ValueError(f"Branch {branch.number} has {len(branch.ids)} steps, found step {step + 1}.")
    return Reply({"rows": {"number": branch.number, **steps.rows_payload(trace, step)}}, tree)


def compare_branches(translator: Translator, tree: Tree, data: dict) -> Reply:
    """Compare two branches."""
    first, second = _branch(data, tree, "first"), _branch(data, tree, "second")
    comparison = compare(*(_branch_trace(translator, tree, branch) for branch in (first, second)))
    return Reply({"comparison": steps.comparison_payload(first, second, comparison)}, tree)


ACTIONS: dict[str, Callable[[Translator, Tree, dict], Reply]] = {
    "force": force,
    "open": open_branch,
    "target": force_target,
    "beam": search_beam,
    "node": open_beam_node,
    "details": branch_details,
    "rows": attention_rows,
    "compare": compare_branches,
}


def _branch(data: dict, tree: Tree, name: str = "branch") -> Branch:
    return tree.find(field.read_integer(data, name))


def _step(data: dict, tree: Tree) -> int:
    step, length = field.read_integer(data, "step"), len(_branch(data, tree).ids)
    if not 0 <= step <= length:
        raise ValueError(f"A step is from 0 to {length}, found {step!r}.")
    return step


def _branch_trace(translator: Translator, tree: Tree, branch: Branch) -> TranslationTrace:
    trace = _translate(translator, tree, target=branch.ids)
    return trace if branch.decoding is None else replace(trace, decoding=branch.decoding)


def _translate(translator: Translator, tree: Tree, **ids: Sequence[int]) -> TranslationTrace:
    """Return the trace of the tree's sentence with a given `target`, or with a `prefix` that is completed greedily."""
    address = tree.address
    return translator.trace(
        address.text,
        address.direction,
        source_ids=address.source_ids,
        interventions=address.interventions,
        **ids,
    )


def _open(translator: Translator, tree: Tree, trace: TranslationTrace, origin: Origin, *, at: int) -> Reply:
    """Add a trace to a tree as a branch, and show the branch. A branch that is in the tree keeps its origin."""
    new_tree, branch = tree.add(trace, origin)
    trace = replace(trace, decoding=branch.decoding)
    return _reply(translator, new_tree, branch, trace, at=at)


def _reply(translator: Translator, tree: Tree, branch: Branch, trace: TranslationTrace, *, at: int | None) -> Reply:
    """Return the reply that shows a branch. at: the step to go to; None to stay at the page's step."""
    tokenizer = translator.tokenizer
    ids = [i for i in branch.ids if i not in tokenizer.special_ids]
    retokenized = tokenizer.encode(tokenizer.decode(ids))
    page = {
        "tree": steps.tree_payload(tree),
        "path": steps.path_payload(
            trace,
            branch,
            vocabulary=translator.config.num_target_tokens,
            respelled=None if retokenized == ids else tokenizer.tokens(retokenized),
            states=decoder_states(translator, trace),
        ),
        "at": at,
    }
    return Reply(page, tree, trace)
