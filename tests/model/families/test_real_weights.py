"""Models with trained weights translate alike in ours and in `transformers`: random weights would hide some mistakes.

They are the shipped model in the form of PEGASUS, and a post-norm one in the form of Marian.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PegasusConfig, PegasusForConditionalGeneration, PreTrainedModel

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES
from tests.model.families import theirs

KNOWN, WRITTEN = SENTENCES[:10:2], SENTENCES[1:10:2]


def written(model: Transformer, order: Tensor) -> dict[str, Tensor]:
    """Return our weights under the names of fairseq's and Marian's families, with reordered axes of d_model.

    The names are independent of model/families, so that a mistake in either shows.
    """
    state, tensors = model.state_dict(), {"model.shared.weight": model.embedding.weight.detach()[:, order]}
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        norms = ("self_attn", "encoder_attn", "final")[:: 1 if side == "decoder" else 2]
        for at in range(len(stack.layers)):
            ours, to = f"{side}.layers.{at}", f"model.{side}.layers.{at}"
            for mine, name in (("self_attention", "self_attn"), ("cross_attention", "encoder_attn")):
                if f"{ours}.{mine}.output.weight" not in state:
                    continue
                for end in ("weight", "bias"):
                    parts = state[f"{ours}.{mine}.projection.{end}"].chunk(3)
                    for part, value in zip("qkv", parts):
                        tensors[f"{to}.{name}.{part}_proj.{end}"] = value[:, order] if end == "weight" else value
                    tensors[f"{to}.{name}.out_proj.{end}"] = state[f"{ours}.{mine}.output.{end}"][order]
            tensors[f"{to}.fc1.weight"] = state[f"{ours}.feed_forward.expand.weight"][:, order]
            tensors[f"{to}.fc1.bias"] = state[f"{ours}.feed_forward.expand.bias"]
            for end in ("weight", "bias"):
                tensors[f"{to}.fc2.{end}"] = state[f"{ours}.feed_forward.contract.{end}"][order]
                for index, norm in enumerate(norms):
                    tensors[f"{to}.{norm}_layer_norm.{end}"] = state[f"{ours}.sublayers.{index}.norm.{end}"][order]
        if model.config.norm_first:
            for end in ("weight", "bias"):
                tensors[f"model.{side}.layer_norm.{end}"] = state[f"{side}.norm.{end}"][order]
    return tensors


def loaded(into: PreTrainedModel, tensors: dict[str, Tensor]) -> PreTrainedModel:
    """Load weights into a model of `transformers`; its other tensors must be tied, computed or zero."""
    missing, unexpected = into.load_state_dict(tensors, strict=False)
    rest = {name for name in missing if not name.endswith(("embed_tokens.weight", "embed_positions.weight"))}
    assert not unexpected and rest <= {"lm_head.weight", "final_logits_bias"}
    into.tie_weights()
    return into.eval()


def generated(model: PreTrainedModel, sources: list[list[int]], pad_id: int, limit: int) -> list[list[int]]:
    """Return greedy ids without the start symbol and the padding."""
    rows = [ids[1:] for ids in theirs.generate(model, sources, pad_id, limit, num_beams=1)]
    end = model.generation_config.eos_token_id
    return [ids[: ids.index(end) + 1] if end in ids else ids for ids in rows]


@pytest.mark.long
def test_the_shipped_model_in_pegasus_form_translates_alike(shipped_translators) -> None:
    translator = shipped_translators["de-en"]
    config, tokenizer = translator.config, translator.tokenizer
    model = PegasusForConditionalGeneration(
        PegasusConfig(
            vocab_size=config.vocabulary_size,
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_feedforward,
            decoder_ffn_dim=config.d_feedforward,
            max_position_embeddings=config.max_length,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=config.pad_id,
            eos_token_id=tokenizer.end_id,
            forced_eos_token_id=None,
            decoder_start_token_id=tokenizer.begin_id,
        )
    )
    halves = torch.cat((torch.arange(0, config.d_model, 2), torch.arange(1, config.d_model, 2)))  # sines, then cosines
    model = loaded(model, written(translator.model, halves))
    texts = sentences("de")[::3]
    sources = [translator.encode(text) for text in texts]
    limit = max(map(translator.step_limit, map(len, sources)))
    expected = translator.generate(sources)
    assert len(texts) == 100 and sum(ids[-1] == tokenizer.end_id for ids in expected) > 95
    rows = generated(model, sources, config.pad_id, limit)
    # One that never ends goes on for as long as its own side lets it.
    assert [ids[: len(ours)] for ids, ours in zip(rows, expected)] == expected


def test_a_post_norm_model_in_marians_form_translates_alike(tmp_path: Path) -> None:
    """The model is trained for seconds until it has memorized five pairs."""
    model = trained_marian(tmp_path / "opus-mt-de-en")
    ours = Translator.load(tmp_path / "opus-mt-de-en", "cpu")
    assert not ours.config.norm_first
    spelled = [ours.tokenizer.decode(ours.tokenizer.encode(text)) for text in WRITTEN]  # without pieces it lacks
    assert ours.translate_batch(KNOWN) == spelled, "it was to learn its sentences"
    for texts in (KNOWN, ("Der Hund schläft.", "Meine Schwester trinkt Tee.", "Sand der Stadt 漢")):
        sources = [ours.encode(text) for text in texts]
        expected = ours.generate(sources)
        rows = generated(model, sources, ours.config.pad_id, max(map(len, expected)))
        assert [row[: len(own)] for row, own in zip(rows, expected)] == expected


def trained_marian(folder: Path) -> PreTrainedModel:
    """Return a Marian model that has memorized KNOWN, and save it with its tokenizer's files."""
    model = theirs.marian(folder)
    model.save_pretrained(folder)
    opened = Translator.load(folder, "cpu")
    targets = [[*opened.tokenizer.encode(text), opened.tokenizer.end_id] for text in WRITTEN]
    trained = learned(opened.config, [opened.encode(text) for text in KNOWN], targets, opened.tokenizer.begin_id)
    with torch.no_grad():
        model.final_logits_bias.copy_(trained.output_bias[None])
    loaded(model, written(trained, torch.arange(trained.config.d_model))).save_pretrained(folder)
    return model


def taught(folder: Path, make: Callable[..., PreTrainedModel], **changes) -> Path:
    """Save a model of this form that has memorized KNOWN to a folder of ours."""
    make(folder / "theirs", **changes).save_pretrained(folder / "theirs")
    opened = checkpoint.load(folder / "theirs")
    translator = Translator.load(folder / "theirs", "cpu")
    direction = opened.directions[0]
    targets = [translator.encode_target(text, direction) for text in WRITTEN]
    sources = [translator.encode(text, direction) for text in KNOWN]
    model = learned(opened.model.config, sources, targets, opened.tokenizer.begin_id)
    checkpoint.save(folder / "ours", model, opened.tokenizer, opened.directions, half=False)
    return folder / "ours"


def learned(config: ModelConfig, sources: list[list[int]], targets: list[list[int]], begin: int) -> Transformer:
    """Return a network of this shape that has memorized these pairs."""
    torch.manual_seed(4)
    model = Transformer(config).eval()  # without dropout
    source, target = pad(sources, config.pad_id), pad(targets, config.pad_id)
    inputs = pad([[begin, *ids[:-1]] for ids in targets], config.pad_id)
    real = torch.zeros_like(target, dtype=torch.bool)
    for row, ids in enumerate(targets):
        real[row, : len(ids)] = True
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(250):
        loss = F.cross_entropy(model(source, inputs).logits[real], target[real])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss < 0.02:
            break
    return model
