"""Checks of single parts against torch's own: an embedding, attention under two masks, whole stacks, the loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from attention_atlas.model.checks import oracle
from attention_atlas.model.checks.evidence import Evidence, once
from attention_atlas.model.nets.blocks import blocks
from attention_atlas.model.nets.masks import causal_mask
from attention_atlas.model.trace.interventions import positions_shifted
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import say
from attention_atlas.model.training.loss import SummedLoss

SMOOTHING = 0.1  # of the labels, as in the paper (section 5.4)
SHIFT = 7  # positions


@torch.inference_mode()
def embedding_is_a_row(evidence: Evidence) -> tuple[float, str]:
    """One-hot vectors times the matrix against what the model looks up, without its factor."""
    model, ids = evidence.translator.model, evidence.source_ids()
    matrix = model.embedding.weight
    looked_up = model.token_rows(ids)[0] / model.scale  # [source, d_model]
    error = max(
        float((F.one_hot(ids[0, part], len(matrix)).to(matrix.dtype) @ matrix - looked_up[part]).abs().max())
        for part in blocks(ids.shape[1], len(matrix))
    )
    return error, say("{n} tokens of a vocabulary of {size}", n=ids.shape[1], size=len(matrix))


def masked_attention_equals_torch(evidence: Evidence) -> tuple[float, str]:
    """nn.MultiheadAttention told of the padding and of the future, against what the model added to the stream: the
    largest difference at any real token of the batch."""
    return max(error for _, error in _masked_errors(evidence)), _masked(evidence)


def masked_weights_equal_torch(evidence: Evidence) -> tuple[float, str]:
    """The same of the weights of every head, what is masked among them."""
    return max(error for error, _ in _masked_errors(evidence)), _masked(evidence)


@once
@torch.inference_mode()
def _masked_errors(evidence: Evidence) -> list[tuple[float, float]]:
    """Of the weights and of the output of each attention in the padded batch."""
    output, padding, errors = evidence.padded_output, _paddings(evidence), []
    for kind in TRANSFORMER_KINDS:
        queries_padded = padding[kind is not AttentionKind.ENCODER_SELF]
        keys_padded = padding[kind is AttentionKind.DECODER_SELF]
        future = ~causal_mask(keys_padded.shape[1], device=keys_padded.device)[0, 0]
        for layer in range(len(output.records(kind))):
            passed = output.layer(kind, layer).sublayer(kind.sublayer)
            keys = output.memory if kind is AttentionKind.CROSS else passed.read
            module, record = evidence.translator.model.attention(kind, layer), output.attention(kind, layer)
            theirs, weights = oracle.torch_attention(module, record.bias)(
                passed.read,
                keys,
                keys,
                key_padding_mask=keys_padded,
                average_attn_weights=False,
                attn_mask=future if kind is AttentionKind.DECODER_SELF else None,
            )
            apart = (weights - record.weights).abs().amax((1, 3))[~queries_padded].max()  # over heads and keys
            errors.append((float(apart), float((theirs - passed.added)[~queries_padded].abs().max())))
    return errors


def _paddings(evidence: Evidence) -> list[torch.Tensor]:
    own = evidence.trace.source_ids, evidence.trace.decoder_ids
    return [_padding(ids, len(one)) for ids, one in zip(evidence.padded, own)]


def _masked(evidence: Evidence) -> str:
    return say(
        "{n} attentions, {cells} padded tokens",
        n=sum(len(evidence.padded_output.records(kind)) for kind in TRANSFORMER_KINDS),
        cells=sum(int(mask.sum()) for mask in _paddings(evidence)),
    )


@torch.inference_mode()
def whole_stack_equals_torch(evidence: Evidence) -> tuple[float, str]:
    """From what enters the first layers to the logits, through torch's own stacks."""
    translator, output = evidence.translator, evidence.output
    memory, hidden = oracle.whole_stacks(translator, output, evidence.torch_layers)
    errors = [
        (output.project(hidden[0, part]) - output.project(output.hidden[0, part])).abs().max()
        for part in blocks(hidden.shape[1], translator.config.num_target_tokens)
    ]
    error = float(max(*errors, (memory - output.memory).abs().max()))
    return error, say(
        "{n} encoder and {m} decoder layers, the last norm, the projection",
        n=len(output.encoder_records),
        m=len(output.decoder_records),
    )


@torch.inference_mode()
def loss_ignores_padding(evidence: Evidence) -> tuple[float, str]:
    """The loss that training minimises, of the padded batch, against torchs_loss(): a token's mean, in nats."""
    ours = float(SummedLoss(evidence.translator.model, SMOOTHING)(*evidence.padded)) / _real(evidence)
    padded = evidence.padded[2].numel() - _real(evidence)
    return abs(ours - torchs_loss(evidence)), say("{n} real and {m} padded tokens", n=_real(evidence), m=padded)


@once
@torch.inference_mode()
def torchs_loss(evidence: Evidence) -> float:
    """F.cross_entropy, smoothed, of each of the two sentences in a pass of its own, without padding: a token's mean."""
    source, inputs, targets = evidence.padded  # its second row is as long as the batch
    passes = evidence.output, evidence.translator.model(source[1:], inputs[1:])
    summed = 0.0
    for output, targets_of_one in zip(passes, targets):
        ids = targets_of_one[: output.hidden.shape[1]]
        # A random model may write the symbol that pads, as if it were a word: training would not learn from it.
        summed += sum(
            float(
                F.cross_entropy(
                    output.project(output.hidden[0, part]).float(),
                    ids[part],
                    label_smoothing=SMOOTHING,
                    reduction="sum",
                    ignore_index=evidence.translator.tokenizer.pad_id,
                )
            )
            for part in blocks(len(ids), evidence.translator.config.num_target_tokens)
        )
    return summed / _real(evidence)


@torch.inference_mode()
def shifting_changes_nothing(evidence: Evidence) -> tuple[float, str]:
    """The same pass with all positions moved on: of relative positions, the largest difference of any logit."""
    model, output, ids = evidence.translator.model, evidence.output, evidence.trace.decoder_ids
    target = torch.tensor([ids], device=output.hidden.device)
    moved = model(evidence.source_ids(), target, interventions=positions_shifted(SHIFT))
    errors = [
        (output.project(moved.hidden[0, part]) - output.project(output.hidden[0, part])).abs().max()
        for part in blocks(len(ids), evidence.translator.config.num_target_tokens)
    ]
    return float(max(errors)), say("all positions moved by {n}", n=SHIFT)


def _real(evidence: Evidence) -> int:
    """How many target tokens of the padded batch are real."""
    return int((evidence.padded[2] != evidence.translator.tokenizer.pad_id).sum())


def _padding(ids: torch.Tensor, length: int) -> torch.Tensor:
    """Which of ids [2, longest] are padding, where only the first row is padded, and has this length: bool, True as
    torch has it, what may NOT be attended to. By length: some families begin with the symbol that pads."""
    mask = torch.zeros_like(ids, dtype=torch.bool)
    mask[0, length:] = True
    return mask
