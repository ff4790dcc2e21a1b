"""Heads switched off: batches against single runs, gradients against differences, sets as small as they say."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case, open_case
from attention_atlas.model.analysis.why.experiments import heads, smallest
from attention_atlas.model.analysis.why.passes import ablations
from attention_atlas.model.analysis.why.passes.ablations import Ablations, all_heads, closed
from attention_atlas.model.analysis.why.pinned import ask
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Interventions, Positions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.attribution import Columns, Question
from attention_atlas.model.trace.why.effects import Replacement
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.why.means import Means
from tests.conftest import build_tiny_model

ENCODER, DECODER, CROSS = AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF, AttentionKind.CROSS
SOURCE, TARGET = [4, 20, 31, 45, 20, 2], [1, 30, 41, 52]
SHIFTED = Interventions(
    heads_off=frozenset({(CROSS, 1, 1)}), target_positions=Positions(shift=2), edits={"decoder.1.cross.k": Scale(0.5)}
)
NOWHERE = Columns((), (), (), ())
SOME = ((ENCODER, 0, 1), (ENCODER, 1, 3), (DECODER, 2, 0), (DECODER, 0, 2), (CROSS, 0, 0), (CROSS, 2, 3))


def constant_means(case: Case) -> Means:
    """The same for all positions, drawn at random."""
    random = np.random.default_rng(5)
    said = {
        kind: random.normal(size=(layers, 4, 8)).astype(np.float32) for kind, layers in case.model.num_layers.items()
    }
    row = random.normal(size=32).astype(np.float32)
    return Means("", 1, row, row, said, {kind: np.stack([x] * 3) for kind, x in said.items()})


@pytest.fixture(params=[True, False], ids=["pre-norm", "post-norm"])
def case(request, tokenizer) -> Case:
    model = build_tiny_model(tokenizer, norm_first=request.param)
    found = Case(model, Question(3, 40, "▁t", 50, "▁u"), torch.tensor([SOURCE]), torch.tensor([TARGET]), NOWHERE)
    return replace(found, means=constant_means(found))


def metric(model, changes: Interventions) -> float:
    with torch.inference_mode():
        logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET]), interventions=changes).logits[0, -1].double()
    return float(logits[40] - logits[50])


def test_gates_of_one_change_no_bit(case):
    gates = closed(case, [()])
    with torch.inference_mode():
        plain = case.decode(case.target_rows, case.encode(case.source_rows))
        assert torch.equal(heads.gated(case, gates, {}, encode=True), plain)
    np.testing.assert_array_equal(heads.ablate(case, heads.silence(), [()])[0], [0.0])


@pytest.mark.parametrize("room", [1 << 23, 3000])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("changes", [Interventions(), SHIFTED], ids=["plain", "changed"])
def test_what_sets_of_heads_share_is_run_once_and_each_is_as_if_alone(case, monkeypatch, *, changes, replaced, room):
    monkeypatch.setattr(ablations, "ROOM", room)
    random, case = np.random.default_rng(1), replace(case, interventions=changes)
    every, instead = all_heads(case), heads.mean_voices(case).draws[0] if replaced else {}
    gone = [every[i] for i in random.permutation(len(every))[:9]]
    sets = [[], *([*gone[:4], head] for head in every), *(gone[:size] for size in range(10)), gone[:4]]

    def alone(heads: list) -> torch.Tensor:
        sweep = Sweep(changes, closed(case, [heads]), instead)
        return case.model(case.source_ids, case.decoder_ids, interventions=sweep).hidden

    rows, forward = [], Layer.forward
    monkeypatch.setattr(Layer, "forward", lambda self, x, *a, **b: (rows.append(len(x)), forward(self, x, *a, **b))[1])
    with torch.inference_mode():
        expected = torch.cat([alone(one) for one in sets])
        many, last = Ablations(case, instead), Ablations(case, instead, last=1)
        rows.clear()
        torch.testing.assert_close(many.without(sets), expected, atol=1e-5, rtol=0)
        assert sum(rows) < 0.7 * len(sets) * 5  # of 5 layers
        rows.clear()
        torch.testing.assert_close(many.without(sets[5:9]), expected[5:9], atol=1e-5, rtol=0)
        assert (rows == [4]) == (room > 3000)  # but for the last layer all was there
        torch.testing.assert_close(last.without(sets), expected[:, -1:], atol=1e-5, rtol=0)
    assert sorted(chain(*many.dealt(sets))) == list(range(len(sets)))


def test_silence_is_each_head_switched_off_alone(case):
    found = heads.measured(case, heads.silence())
    assert found.evidence is Evidence.MEASURED and found.replacement is Replacement.ZERO
    plain = metric(case.model, Interventions())
    for kind, layer, head in SOME:
        alone = metric(case.model, Interventions(heads_off=frozenset({(kind, layer, head)})))
        assert found.effects[kind][layer, head] == pytest.approx(plain - alone, abs=1e-5)
    assert [values.shape for values in found.effects.values()] == [(2, 4), (3, 4), (3, 4)]
    assert len(found.ranked()) == 32 and found.ranked()[0][1] == max(v.max() for v in found.effects.values())


def test_a_mean_is_a_bias_in_the_place_of_the_head(case):
    """Against a model whose output bias says what the head says on average, with the head switched off."""
    found = heads.measured(case, heads.mean_voices(case))
    plain = metric(case.model, Interventions())
    for kind, layer, head in SOME:
        model = copy.deepcopy(case.model)
        output = model.attention(kind, layer).output
        with torch.no_grad():
            mean = torch.from_numpy(case.means.heads[kind][layer, head])
            output.bias += output.weight[:, 8 * head : 8 * head + 8] @ mean
        alone = metric(model, Interventions(heads_off=frozenset({(kind, layer, head)})))
        assert found.effects[kind][layer, head] == pytest.approx(plain - alone, abs=1e-4)


def test_flips_are_seen(case):
    found = heads.measured(case, heads.silence())
    with torch.inference_mode():
        plain = int(case.output.logits[0, -1].argmax())
        for kind, layer, head in all_heads(case):
            off = Interventions(heads_off=frozenset({(kind, layer, head)}))
            best = int(case.model(case.source_ids, case.decoder_ids, interventions=off).logits[0, -1].argmax())
            assert found.flips[kind][layer, head] == (best != plain)


@pytest.mark.parametrize("voices", [lambda case: heads.silence(), heads.mean_voices], ids=["zero", "mean"])
def test_the_gates_gradient_is_the_slope_of_the_metric(case, voices):
    """Against central differences in float64."""
    exact = replace(case, model=copy.deepcopy(case.model).double())
    given = voices(exact)
    found = heads.estimated(exact, given)
    assert found.evidence is Evidence.PROXY and found.flips is None
    step = 1e-3
    for kind, layer, head in SOME:
        gates = closed(exact, [(), ()])
        gates[kind][0, layer, head], gates[kind][1, layer, head] = 1 + step, 1 - step
        with torch.inference_mode():
            up, down = exact.measure(heads.gated(exact, gates, given.draws[0], encode=True)).tolist()
        assert found.effects[kind][layer, head] == pytest.approx((up - down) / (2 * step), rel=1e-2, abs=1e-6)
    assert all(parameter.grad is None for parameter in exact.model.parameters())


def test_what_a_head_says_of_this_very_sentence_changes_nothing(tiny_translator):
    trace = tiny_translator.translate("Der kleine Hund schläft.")
    case = open_case(tiny_translator, trace, ask(tiny_translator, trace, len(trace.target_ids) - 1))
    own = heads.other_voices(case, tiny_translator, [trace.source_text], trace.direction)
    np.testing.assert_allclose(heads.ablate(case, own, [[head] for head in SOME])[0], 0.0, atol=1e-5)
    others = heads.other_voices(case, tiny_translator, ["Heute scheint die Sonne.", "Ein rotes Boot."], "de-en")
    found = heads.measured(case, others)
    assert found.draws == 2 and any(np.abs(values).max() > 1e-4 for values in found.effects.values())
    alone = [heads.measured(case, heads.Voices(Replacement.RESAMPLE, (draw,))) for draw in others.draws]
    for kind, values in found.effects.items():
        np.testing.assert_allclose(values, np.mean([one.effects[kind] for one in alone], 0), atol=1e-6)


def test_without_means_or_sentences_it_is_said(case, tiny_translator):
    with pytest.raises(ValueError, match="no averages"):
        heads.mean_voices(replace(case, means=None))
    with pytest.raises(ValueError, match="no other sentence"):
        heads.other_voices(case, tiny_translator, [], "de-en")


@pytest.mark.parametrize("seed", [None, 1])
def test_the_smallest_set_keeps_the_translation_and_none_of_it_can_go(tiny_translator, seed):
    """Against translating again with heads switched off."""
    trace = tiny_translator.translate("Zwei Kinder bauen.")
    case = open_case(tiny_translator, trace, ask(tiny_translator, trace))
    found = smallest.smallest_set(smallest.whole(case, tiny_translator, trace), {}, seed=seed)
    every = frozenset(all_heads(case))
    assert found.verified and found.kept < every and found.total == 32

    def written(kept):
        off = Interventions(heads_off=every - kept)
        return tiny_translator.translate(trace.source_text, trace.direction, interventions=off).target_ids

    assert written(found.kept) == trace.target_ids
    for head in found.kept:
        assert written(found.kept - {head}) != trace.target_ids


def test_what_a_few_rivals_rule_out_the_whole_vocabulary_rules_out(tiny_translator):
    trace = tiny_translator.translate("Zwei Kinder bauen.")
    case = open_case(tiny_translator, trace, ask(tiny_translator, trace))
    found, random = smallest.whole(case, tiny_translator, trace), np.random.default_rng(0)
    every = all_heads(case)
    sets = [[head for head in every if random.random() < share] for share in np.linspace(0, 1, 24)]
    exact, quick = found.margins(sets, {}).min(-1), found.least_leads(sets, {})
    stays = exact > 0
    assert 0 < stays.sum() < len(sets)
    np.testing.assert_allclose(quick[stays], exact[stays], atol=1e-5)
    assert (quick[~stays] <= 0).all() and (quick >= exact - 1e-5).all()


def test_a_forced_translation_has_no_smallest_set(tiny_translator):
    trace = tiny_translator.trace("Hund", "de-en", target=tiny_translator.tokenizer.encode("boat"))
    case = open_case(tiny_translator, trace, ask(tiny_translator, trace))
    with pytest.raises(ValueError, match="writes another"):
        smallest.smallest_set(smallest.whole(case, tiny_translator, trace), {})
