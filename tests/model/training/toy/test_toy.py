"""Toys in training: what each switch teaches, over seeds; bounds, frames, and that nothing else moves a run."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.analysis.positions import codes
from attention_atlas.model.analysis.positions.codes import SCHEMES, of_table
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.text.words import WordTokenizer
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy import corpora, frames, measure, mistakes
from attention_atlas.model.training.toy.frames import DECODED, Frame
from attention_atlas.model.training.toy.run import ToyRun
from attention_atlas.model.training.toy.settings import ToySettings
from tests import ROOT

SMALL = {"layers": 1, "d_model": 32, "heads": 2}
ORDER, SENTENCES = (corpora.read(corpora.CORPORA[name].text) for name in ("order", "sentences"))
LONG, ENDURE = pytest.mark.long, pytest.mark.endure
EVERY_SEED = pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=LONG if seed == 1 else (LONG, ENDURE)) for seed in range(1, 6)]
)


def built(pairs, **changes) -> ToyRun:
    return ToyRun(pairs, ToySettings(**{**SMALL, **changes}))


def trained(pairs, updates: int, **changes) -> ToyRun:
    run = built(pairs, **changes)
    run.turn()
    run.turn(updates=updates)
    return run


def right(run: ToyRun) -> int:
    return sum(run.tokenizer.decode(ids) == target for ids, (_, target) in zip(run.frames[-1].outputs, run.pairs))


@EVERY_SEED
def test_without_source_positions_the_order_corpus_has_a_floor_and_with_them_none(seed):
    blind, seeing = (trained(ORDER, 150, positions=code, seed=seed) for code in ("none", "interleaved"))
    assert blind.floor > 0.1 and seeing.floor == 0
    assert all(frame.loss >= blind.floor for frame in blind.frames) and blind.frames[-1].loss < 1.5 * blind.floor
    assert seeing.frames[-1].loss < blind.floor / 3 and right(seeing) == len(ORDER) and right(blind) <= len(ORDER) / 2


@EVERY_SEED
def test_positions_by_distance_tell_the_order_too(seed):
    seeing = trained(ORDER, 300, positions="relative", seed=seed)
    assert seeing.floor == 0 and seeing.frames[-1].loss < 0.03 and right(seeing) == len(ORDER)


@EVERY_SEED
def test_without_the_mask_the_loss_is_low_and_decoding_wrong(seed):
    wide = {"layers": 2, "d_model": 64, "heads": 4}
    cheat, honest = (trained(ORDER, 100, look_ahead_mask=mask, seed=seed, **wide) for mask in (False, True))
    assert cheat.frames[-1].loss < 0.1 and right(cheat) < len(ORDER) / 2 and right(honest) == len(ORDER)
    taught, decoded = (cheat.frames[-1].maps[0][kind] for kind in ("decoder_self", DECODED))
    above = np.triu(np.ones(taught.shape[2:], bool), k=1)
    assert taught[..., above].max() > 50, "no head looks ahead"  # of 255
    assert not decoded[..., np.triu(np.ones(decoded.shape[2:], bool), k=1)].any()
    assert DECODED not in honest.frames[-1].maps[0]


@EVERY_SEED
def test_without_residual_connections_two_layers_hardly_learn(seed):
    bare, whole = (trained(SENTENCES, 100, layers=2, residual=residual, seed=seed) for residual in (False, True))
    assert bare.frames[-1].loss > 1 > 0.1 > whole.frames[-1].loss


@EVERY_SEED
def test_the_recurrent_networks_learn_and_only_one_has_maps(seed):
    looking, plain = (trained(SENTENCES, 120, network=name, seed=seed) for name in ("gru", "gru-plain"))
    assert right(looking) == len(SENTENCES)
    assert set(looking.frames[-1].maps[0]) == {"alignment"} and not plain.frames[-1].maps[0]
    with pytest.raises(ValueError, match="no attention"):
        plain.opened()


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), [("opinions", "encoder_self"), ("next", "decoder_self")])
def test_one_stack_alone_learns_its_corpus_and_has_its_maps(name, kind):
    corpus = corpora.CORPORA[name]
    run = trained(corpora.read(corpus.text), 300, **corpus.settings)
    frame, prefixes = run.frames[-1], run.task.prefixes
    outputs = [run.tokenizer.decode(ids[len(prefix) :]) for ids, prefix in zip(frame.outputs, prefixes)]
    assert outputs == [target for _, target in run.pairs]
    assert all(set(maps) == {kind} for maps in frame.maps)
    assert frame.loss == pytest.approx(run.floor, abs=0.05) and (run.floor > 0) == (name == "next")
    with pytest.raises(ValueError, match="does not translate"):
        run.opened()


def test_a_classifier_guesses_among_its_classes_and_reads_one_word_each():
    run = built((("a b", "x"), ("b a", "y"), ("c", "z")), network="encoder", label_smoothing=0.2)
    (frame,) = run.turn().frames
    assert run.task.guess == pytest.approx(math.log(3)) and abs(frame.loss - math.log(3)) < 1
    assert all(len(ids) == 1 and ids[0] >= 3 for ids in frame.outputs)
    point = run.turn(updates=1).points[0]
    assert point.loss == point.minimised, "it has no smoothing"
    with pytest.raises(ValueError, match="Line 2: a class is one word"):
        built((("a", "x"), ("b", "x y")), network="encoder")
    blind = built((("a b", "x"), ("b a", "y")), network="encoder", positions="none")
    assert blind.floor == pytest.approx(math.log(2))


def test_without_its_mask_a_decoder_alone_has_the_maps_of_decoding_too():
    run = trained((("a", "b c"), ("b", "c a")), 5, network="decoder", look_ahead_mask=False)
    maps = run.frames[-1].maps[0]
    assert set(maps) == {"decoder_self", DECODED} and maps[DECODED].shape[2] == len(run.frames[-1].outputs[0])


SWITCHES = [name for name in measure.SWITCHES if not name.endswith("default")]
AGAIN = [  # each takes a minute: some of them in make test-all, the rest in make endure
    pytest.param(name, marks=ENDURE if i % 32 else LONG) for i, name in enumerate(SWITCHES)
]


@pytest.mark.parametrize("switch", AGAIN)
def test_shipped_measurements_are_reproduced(switch):
    """At the last number of updates: whether a switch makes a reliable difference is what the shipped file says, unless
    what was measured lies at the edge of what is one."""
    at, shipped = max(measure.UPDATES), measure.read()
    default = shipped[measure.default_of(switch)][at]
    measured = measure.interval(switch, at)
    assert measured == pytest.approx(shipped[switch][at], rel=0.25, abs=2e-4)
    assert measure.is_reliable(default, measured) == measure.is_reliable(default, shipped[switch][at])


@LONG
@pytest.mark.parametrize(("name", "updates"), [("beer", 30), ("beer_adam", 15)])
def test_the_courses_settings_end_in_the_target_sentence(name, updates):
    corpus = corpora.CORPORA[name]
    run = ToyRun(corpora.read(corpus.text), ToySettings(**corpus.settings))
    assert 44e6 < sum(parameter.numel() for parameter in run.model.parameters()) < 45e6
    run.turn()
    run.turn(updates=updates)
    assert run.tokenizer.decode(run.frames[-1].outputs[0]) == run.pairs[0][1] == "i want a beer ."
    assert run.size < 700e6 and all(parameter.grad is None for parameter in run.model.parameters())


def test_the_courses_learning_rates_are_theirs():
    beer, adam = (ToySettings(**corpora.CORPORA[name].settings) for name in ("beer", "beer_adam"))
    assert beer.learning_rate_at(1) == beer.learning_rate_at(99) == pytest.approx(1e-3) and beer.momentum == 0.99
    run = built(ORDER, optimizer="adam", rate=adam.rate, warmup=adam.warmup)
    assert run.settings.learning_rate_at(1) == run.settings.learning_rate_at(99) == pytest.approx(1e-4)
    assert run.optimizer.defaults["betas"] == (0.9, 0.98) and run.optimizer.defaults["eps"] == 1e-9


def test_heads_differ_by_more_than_a_standard_deviation_over_ten_seeds():
    shipped = measure.read_heads()
    assert set(shipped) == set(measure.HEADS) and len(measure.HEADS_SEEDS) == 10
    (one, eight), at = (shipped[1], shipped[8]), max(measure.HEADS_UPDATES)
    assert all(len(losses) == 10 for losses in one.values())
    gap = np.mean(one[at]) - np.mean(eight[at])
    assert gap > 2 * max(np.std(one[at], ddof=1), np.std(eight[at], ddof=1))


@LONG
def test_one_head_learns_what_needs_four_looks_more_slowly_than_eight():
    one, eight = ([measure.losses_by_heads(heads, seed, (150,))[0] for seed in (1, 2, 3)] for heads in (1, 8))
    assert min(one) > 1.2 * max(eight)


def test_every_switch_was_measured_with_five_seeds():
    assert len(measure.SEEDS) >= 5 and measure.read().keys() == measure.SWITCHES.keys()


def test_each_switch_builds_what_it_says():
    config = built(ORDER, decoder_layers=3, d_ff=4, attention_dropout=0.1, feedforward_dropout=0.2).model.config
    assert (config.num_encoder_layers, config.num_decoder_layers, config.d_feedforward) == (1, 3, 128)
    assert (config.attention_dropout, config.feedforward_dropout) == (0.1, 0.2)
    names = [name for name, _ in built(ORDER, biases=False).model.named_parameters() if "norm" not in name]
    assert not [name for name in names if name.endswith("bias")]
    assert built(ORDER, scale_embedding=False).model.scale == 1 and built(ORDER).model.scale == 32**0.5
    own, torchs = (built(ORDER, start=start).model.embedding.weight.std().item() for start in ("xavier", "torch"))
    assert own == pytest.approx(32**-0.5, rel=0.1) and torchs == pytest.approx(1, rel=0.1)
    run = built(ORDER, separate=True)
    sides = [{word for pair in ORDER for word in pair[side].split()} for side in (0, 1)]
    assert run.tokenizer.sizes == (len(sides[0]) + 3, len(sides[1]) + 3)
    assert run.model.embedding.weight.shape[0] == run.tokenizer.sizes[0]
    assert run.model.output_matrix.shape[0] == run.tokenizer.sizes[1]
    untied = built(ORDER, separate=True, own_output=True).model
    assert len({untied.embedding.weight, untied.target_matrix, untied.output_matrix}) == 3
    source, target = ORDER[0]
    ids = run.tokenizer.encode_source(source, "target")
    assert run.tokenizer.decode_source(ids) == source and run.tokenizer.decode(run.tokenizer.encode(target)) == target


def test_learning_rates_follow_the_settings():
    rates = {update: ToySettings(rate=0.3).learning_rate_at(update) for update in (1, 30, 120)}
    assert rates == pytest.approx({1: 0.3 * 3e-3 / 30, 30: 0.3 * 3e-3, 120: 0.3 * 3e-3 / 2})
    assert ToySettings(warmup=False).learning_rate_at(1) == ToySettings(warmup=False).learning_rate_at(99) == 3e-3
    assert ToySettings(optimizer="sgd", rate=3).learning_rate_at(7) == pytest.approx(0.3)
    assert built(ORDER, optimizer="sgd", momentum=0.5).optimizer.defaults["momentum"] == 0.5


def test_layer_norm_removes_a_count_added_to_every_dimension():
    settings = {"positions": "none"}, {"positions": "count"}, {"positions": "count", "norm_first": False}
    plain, counted, post = (trained(ORDER, 60, **changes) for changes in settings)
    assert [p.loss for p in counted.points] == pytest.approx([p.loss for p in plain.points], rel=1e-3)
    assert counted.floor == plain.floor > 0 and post.floor == 0


@pytest.mark.parametrize("code", ["count", "normalised", "binary", "sine", "tutorial"])
def test_position_codes_equal_their_schemes_in_training_and_decoding(code):
    run = trained(ORDER, 30, positions=code)
    table = run.model.source_positions(0, 8).flatten(0, -2)
    scheme = SCHEMES[("count", "normalised", "binary", "sine", "tutorial").index(code)]
    rows = scheme.at(5, 8, 32)
    assert np.allclose(table[5].numpy(), np.broadcast_to(rows, 32), atol=1e-6)
    trace = run.opened().translate(ORDER[0][0])
    written = run.frames[-1].outputs[0]
    assert all(one == other for one, other in zip(trace.target_ids, written))


def test_a_normalised_count_is_divided_by_each_sources_own_length():
    run = trained(ORDER, 30, positions="normalised")
    model, (long, short) = run.model.eval(), (torch.tensor([[5, 6, 7, 8, 3]]), torch.tensor([[5, 6, 3]]))
    padded = torch.nn.functional.pad(short, (0, 2), value=model.config.pad_id)
    target = torch.tensor([[run.tokenizer.begin_id, 5, 6, 7]])
    with torch.inference_mode():
        both = model(torch.cat((long, padded)), target.expand(2, -1)).logits
        for row, source in enumerate((long, short)):
            assert torch.allclose(both[row], model(source, target).logits[0], atol=1e-5)
    added = model.target_positions(2, 2, lengths=torch.tensor([5, 3]))  # a decoder divides by the source's length
    assert added[:, :, 0].tolist() == [[0.5, 0.75], [1.0, 1.5]]
    own = of_table("own", lambda n: model.source_positions(0, n).flatten(0, -2), rows=None)
    judged, expected = (codes.judge(scheme, 16, 32) for scheme in (own, SCHEMES[1]))
    assert [verdict.passed for verdict in judged] == [verdict.passed for verdict in expected]


def test_the_first_turn_takes_a_frame_with_the_loss_of_a_guess():
    run = built(SENTENCES)
    turn = run.turn()
    assert run.update == 0 and not turn.points and turn.frames[0].update == 0
    assert abs(turn.frames[0].loss - math.log(len(run.tokenizer))) < 1.5
    torch.manual_seed(0)
    source = run.model.eval().encode(run.corpus.source)
    logits = run.model.project(run.model.decode(run.corpus.inputs, source)[0])
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), run.corpus.outputs.flatten(), ignore_index=0)
    assert turn.frames[0].loss == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("start", ["xavier", "torch"])
def test_with_a_separate_output_matrix_every_initial_loss_is_that_of_a_guess(start):
    run = built(SENTENCES, start=start, own_output=True)
    (frame,) = run.turn().frames
    assert abs(frame.loss - math.log(len(run.tokenizer))) < 1.0
    assert run.model.output_matrix is not run.model.target_matrix


def test_a_run_depends_on_its_seed_only():
    options = {"dropout": 0.2, "label_smoothing": 0.1}
    alone = trained(SENTENCES, 12, **options)
    beside, other = built(SENTENCES, **options), built(ORDER, seed=9)
    before = torch.get_rng_state()
    for _ in range(5):
        beside.turn(updates=3), other.turn(updates=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert [p.minimised for p in beside.points] == [p.minimised for p in alone.points]
    assert np.array_equal(beside.frames[1].maps[2]["cross"], alone.frames[1].maps[2]["cross"])
    assert trained(SENTENCES, 3, seed=2).points[2].loss != alone.points[2].loss


@pytest.mark.long
def test_a_recipe_gives_the_same_weights_in_any_process():
    recipe = ToyRecipe.of(corpora.CORPORA["order"].text, {"dropout": 0.1}, 25)
    run = ToyRun.begin(recipe)
    while run.update < recipe.updates:
        run.turn(updates=7 if run.update else 4)
    program = f"""if True:
        import torch
        from attention_atlas.model.trace.recipe import ToyRecipe
        from attention_atlas.model.training.toy.toys import Toys
        recipe = ToyRecipe.from_plain({recipe.to_plain()!r})
        for threads in (1, 2):
            toys = Toys()
            torch.set_num_threads(threads)
            list(toys.train(recipe))
            assert torch.get_num_threads() == threads
            print(toys.find(recipe).digest)"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [run.opened().digest] * 2 and run.opened().recipe == run.recipe


def test_a_copy_continues_like_the_run_without_changing_it():
    run = trained(SENTENCES, 6, dropout=0.2)
    copy = run.copy()
    copy.turn(updates=4)
    assert run.update == 6 and copy.update == 10 and len(run.points) == 6
    run.turn(updates=4)
    assert run.opened().digest == copy.opened().digest and run.frames[-1].update == copy.frames[-1].update == 10


def test_frames_equal_the_models_outputs_and_maps():
    run = trained(SENTENCES, 10)
    frame, opened = run.frames[-1], run.opened()
    for number, (source, target) in enumerate(SENTENCES):
        trace, written = opened.translate(source), frame.outputs[number]
        reference = [*opened.tokenizer.encode(target), opened.tokenizer.end_id]
        assert trace.target_ids[: len(written)] == written and trace.digest == opened.digest
        assert written[-1] == opened.tokenizer.end_id or len(written) == 2 * len(reference)  # a frame stops there
        output = opened.inspect(trace.source_ids, reference)
        for kind in output.kinds:
            weights = output.weights(kind)[:, 0].numpy()
            np.testing.assert_allclose(frame.maps[number][kind.value] / 255, weights, atol=0.5 / 255 + 1e-5)
    run.turn(updates=5)
    target_ids = opened.translate(SENTENCES[0][0]).target_ids[: len(frame.outputs[0])]
    assert target_ids == frame.outputs[0], "further training changed an opened translator"
    with pytest.raises(ValueError, match=r"knows only the \d+ words it was trained on; 'bier' is not"):
        opened.translate("ich trinke bier")


def test_points_hold_the_minimised_and_the_comparable_loss():
    settings = {}, {"count_padding": True}, {"label_smoothing": 0.2}
    plain, padded, smoothed = (trained(SENTENCES, 1, **changes).points[0] for changes in settings)
    assert plain.loss == plain.minimised == padded.loss == smoothed.loss
    assert padded.minimised != plain.loss and smoothed.minimised != plain.loss and plain.gradient > 0


def test_the_mistaken_norms_follow_their_formulas():
    x = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(0)) * 2 + 1
    norms = {norm: make(16, 1e-5) for norm, make in mistakes.NORMS.items()}
    torch.testing.assert_close(norms["new"](x), F.layer_norm(x, (16,)))
    torch.testing.assert_close(norms["batch"](x), F.batch_norm(x.flatten(0, 1), None, None, training=True).view_as(x))
    rows = x.double().numpy()
    expected = (rows - rows.mean(-1, keepdims=True)) / (rows.std(-1, ddof=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(norms["outside"](x).detach().numpy(), expected, atol=1e-5)
    names = {norm: {name for name, _ in module.named_parameters()} for norm, module in norms.items()}
    assert names["new"] == set() and names["batch"] == names["outside"] == {"weight", "bias"}


@pytest.mark.parametrize("changes", [{"norm": "new"}, {"norm": "batch"}, {"norm": "outside"}, {"hides_itself": True}])
@pytest.mark.parametrize("norm_first", [True, False])
def test_cached_decoding_makes_the_same_mistake_as_the_full_pass(changes, norm_first):
    run = trained(SENTENCES, 10, norm_first=norm_first, positions="relative", **changes)
    model, batch = run.model.eval(), run.corpus
    plain = trained(SENTENCES, 10, norm_first=norm_first, positions="relative")
    assert abs(run.points[-1].loss - plain.points[-1].loss) > 1e-6, "it changes nothing"
    with torch.no_grad():
        source = model.encode(batch.source)
        logits = model.project(model.decode(batch.inputs, source)[0])
        decoder = StepDecoder(model, source, batch.inputs[:, :1])
        for step in range(1, batch.inputs.shape[1]):
            torch.testing.assert_close(decoder.logits, logits[:, step - 1], atol=1e-4, rtol=1e-4)
            decoder.append(batch.inputs[:, step])
    with pytest.raises(ValueError, match="mistake in its layers"):
        run.opened()


def test_a_hidden_diagonal_is_the_triangle_of_triu_with_k_0():
    maps = trained(SENTENCES, 1, hides_itself=True).frames[-1].maps[0]["decoder_self"]
    hidden = torch.triu(torch.ones(maps.shape[2:]), diagonal=0).bool().numpy()
    hidden[0, 0] = False  # a row without any open cell
    assert not maps[..., hidden].any() and (maps[..., ~hidden] > 0).all()


def test_a_second_softmax_bounds_the_minimised_loss_from_below():
    run = trained(SENTENCES, 60, softmax_twice=True)
    size = len(run.tokenizer)
    least = math.log(size - 1 + math.e) - 1  # of probabilities 1 for the target and 0 for all others
    assert all(least < point.minimised < least + 1 for point in run.points)
    assert run.frames[-1].loss > 3 * trained(SENTENCES, 60).frames[-1].loss
    assert run.opened().translate(SENTENCES[0][0]).finished is not None


def test_shipped_measurements_show_what_the_page_says():
    losses = measure.read()

    def is_lower(first, second, update):
        return losses[first][update][1] < losses[second][update][0]

    assert is_lower("scale_scores", "default", 20), "at d_k 16, learning is faster without the division"
    assert is_lower("wide default", "wide scale_scores", 50), "at d_k 128 it is slower"
    assert is_lower("post positions_count", "post positions_none", 100), "a count tells the order with post-norm"
    assert not is_lower("order positions_count", "order positions_none", 100), "and not with pre-norm"
    assert is_lower("default", "softmax_twice", 100) and is_lower("default", "norm_new", 100)


def test_turns_are_bounded_and_so_are_runs():
    pairs = corpora.read("\n".join(f"a{i}w0 a{i}w1 a{i}w2 | b{i}" for i in range(40)))
    run = built(pairs)
    run.turn()
    assert len(run.turn(updates=3).points) == 3 and len(run.turn(seconds=0.0).points) == 1
    run.update = 1999
    assert run.turn(updates=50).done == "updates" and not run.turn().points


def test_frames_are_thinned_to_their_bound_and_keep_both_ends():
    maps = ({"cross": np.zeros((1, 1, 10, 10), np.uint8)},)
    measured = []
    for update in range(200):
        measured = frames.thin_frames([*measured, Frame(update, (), 0.0, maps)], limit=2000)
        assert sum(frame.size for frame in measured) <= 2000
        assert measured[0].update == 0 and measured[-1].update == update
    assert len(measured) > 5
    assert 2 * frames.MAX_BYTES < 20e6 and sum(map(frames.is_due, range(1, 2001))) < 60


def test_the_floor_is_the_entropy_of_targets_with_the_same_source_words():
    pairs = (("a b", "x"), ("b a", "y"), ("b a", "y"), ("c", "z w"))
    counts = Counter(("x", "y", "y"))
    entropy = -sum(n / 3 * math.log(n / 3) for n in counts.values())
    assert corpora.floor(pairs, ordered=False) == pytest.approx(3 * entropy / (2 + 2 + 2 + 3))
    assert corpora.floor(pairs, ordered=True) == 0
    assert corpora.floor((("a", "x"), ("a", "y")), ordered=True) == pytest.approx(2 * math.log(2) / 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("nur eine seite", "Line 1 is not a pair"),
        ("a | b\n| c", "Line 2 is not a pair"),
        ("a | b | c", "Line 1 is not a pair"),
        ("a | " + "b " * 13, "side of 13 words"),
        ("a | b\n" * 41, "41 pairs"),
        ("\n".join(f"{' '.join(f'w{i}x{j}' for j in range(12))} | y" for i in range(26)), "different words"),
        ("x" * 9000, "9,000 characters"),
    ],
)
def test_typed_corpora_are_parsed_or_refused_with_the_line(text, words):
    with pytest.raises(ValueError, match=words):
        corpora.read(text)


@pytest.mark.parametrize("name", corpora.CORPORA)
def test_shipped_corpora_are_within_the_limits(name):
    assert len(corpora.read(corpora.CORPORA[name].text)) >= 2
    ToySettings(**corpora.CORPORA[name].settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 4},
        {"heads": True},
        {"d_model": 24},
        {"positions": "fairseq"},
        {"dropout": 0.9},
        {"seed": -1},
        {"look_ahead_mask": 1},
        {"network": "lstm"},
        {"optimizer": "adamw"},
        {"d_model": 512, "d_ff": 8},
    ],
)
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(ValueError):
        ToySettings(**wrong)


def test_a_word_vocabulary_encodes_its_corpus_and_no_symbols():
    tokenizer = WordTokenizer(["a b </s>", "b c"])
    assert [str(piece) for piece in tokenizer.pieces] == ["<pad>", "<s>", "</s>", "▁a", "▁b", "▁</s>", "▁c"]
    assert tokenizer.encode_source(" a  </s> ", "target") == [3, 5, 2] and tokenizer.decode([1, 4, 5, 2]) == "b </s>"
    assert tokenizer.end_id not in tokenizer.encode("</s>")
