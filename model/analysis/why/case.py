"""One question about one token: its recorded pass, its metric, and passes with words masked or replaced.

`open_case` returns a `Case`, on which all methods and experiments run. `WordChanges` is a batch of changes to words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.rerun import check_rerun
from attention_atlas.model.analysis.why.means import Means, load_stored_means
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.nets.blocks import MAX_LOGITS, exact, log_probabilities, with_float64
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.networks import AnyNetwork, check_transformer
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Changes, PatchValue, Sweep
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions, Patch
from attention_atlas.model.trace.language import Refusal, Words, say
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, Columns, Question, make_columns
from attention_atlas.model.trace.why.effects import Removal
from attention_atlas.model.translator import Translator

Baseline = tuple[np.ndarray | Tensor, np.ndarray | Tensor]  # of source and prefix, [d_model] or [positions, d_model]
BATCH_TOKENS = 4096  # tokens of both sides in one batch: bounds memory without a cost in speed
CPU_BATCH_TOKENS = 1024  # on the CPU, so that a layer's activations fit into its caches: up to 1.5 times faster
THREAD_TOKENS = 512  # more tokens than this are split over two threads
MASKED, REPLACED = 1, 2  # changes to a position
NUM_CANDIDATES = 5  # most probable tokens compared before and after a removal


@dataclass(frozen=True, eq=False)
class WordChanges:
    """A batch of changes to words: int [batch, positions] of the source and of the prefix, 0 where a position stays.

    MASKED    the position is not read by any head; the row's own position still reaches itself through the residual. A
              recurrent network skips the position: its state stays as it was
    REPLACED  the embedding becomes the mean embedding, and the position encoding stays
    """

    source: np.ndarray
    prefix: np.ndarray

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: np.ndarray | slice) -> WordChanges:
        return WordChanges(self.source[rows], self.prefix[rows])


def mask_words(source: np.ndarray, prefix: np.ndarray) -> WordChanges:
    """Mask these positions, bool [batch, source] and [batch, step + 1].

    The last prefix position is replaced by the mean instead: it reaches the question's row through the residual stream
    whatever is masked.
    """
    changes = WordChanges(source * MASKED, prefix * MASKED)
    changes.prefix[:, -1] = prefix[:, -1] * REPLACED
    return changes


def replace_words(source: np.ndarray, prefix: np.ndarray) -> WordChanges:
    """Replace these positions, bool [batch, source] and [batch, step + 1], by the mean embedding."""
    return WordChanges(source * REPLACED, prefix * REPLACED)


def linear_metric(model: Transformer, question: Question) -> tuple[Tensor, float]:
    """Return a vector [d_model] and a constant, in float64: vector . x + constant = logit(token) - logit(contrast).

    x is the decoder's output. Without a contrast, the vocabulary's mean logit takes the place of its logit.
    """
    weight, bias = model.output_matrix.detach(), model.output_bias
    bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()

    def subtract_contrast(rows: Tensor) -> Tensor:
        contrast = _mean_row(rows) if question.contrast_id is None else exact(rows[question.contrast_id])
        return exact(rows[question.token_id]) - contrast

    return model.output_scale * subtract_contrast(weight), float(subtract_contrast(bias))


def _mean_row(rows: Tensor) -> Tensor:
    """Return the mean row in float64, part by part: a float64 copy of an output matrix may take 2 GB."""
    parts = rows.split(max(1, MAX_LOGITS // rows[0].numel()))
    return torch.stack([with_float64(part).sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(rows)


@torch.inference_mode()
def top_tokens(model: Transformer, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return ids and log-probabilities, [batch, count], of the most probable tokens after hidden [batch, d_model]."""
    top = exact(model.project(hidden)).log_softmax(-1).topk(count, dim=-1)
    return top.indices, top.values


@dataclass(frozen=True, eq=False)
class Case:
    """A question with everything that methods share.

    source_ids   int64 [1, source]
    decoder_ids  int64 [1, step + 1], up to the question's row; nothing later can affect it
    means        of a corpus, or None
    cross_layer  the layer of rows about cross-attention; None: the mean over layers
    baseline     where integrated gradients start; None: mean_rows
    """

    model: AnyNetwork
    question: Question
    source_ids: Tensor
    decoder_ids: Tensor
    columns: Columns
    interventions: Interventions = NO_INTERVENTIONS
    means: Means | None = None
    cross_layer: int | None = None
    baseline: Baseline | None = None

    @cached_property
    def output(self) -> ForwardOutput:
        """The recorded pass."""
        with torch.inference_mode():
            return self.model(self.source_ids, self.decoder_ids, interventions=self.interventions, record=True)

    @cached_property
    def source_rows(self) -> Tensor:
        """Scaled token embeddings [1, source, d_model], without positions."""
        return self._rows(self.source_ids, decoder=False)

    @cached_property
    def target_rows(self) -> Tensor:
        """Scaled token embeddings [1, step + 1, d_model], without positions."""
        return self._rows(self.decoder_ids, decoder=True)

    def _rows(self, ids: Tensor, *, decoder: bool) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():  # normal tensors, since gradients start from them
            return self.model.token_rows(ids, decoder=decoder)

    @cached_property
    def mean_rows(self) -> tuple[Tensor, Tensor, Words]:
        """The mean embedding of source and prefix [d_model], without position, and what it is the mean of."""
        if self.means is not None:
            source, target = (
                torch.from_numpy(row).to(self.source_rows)
                for row in (self.means.source_embedding, self.means.target_embedding)
            )
            return source, target, say("mean embedding of {n} sentences", n=self.means.sentences)
        with torch.inference_mode(False), torch.no_grad():
            source, target = (
                matrix.mean(0) * self.model.scale for matrix in (self.model.embedding.weight, self.model.target_matrix)
            )
        return source, target, say("mean embedding of the vocabulary")

    @cached_property
    def baseline_rows(self) -> tuple[Tensor, Tensor, str]:
        """Where integrated gradients start: rows of the shapes of source_rows and target_rows, and their description.

        Raises ValueError for a baseline of other shapes.
        """
        if self.baseline is None:
            *rows, description = self.mean_rows
        else:
            baselines = tuple(self.baseline)
            if len(baselines) != 2:  # a single array would silently be read as its first two rows
                raise ValueError(f"a baseline is a pair, of source and of prefix; found {len(baselines)}")
            rows = [torch.as_tensor(values).detach().to(self.source_rows) for values in baselines]
            description = "given baseline"
            if not all(row.isfinite().all() for row in rows):
                raise ValueError("a baseline's numbers must be finite")
        try:
            source, target = (row.expand_as(like) for row, like in zip(rows, (self.source_rows, self.target_rows)))
            return source, target, description
        except RuntimeError as error:
            shapes = [list(row.shape) for row in (*rows, self.source_rows[0], self.target_rows[0])]
            raise ValueError(
                f"a baseline is a pair, of source and of prefix, each a row [d_model] or a row for each position, here "
                f"{shapes[2]} and {shapes[3]}; found {shapes[0]} and {shapes[1]}"
            ) from error

    def metric(self) -> float:
        """Return the metric of the recorded pass, in nats."""
        with torch.inference_mode():
            return float(self.measure(self.output.hidden[:, -1])[0])

    def measure(self, hidden: Tensor) -> Tensor:
        """Return the metric [batch], float64 nats, of the decoder's output at the question's row [batch, d_model].

        log p(token) - log p(contrast), or log p(token) without a contrast.
        """
        model, question = self.model, self.question
        if question.contrast_id is not None:
            vector, constant = linear_metric(model, question)
            return exact(hidden) @ vector + constant
        ids = torch.full((len(hidden),), question.token_id, device=hidden.device)
        return log_probabilities(model.project, hidden, ids, model.config.num_target_tokens, dtype=torch.float64)

    def encode(self, rows: Tensor, keys: Tensor | None = None, changes: Changes | None = None) -> SourceMemory:
        """Encode rows [batch, source, d_model] in place of token embeddings.

        keys: bool [batch, source], the positions that encoder and decoder may read; None: all. changes: instead of the
        case's own interventions.
        """
        changes = self.interventions if changes is None else changes
        return self.model.encode_rows(rows, keys, interventions=changes)

    def decode(
        self, rows: Tensor, source: SourceMemory, keys: Tensor | None = None, changes: Changes | None = None
    ) -> Tensor:
        """Return the decoder's output [batch, d_model] at the question's row, from rows [batch, step + 1, d_model].

        keys: bool [batch, step + 1], the positions that later rows may read; each row reads itself. changes: as in
        encode().
        """
        changes = self.interventions if changes is None else changes
        return self.model.decode_last(rows, source, keys, interventions=changes)

    @torch.inference_mode()
    def run(self, changes: WordChanges) -> Tensor:
        """Return the decoder's output at the question's row after each change, [batch, d_model]."""
        assert not (changes.source == MASKED).all(-1).any(), "every source position is masked"
        hidden = self.output.hidden.new_empty(len(changes), self.output.hidden.shape[-1])
        # The source is encoded again only where it changes.
        in_source = changes.source.any(-1)
        kinds = np.flatnonzero(in_source), np.flatnonzero(~in_source)
        parts = [rows[part] for rows in kinds for part in self.batches(len(rows))]
        for rows, outputs in zip(parts, map_on_spare_core(lambda rows: self._run_batch(changes[rows]), parts)):
            hidden[torch.from_numpy(rows)] = outputs
        return hidden

    def _run_batch(self, changes: WordChanges) -> Tensor:
        mean_source, mean_target, _ = self.mean_rows
        if changes.source.any():
            memory = self.encode(*_change_rows(changes.source, self.source_rows, mean_source))
        else:
            memory = self.model.repeat_source(self.output, len(changes))
        rows, keys = _change_rows(changes.prefix, self.target_rows, mean_target)
        return self.decode(rows, memory, keys)

    def run_patched(self, values: Mapping[Patch, PatchValue], *, in_encoder: bool) -> Tensor:
        """Return the decoder's output [batch, d_model] at the question's row with patched values.

        in_encoder: whether a place is in the encoder, which then runs again.
        """
        sweep = Sweep(replace(self.interventions, patches=frozenset(values)), values=values)
        rows = self.source_rows.expand(sweep.rows, -1, -1)
        memory = self.encode(rows, changes=sweep) if in_encoder else self.model.repeat_source(self.output, sweep.rows)
        return self.decode(self.target_rows.expand(sweep.rows, -1, -1), memory, changes=sweep)

    def measure_effects(self, changes: WordChanges) -> np.ndarray:
        """Return m(x) - m(changed x), float64 [batch]: positive if what was taken away spoke for the token."""
        with torch.inference_mode():
            return self.metric() - self.measure(self.run(changes)).cpu().numpy()

    def batches(self, count: int) -> list[slice]:
        """Return slices of `count` runs that each fit into one batch.

        On the CPU they are of one size, and at least two if there is work for two threads. The division does not depend
        on which cores are free, because rounding depends on the batch size.
        """
        tokens = self.source_ids.shape[1] + self.decoder_ids.shape[1]
        if self.source_ids.device.type != "cpu":
            size = max(1, BATCH_TOKENS // tokens)
        else:
            fewest = -(-count // max(1, CPU_BATCH_TOKENS // tokens))
            fewest = max(fewest, 1 + (count * tokens > THREAD_TOKENS))
            size = max(1, -(-count // fewest))
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _change_rows(side: np.ndarray, rows: Tensor, mean: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return rows with changes of one side, and the positions that may be read, None for all."""
    changes = torch.from_numpy(side).to(rows.device)
    is_read = changes != MASKED
    return torch.where((changes == REPLACED)[..., None], mean, rows), None if is_read.all() else is_read


def open_case(
    translator: Translator,
    trace: TranslationTrace,
    question: Question,
    *,
    words: bool = True,
    means: Means | None = None,
    cross_layer: int | None = None,
    baseline: Baseline | None = None,
) -> Case:
    """Return the case of a question about a trace, of any network; the options are those of attribute().

    The trace's own interventions hold in every run. Raises ValueError if they cannot be run again, or if other weights
    wrote the trace.
    """
    check_rerun(translator, trace, needs_parts=True)
    if parts := translator.config.without:
        raise Refusal(
            "this network is built without {parts}: the experiments support only networks that have it",
            parts=", ".join(parts),
        )
    if means is not None and means.digest != translator.digest:
        raise ValueError(f"these means are of other weights ({means.digest}, here {translator.digest})")
    layers = translator.config.num_decoder_layers
    if cross_layer is not None and not 0 <= check_integer("layer", cross_layer) < layers:
        raise ValueError(f"cross-attention has layers 0 to {layers - 1}, found {cross_layer}")
    device = translator.device
    return Case(
        translator.model,
        question,
        torch.tensor([trace.source_ids], device=device),
        torch.tensor([trace.decoder_ids[: question.step + 1]], device=device),
        make_columns(trace, question.step, words=words),
        trace.interventions,
        means,
        cross_layer=cross_layer,
        baseline=baseline,
    )


def open_case_at(
    translator: Translator, trace: TranslationTrace, step: int | None, contrast: str | int | Against
) -> Case:
    """Return the case of make_question(), with the checkpoint's own means, for experiments on a Transformer's parts.

    Raises what it and open_case() raise, and a Refusal for another network."""
    check_transformer(translator.model)
    question = make_question(translator, trace, step, contrast)
    return open_case(translator, trace, question, means=load_stored_means(translator))


def measure_removal(case: Case, column: int, change: Callable[[np.ndarray, np.ndarray], WordChanges]) -> Removal:
    """Run the case without one column's word. change: mask_words or replace_words.

    Raises ValueError if there is no such column.
    """
    if not 0 <= column < len(case.columns):
        raise ValueError(f"columns are 0 to {len(case.columns) - 1}, found {column}")
    return compare_outputs(case, case.run(change(*(mask[[column]] for mask in case.columns.masks()))))


@torch.inference_mode()
def compare_outputs(case: Case, changed: Tensor) -> Removal:
    """Compare the recorded pass with a changed one, whose output at the question's row is changed [1, d_model]."""
    hidden = torch.cat((case.output.hidden[:, -1], changed))
    question, (ids, _) = case.question, top_tokens(case.model, hidden, NUM_CANDIDATES)
    of_question = [question.token_id] + ([] if question.contrast_id is None else [question.contrast_id])
    tokens = list(dict.fromkeys([*of_question, *ids.flatten().tolist()]))
    probabilities = exact(case.model.project(hidden)).softmax(-1)[:, tokens].cpu().numpy()
    before, after = case.measure(hidden).tolist()
    order = np.argsort(-probabilities.max(0), kind="stable")
    return Removal(before, after, tuple(tokens[i] for i in order), probabilities[:, order])
