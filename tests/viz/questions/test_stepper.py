"""The stepper's handlers, called as the page calls them: every action, refusals, and the state that the page keeps."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.gates import decoder_states
from attention_atlas.model.checks.oracle import torch_unit
from attention_atlas.model.nets.recurrent import Recurrent, RecurrentConfig
from attention_atlas.model.trace.address import Address
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.maps.branches import Origin, Tree
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.questions import steps as stepper
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire import steps
from attention_atlas.viz.wire.codecs import ROOT
from tests.conftest import make_translator

TEXT = "Der kleine Hund schläft unter dem Tisch."


@pytest.fixture(scope="module")
def trace(tiny_translator):
    return tiny_translator.translate(TEXT)


@pytest.fixture()
def act(tiny_translator, trace):
    """Return act(action, tree, **data) -> Reply, which starts a new tree if none is passed."""

    def run(action: str, tree: Tree | None = None, **data) -> stepper.Reply:
        tree = Tree.of(trace) if tree is None else tree
        reply = stepper.ACTIONS[action](tiny_translator, tree, data)
        json.dumps(reply.page)  # the reply must be plain JSON
        return reply

    return run


def test_forcing_a_candidate_adds_a_branch(act, trace, tiny_translator):
    token = int(trace.top_ids[2, 1])
    reply = act("force", branch=1, step=2, token=token)
    first, second = reply.tree.branches
    assert first.ids == trace.target_ids
    assert second.ids[:3] == (*trace.target_ids[:2], token) and second.origin == Origin.FORCED
    assert reply.page["at"] == 3 and reply.page["path"]["number"] == 2
    assert reply.opened.target_ids == second.ids, "the other tabs show the branch"
    assert len(reply.page["path"]["steps"]) == len(second.ids)
    assert reply.page["path"]["vocabulary"] == tiny_translator.config.num_target_tokens
    step = reply.page["path"]["steps"][2]
    assert step["id"] == token and step["rank"] == 2
    assert [c["id"] for c in step["candidates"]] == trace.top_ids[2].tolist()


def test_a_tree_is_restored_from_json(act, trace):
    tree = act("force", branch=1, step=2, token=int(trace.top_ids[2, 1])).tree
    assert Tree.from_plain(json.loads(json.dumps(tree.to_plain()))) == tree


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: None,
        lambda plain: [],
        lambda plain: {**plain, "address": {"text": 3}},
        lambda plain: {**plain, "address": {**plain["address"], "source_ids": None}},
        lambda plain: {**plain, "branches": []},
        lambda plain: {**plain, "branches": plain["branches"] * 30},
        lambda plain: {**plain, "branches": [3]},
        lambda plain: {**plain, "next_number": "2"},
        *(
            lambda plain, wrong=wrong: {**plain, "branches": [{**plain["branches"][0], **wrong}]}
            for wrong in (
                {"ids": [1]},
                {"ids": ["a"] * 9, "tokens": ["a"] * 9, "log_probabilities": [0.0] * 9},
                {"log_probabilities": None},
                {"origin": "elsewhere"},
                {"decoding": {"width": 0}},
                {"parent": -1},
                {"finished": 1},
                {"more": 1},
            )
        ),
    ],
)
def test_invalid_trees_are_refused(trace, change):
    with pytest.raises(ValueError):
        Tree.from_plain(change(json.loads(json.dumps(Tree.of(trace).to_plain()))))


def test_another_process_continues_with_the_tree_of_a_page(trace, tiny_checkpoint):
    state, expected = Tree.of(trace).to_plain(), None
    for _ in range(2):
        translators = Translators([Translator.load(tiny_checkpoint, device="cpu")])
        context = Context(translators, Traces(translators))
        fields = {"action": "force", "branch": 1, "step": 2, "token": int(trace.top_ids[2, 1]), "state": state}
        payload = json.loads(json.dumps(stepper.page_step(context, Address.of(trace), fields)))
        assert [branch["number"] for branch in payload["state"]["branches"]] == [1, 2]
        expected = expected or payload["opened"]
        assert payload["opened"] == expected and context.traces.find(Address.from_plain(expected)).decoding.given == 3


def test_long_maps_are_left_out_of_the_path(act, trace, monkeypatch):
    tree = Tree.of(trace)
    monkeypatch.setattr(steps, "MAX_BYTES", 10)
    path = act("force", tree, branch=1, step=2, token=int(trace.top_ids[2, 1])).page["path"]
    assert path["rows"] is None


def test_rows_of_long_maps_are_sent_in_batches(act, trace, monkeypatch):
    tree, (layers, heads, steps_, source) = Tree.of(trace), trace.cross.weights.shape
    a_step = layers * heads * (source + steps_) * 8 / 3
    for max_bytes, expected in ((0, 1), (3.5 * a_step, 3), (1e6, steps_ - 1)):
        monkeypatch.setattr(steps, "STEPS_BYTES", max_bytes)
        rows = act("rows", tree, branch=1, step=1).page["rows"]
        assert (rows["first"], rows["last"]) == (1, 1 + expected)
        assert set(rows["rows"]) == {"cross", "decoder_self"}
        for kind in steps.shown_kinds(trace):
            weights = trace.maps(kind).weights[:, :, 1 : 1 + expected]
            sent = ROOT.from_bytes(base64.b64decode(rows["rows"][kind.value]), weights.shape)
            np.testing.assert_allclose(sent, weights, atol=1e-4)


def test_forcing_text_by_ids(act, trace, tiny_translator):
    reply = act("force", branch=1, step=2, text=" red boat")
    ids = tiny_translator.tokenizer.encode("red boat")
    assert reply.tree.branches[1].ids[2 : 2 + len(ids)] == tuple(ids)
    joined = act("force", branch=1, step=2, text="red", joined=True).tree.branches[1]
    assert "".join(joined.tokens[2 : 2 + joined.given - 2]) == "red"


def test_ids_that_the_tokenizer_would_split_differently_show_both_spellings(act, tiny_translator):
    tokenizer = tiny_translator.tokenizer
    ids = [tokenizer.pieces.index("\u2581"), *tokenizer.encode_joined("the"), tokenizer.end_id]
    assert tokenizer.encode("the") != ids[:-1], "the ids must not be the tokenizer's own spelling"
    reply = act("node", ids=ids)
    assert [t["text"] for t in reply.page["path"]["respelled"]] == list(tokenizer.tokens(tokenizer.encode("the")))


def test_a_beam_node_opens_its_prefix_unfinished(act, trace):
    content = act("beam", width=3, penalty=0.0).page["beam"]
    survivors = [i for i, n in enumerate(content["nodes"]) if n["fate"] == "kept" and n["depth"] == 4]
    ids, at = [], survivors[-1]
    while at is not None:
        ids.insert(0, content["nodes"][at]["id"])
        at = content["nodes"][at]["parent"]
    reply = act("node", ids=ids)
    assert reply.opened.target_ids == tuple(ids) and not reply.opened.finished
    branch = reply.tree.branches[-1]
    assert branch.ids[:4] == tuple(ids) and len(branch.ids) > 4
    assert branch.origin == Origin.BEAM or branch.number == 1
    assert reply.page["at"] == 4
    assert reply.tree.holds(reply.opened), "the translation in the other tabs must not restart the stepper"


def test_a_typed_target_has_its_probabilities(act, tiny_translator):
    reply = act("target", text="A small dog.")
    branch = reply.tree.branches[-1]
    assert branch.text == "A small dog." and branch.finished and reply.page["at"] == 0
    expected = tiny_translator.log_probabilities([list(reply.tree.address.source_ids)], [list(branch.ids)])[0]
    np.testing.assert_allclose(branch.log_probabilities, expected, atol=1e-4)


def test_comparing_and_details(act, trace):
    tree = act("force", branch=1, step=1, token=int(trace.top_ids[1, 3])).tree
    content = act("compare", tree, first=1, second=2).page["comparison"]
    assert content["shared"] == 1 and np.array(content["divergences"]["cross"]).shape == (3, 4)
    same = act("compare", tree, first=2, second=2).page["comparison"]
    assert not any(np.array(same["divergences"][kind]).any() for kind in ("cross", "decoder_self"))
    details = act("details", tree, branch=2).page["details"]
    assert np.array(details["lenses"]["logit"]["ranks"]).shape == (4, len(tree.branches[1].ids))


def test_opening_a_branch_does_not_change_the_tree(act, trace):
    tree = act("force", branch=1, step=1, token=int(trace.top_ids[1, 3])).tree
    reply = act("open", tree, branch=1)
    assert reply.tree is tree and reply.page["at"] is None and reply.opened.target_ids == trace.target_ids


def test_another_sentence_starts_another_tree(trace, tiny_translator):
    other = tiny_translator.translate("Ein rotes Boot.")
    reply = stepper.start(Scene(other, made_by=tiny_translator), Tree.of(trace))
    assert [b.ids for b in reply.tree.branches] == [other.target_ids]
    assert reply.tree.address.source_ids == other.source_ids


@pytest.mark.parametrize(
    ("action", "data", "words"),
    [
        ("force", {"branch": 9, "step": 0, "token": 20}, "Branch 9"),
        ("force", {"branch": 1, "step": 99, "token": 20}, "found 99"),
        ("force", {"branch": 1, "step": 0, "token": 99999}, "no token 99999"),
        ("force", {"branch": 1, "step": 0, "text": "  "}, "no text"),
        ("target", {"text": ""}, "no text"),
        ("target", {"text": "boat " * 200}, "the limit is 63 tokens"),
        ("beam", {"width": 9, "penalty": 0}, "from 1 to 8, found 9"),
        ("beam", {"width": 2, "penalty": -1}, "from 0 to 5"),
        ("node", {"ids": [2, 2]}, "Nothing can follow"),
        ("rows", {"branch": 1, "step": -1}, "found -1"),
        ("compare", {"first": 1, "second": 2}, "Branch 2"),
    ],
)
def test_invalid_actions_are_refused(act, action, data, words):
    with pytest.raises(ValueError, match=words):
        act(action, **data)


@pytest.fixture(params=[True, False], ids=["attention", "one vector"])
def recurrent(request, tokenizer) -> Translator:
    torch.manual_seed(4)
    config = RecurrentConfig(
        len(tokenizer), d_model=16, attention=request.param, pad_id=tokenizer.pad_id, max_length=64
    )
    return make_translator(Recurrent(config).eval(), tokenizer, directions=("de-en",))


@torch.inference_mode()
def test_a_recurrent_decoders_states_are_torchs(recurrent):
    trace = recurrent.translate(TEXT)
    model, memory = recurrent.model, recurrent.model.encode(torch.tensor([trace.source_ids]))
    rows = model.token_rows(torch.tensor([trace.decoder_ids]))
    if trace.alignment is not None:
        contexts = torch.from_numpy(trace.alignment.weights[0, 0]) @ memory.memory[0]
        rows = torch.cat((rows, contexts[None]), dim=-1)
    expected, _ = torch_unit(model.writer)(rows, memory.start[None])
    states = decoder_states(recurrent, trace)
    np.testing.assert_allclose(states, torch.cat((memory.start, expected[0])), atol=1e-5)
    sent = stepper.start(Scene(trace, made_by=recurrent), Tree.of(trace)).page["path"]["states"]
    cells = np.frombuffer(base64.b64decode(sent["data"]), np.int8).reshape(-1, sent["cells"]) * sent["unit"]
    np.testing.assert_allclose(cells, states, atol=sent["unit"])
    assert sent["width"] == 16


def test_a_recurrent_network_is_stepped_through(recurrent):
    trace = recurrent.translate(TEXT)
    served = Translators([recurrent])
    context, address = Context(served, Traces(served)), Address.of(trace)

    def ask(action: str, **fields) -> dict:
        fields = {"action": action, "state": ask.state, **fields}
        answer = json.loads(json.dumps(stepper.page_step(context, address, fields)))
        ask.state = answer.get("state", ask.state)
        return answer

    ask.state = None
    path = ask("start")["path"]
    kinds = ["alignment"] if trace.alignment is not None else []
    assert list(path["rows"]) == kinds and path["steps"][0]["candidates"][0]["id"] == trace.top_ids[0, 0]
    token = int(trace.top_ids[1, 1])
    forced = ask("force", branch=1, step=1, token=token)
    assert forced["path"]["steps"][1]["id"] == token and forced["opened"]["target_ids"][1] == token
    compared = ask("compare", first=1, second=2)["comparison"]
    assert compared["steps"] == 0 or list(compared["divergences"]) == kinds
    assert ask("details", branch=2)["details"]["lenses"] == {}
    if kinds:
        assert list(ask("rows", branch=1, step=0)["rows"]["rows"]) == kinds
    assert ask("beam", width=2, penalty=0)["beam"]["hypotheses"]
    assert ask("target", text="A small dog.")["path"]["states"]["cells"] == 16
