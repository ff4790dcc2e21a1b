"""Tests of ablated heads: batches against single runs, gradients against differences, the smallest set."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case, open_case
from attention_atlas.model.analysis.why.experiments import heads, smallest
from attention_atlas.model.analysis.why.experiments.heads import AblationPasses, close_gates, list_heads
from attention_atlas.model.analysis.why.means import Means
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.nets.layer import Layer
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Interventions, Positions
from attention_atlas.model.trace.why.effects import Replacement
from attention_atlas.model.trace.why.evidence import Evidence
from tests.model.analysis.why.cases import CROSS, DECODER, ENCODER, SOURCE, TARGET, case_of

SHIFTED = Interventions(
    heads_off={(CROSS, 1, 1)}, target_positions=Positions(shift=2), edits={"decoder.1.cross.k": Scale(0.5)}
)
SOME = ((ENCODER, 0, 1), (ENCODER, 1, 3), (DECODER, 2, 0), (DECODER, 0, 2), (CROSS, 0, 0), (CROSS, 2, 3))


def constant_means(case: Case) -> Means:
    """Return random means that are the same at all positions."""
    random = np.random.default_rng(5)
    sizes = {kind: (layers, 4, 8) for kind, layers in case.model.num_layers.items()}
    outputs = {kind: random.normal(size=size).astype(np.float32) for kind, size in sizes.items()}
    row = random.normal(size=32).astype(np.float32)
    return Means("", 1, row, row, outputs, {kind: np.stack([x] * 3) for kind, x in outputs.items()})


@pytest.fixture()
def case(model) -> Case:
    case = case_of(model, SOURCE, TARGET)
    return replace(case, means=constant_means(case))


def metric(model, changes: Interventions) -> float:
    with torch.inference_mode():
        logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET]), interventions=changes).logits[0, -1].double()
    return float(logits[40] - logits[50])


def run_gated(case: Case, gates: dict, values: dict) -> torch.Tensor:
    sweep, batch = Sweep(case.interventions, gates, values), len(gates[CROSS])
    memory = case.encode(case.source_rows.expand(batch, -1, -1), changes=sweep)
    return case.decode(case.target_rows.expand(batch, -1, -1), memory, changes=sweep)


@pytest.mark.parametrize("cached_numbers", [1 << 23, 3000])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("changes", [Interventions(), SHIFTED], ids=["plain", "changed"])
def test_ablation_passes_share_layers_and_match_single_passes(case, monkeypatch, changes, replaced, cached_numbers):
    monkeypatch.setattr(heads, "MAX_CACHED_NUMBERS", cached_numbers)
    random, case = np.random.default_rng(1), replace(case, interventions=changes)
    every, values = list_heads(case), heads.mean_values(case).draws[0] if replaced else {}
    removed = [every[i] for i in random.permutation(len(every))[:9]]
    sets = [[], *([*removed[:4], head] for head in every), *(removed[:size] for size in range(10)), removed[:4]]

    def run_alone(heads: list) -> torch.Tensor:
        sweep = Sweep(changes, close_gates(case, [heads]), values)
        return case.model(case.source_ids, case.decoder_ids, interventions=sweep).hidden

    rows, forward = [], Layer.forward
    monkeypatch.setattr(Layer, "forward", lambda self, x, *a, **b: (rows.append(len(x)), forward(self, x, *a, **b))[1])
    with torch.inference_mode():
        expected = torch.cat([run_alone(heads) for heads in sets])
        many, last = AblationPasses(case, values), AblationPasses(case, values, last=1)
        rows.clear()
        torch.testing.assert_close(many.run(sets), expected, atol=1e-5, rtol=0)
        assert sum(rows) < 0.7 * len(sets) * 5  # of 5 layers
        rows.clear()
        torch.testing.assert_close(torch.cat(many.map(sets[5:9], lambda x: x)), expected[5:9], atol=1e-5, rtol=0)
        assert bool(rows) == (cached_numbers <= 3000)
        torch.testing.assert_close(last.run(sets), expected[:, -1:], atol=1e-5, rtol=0)


def test_zero_ablation_and_its_flips_equal_heads_off(case):
    effects = heads.measure_all_heads(case, heads.zero_values())
    assert effects.evidence is Evidence.MEASURED and effects.replacement is Replacement.ZERO
    plain = metric(case.model, Interventions())
    for kind, layer, head in SOME:
        alone = metric(case.model, Interventions(heads_off={(kind, layer, head)}))
        assert effects.effects[kind][layer, head] == pytest.approx(plain - alone, abs=1e-5)
    assert [values.shape for values in effects.effects.values()] == [(2, 4), (3, 4), (3, 4)]
    assert len(effects.ranked()) == 32 and effects.ranked()[0][1] == max(v.max() for v in effects.effects.values())
    with torch.inference_mode():
        plain = int(case.output.logits[0, -1].argmax())
        for kind, layer, head in list_heads(case):
            off = Interventions(heads_off={(kind, layer, head)})
            best = int(case.model(case.source_ids, case.decoder_ids, interventions=off).logits[0, -1].argmax())
            assert effects.flips[kind][layer, head] == (best != plain)


def test_mean_ablation_equals_a_bias(case):
    """Compare with a model whose output bias holds the head's mean output, with the head switched off."""
    effects = heads.measure_all_heads(case, heads.mean_values(case))
    plain = metric(case.model, Interventions())
    for kind, layer, head in SOME:
        model = copy.deepcopy(case.model)
        output = model.attention(kind, layer).output
        with torch.no_grad():
            mean = torch.from_numpy(case.means.heads[kind][layer, head])
            output.bias += output.weight[:, 8 * head : 8 * head + 8] @ mean
        alone = metric(model, Interventions(heads_off={(kind, layer, head)}))
        assert effects.effects[kind][layer, head] == pytest.approx(plain - alone, abs=1e-4)


@pytest.mark.parametrize("make_values", [lambda case: heads.zero_values(), heads.mean_values], ids=["zero", "mean"])
def test_estimate_heads_matches_central_differences(case, make_values):
    exact = replace(case, model=copy.deepcopy(case.model).double())
    values = make_values(exact)
    effects = heads.estimate_heads(exact, values)
    assert effects.evidence is Evidence.PROXY and effects.flips is None
    step = 1e-3
    for kind, layer, head in SOME:
        gates = close_gates(exact, [(), ()])
        gates[kind][0, layer, head], gates[kind][1, layer, head] = 1 + step, 1 - step
        with torch.inference_mode():
            up, down = exact.measure(run_gated(exact, gates, values.draws[0])).tolist()
        assert effects.effects[kind][layer, head] == pytest.approx((up - down) / (2 * step), rel=1e-2, abs=1e-6)
    assert all(parameter.grad is None for parameter in exact.model.parameters())


def test_resampling_the_same_sentence_changes_nothing(tiny_translator):
    trace = tiny_translator.translate("Der kleine Hund schläft.")
    case = open_case(tiny_translator, trace, make_question(tiny_translator, trace, len(trace.target_ids) - 1))
    same = heads.resample_values(case, tiny_translator, [trace.source_text], trace.direction)
    np.testing.assert_allclose(heads.ablate(case, same, [[head] for head in SOME])[0], 0.0, atol=1e-5)
    others = heads.resample_values(case, tiny_translator, ["Heute scheint die Sonne.", "Ein rotes Boot."], "de-en")
    effects = heads.measure_all_heads(case, others)
    assert effects.draws == 2 and any(np.abs(values).max() > 1e-4 for values in effects.effects.values())
    single = [heads.AblationValues(Replacement.RESAMPLE, (draw,)) for draw in others.draws]
    alone = [heads.measure_all_heads(case, values) for values in single]
    for kind, values in effects.effects.items():
        np.testing.assert_allclose(values, np.mean([draw.effects[kind] for draw in alone], 0), atol=1e-6)


def test_missing_means_or_sentences_raise(case, tiny_translator):
    with pytest.raises(ValueError, match="no averages"):
        heads.mean_values(replace(case, means=None))
    with pytest.raises(ValueError, match="no other sentence"):
        heads.resample_values(case, tiny_translator, [], "de-en")


@pytest.mark.parametrize("seed", [None, 1])
def test_smallest_set_keeps_the_translation_and_is_minimal(tiny_translator, seed):
    """Compare with translating again with heads switched off."""
    trace = tiny_translator.translate("Zwei Kinder bauen.")
    case = open_case(tiny_translator, trace, make_question(tiny_translator, trace))
    smallest_set = smallest.shrink_to_end(smallest.open_translation(case, tiny_translator, trace), {}, seed=seed)
    every = frozenset(list_heads(case))
    assert smallest_set.verified and smallest_set.kept < every and smallest_set.total == 32

    def translate_with(kept):
        off = Interventions(heads_off=every - kept)
        return tiny_translator.translate(trace.source_text, trace.direction, interventions=off).target_ids

    assert translate_with(smallest_set.kept) == trace.target_ids
    for head in smallest_set.kept:
        assert translate_with(smallest_set.kept - {head}) != trace.target_ids


def test_smallest_leads_match_the_whole_vocabulary(tiny_translator):
    trace = tiny_translator.translate("Zwei Kinder bauen.")
    case = open_case(tiny_translator, trace, make_question(tiny_translator, trace))
    translation, random = smallest.open_translation(case, tiny_translator, trace), np.random.default_rng(0)
    every = list_heads(case)
    sets = [[head for head in every if random.random() < share] for share in np.linspace(0, 1, 24)]
    exact = translation.measure_leads(sets, {}).min(-1)
    quick = translation.smallest_leads(sets, AblationPasses(translation.case, {}))
    stays = exact > 0
    assert 0 < stays.sum() < len(sets)
    np.testing.assert_allclose(quick[stays], exact[stays], atol=1e-5)
    assert (quick[~stays] <= 0).all() and (quick >= exact - 1e-5).all()


def test_a_forced_translation_has_no_smallest_set(tiny_translator):
    trace = tiny_translator.trace("Hund", "de-en", target=tiny_translator.tokenizer.encode("boat"))
    case = open_case(tiny_translator, trace, make_question(tiny_translator, trace))
    with pytest.raises(ValueError, match="writes a different translation"):
        smallest.shrink_to_end(smallest.open_translation(case, tiny_translator, trace), {})
