"""Train a network: attention-atlas train --help

Runs in one process, or in several of torchrun. The run's folder holds all of its state: with --resume a killed run
continues from the last saved state, in the same order.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from tqdm import tqdm

from attention_atlas.model import checkpoint
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.networks import AnyNetwork
from attention_atlas.model.program import refuse_existing, require, run_program
from attention_atlas.model.serve import processes
from attention_atlas.model.serve.device import choose_device, keep_freed_memory
from attention_atlas.model.serve.processes import EpochPrefetcher
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training import history, options, start
from attention_atlas.model.training.batches import Batch, Examples, make_batch, plan_batches
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.history import History
from attention_atlas.model.training.loss import SummedLoss
from attention_atlas.model.training.packing import PackedShape, can_pack, pack, packed_shape, plan_packed
from attention_atlas.model.training.source import CORPORA, Mixture, Source
from attention_atlas.model.training.start import STATE
from attention_atlas.model.training.state import Log, TrainingState
from attention_atlas.model.translator import Translator

LOG_EVERY = 50
LOG = "metrics.jsonl"


class Trainer:
    """The state of a training run, and its updates: model, optimizer, order of the data, sums for the log."""

    def __init__(
        self,
        config: TrainConfig,
        model: AnyNetwork,
        tokenizer: TextTokenizer,
        train: Examples | Mixture,
        device: torch.device,
        workers: int = 0,
    ) -> None:
        """workers: processes that prepare epochs in advance."""
        self.config, self.tokenizer, self.device = config, tokenizer, device
        # The tokens of the longest pair in a packed row; None for networks that read one pair a row.
        longest = min(config.max_pair_length, model.config.max_length) if can_pack(model.config) else None
        self.epochs = EpochPrefetcher(partial(draw_epoch, train, config, longest), workers)
        self.examples = Examples.of([])  # of the current epoch
        self.shape: PackedShape | None = None  # of its batches, if they are packed
        self.model = model.to(device)
        self.rank, self.world_size = processes.rank(), processes.world_size()
        loss = SummedLoss(self.model, config.label_smoothing)
        self.loss = nn.parallel.DistributedDataParallel(loss) if dist.is_initialized() else loss
        if config.compile:
            # All batches of an epoch have one shape, so that on CUDA the passes are replayed as graphs.
            mode = "reduce-overhead" if device.type == "cuda" else None
            self.loss = torch.compile(self.loss, mode=mode, dynamic=False)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.state = TrainingState(self.model, self.optimizer, config.average_decay)
        self.batches: list = []
        self.clock = time.perf_counter()

    def next_batch(self) -> Batch:
        """Return the batch at the state's position in the data, and advance the position."""
        state = self.state
        if not self.batches:
            self._draw()
        # A run that an older version began may have used more batches than the epoch has now.
        if state.batch >= len(self.batches):
            state.epoch, state.batch = state.epoch + 1, 0
            self._draw()
        pairs = self.batches[state.batch]
        state.batch += 1
        share = {"rank": self.rank, "world_size": self.world_size}
        if self.shape is None:
            return make_batch(self.examples, pairs, self.tokenizer, **share)
        return pack(self.examples, pairs, self.shape, self.tokenizer, **share)

    def _draw(self) -> None:
        self.examples, self.shape, self.batches = self.epochs(self.state.epoch)
        if not self.batches:
            raise ValueError(f"there is no sentence pair of at most {self.config.max_pair_length} tokens to train on")

    def step(self) -> None:
        """Make one update on the next batch."""
        self.step_on(self.next_batch())

    def step_on(self, batch: Batch) -> None:
        """Make one update on a batch. Adds this process's part of the loss and all of its tokens to the state."""
        state, config = self.state, self.config
        batch = batch.to(self.device)
        state.update += 1
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate_at(state.update)
        half = torch.autocast(self.device.type, torch.bfloat16) if config.bf16 else contextlib.nullcontext()
        with half:
            summed = self.loss(batch.source, batch.inputs, batch.outputs, batch.packing, with_plain=True)
        # DistributedDataParallel averages gradients over processes, but the loss is a mean over all tokens.
        (summed[0] * (self.world_size / batch.tokens)).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        state.update_average()
        state.loss_sum += summed.detach()
        state.tokens += batch.tokens

    def synchronize(self) -> None:
        """Sum the loss since the last log line in the first process, and update the clock."""
        if self.world_size > 1:
            dist.all_reduce(self.state.loss_sum)
            if self.rank > 0:
                self.state.loss_sum.zero_()
        now = time.perf_counter()
        self.state.seconds += now - self.clock
        self.clock = now


def draw_epoch(
    train: Examples | Mixture, config: TrainConfig, longest: int | None, epoch: int
) -> tuple[Examples, PackedShape | None, list]:
    """Return the examples of an epoch, the shape of its packed batches, and the pairs of each batch.

    longest: tokens of a packed row's longest pair; None: batches are not packed.
    """
    examples, order = train.epoch(epoch), {"seed": config.seed, "epoch": epoch}
    if longest is None:
        return examples, None, plan_batches(examples, config.tokens_per_batch, **order)
    shape = packed_shape(examples, config.tokens_per_batch, longest)
    return examples, shape, plan_packed(examples, shape, **order)


def run(trainer: Trainer, folder: Path, dev: list, recorded: History | None = None) -> None:
    """Train until the last update; log, evaluate, record and save at their intervals."""
    config, state, chief = trainer.config, trainer.state, trainer.rank == 0
    log = Log(folder / LOG, state.update) if chief else None
    bar = tqdm(total=config.max_updates, initial=state.update, disable=not chief, unit="update", mininterval=5)
    trainer.model.train()
    if recorded and (state.update == 0 or not recorded.records):
        recorded.record(trainer.model, state.update)
    trainer.clock = time.perf_counter()
    while state.update < config.max_updates:
        trainer.step()
        bar.update()
        last = state.update == config.max_updates
        if state.update % LOG_EVERY == 0 or last:
            trainer.synchronize()
            if chief:
                loss, unsmoothed = (state.loss_sum / state.tokens).tolist()
                log.write(
                    update=state.update,
                    epoch=state.epoch,
                    loss=loss,
                    unsmoothed=unsmoothed,
                    tokens=state.tokens,
                    seconds=round(state.seconds, 2),
                    learning_rate=config.learning_rate_at(state.update),
                )
                bar.set_postfix(
                    loss=f"{loss:.3f}",
                    unsmoothed=f"{unsmoothed:.3f}",
                    tokens_per_second=f"{state.tokens / state.seconds:.0f}",
                )
            state.start_window()
        if recorded and history.is_due(state.update, config.max_updates, is_continuation=recorded.is_continuation):
            trainer.synchronize()
            recorded.record(trainer.model, state.update)
            trainer.clock = time.perf_counter()
        if state.update % config.evaluate_every == 0 or last:
            trainer.synchronize()
            if chief and dev:
                scores = validate(trainer.model, state, trainer.tokenizer, dev, config)
                log.write(update=state.update, dev=scores)
                bar.write(f"update {state.update}: {json.dumps(scores)}", file=sys.stderr)
                trainer.model.train()
            trainer.clock = time.perf_counter()
        if state.update % config.save_every == 0 or last:
            trainer.synchronize()
            if chief:
                state.save(folder / STATE)
    bar.close()


def validate(model: AnyNetwork, state: TrainingState, tokenizer: TextTokenizer, dev: list, config: TrainConfig) -> dict:
    """Score the weights and their moving average on the dev corpora.

    dev: (direction, corpus) pairs. Returns {"weights": .., "average": .., "averaged_is_better": bool}. Each entry holds
    the loss per token (natural log, no smoothing) and, for each direction and corpus, greedy BLEU and chrF on the first
    `dev_sentences`. The average is better if its mean BLEU is higher.
    """
    model.eval()
    scores = {"weights": _scores(model, tokenizer, dev, config)}
    if state.average:
        state.swap()
        scores["average"] = _scores(model, tokenizer, dev, config)
        state.swap()
    scores["averaged_is_better"] = bool(
        state.average and scores["average"]["mean_bleu"] > scores["weights"]["mean_bleu"]
    )
    return scores


@torch.inference_mode()
def _scores(model: AnyNetwork, tokenizer: TextTokenizer, dev: list, config: TrainConfig) -> dict:
    import sacrebleu  # optional: installed with the extra "train"

    device, summed_loss = next(model.parameters()).device, SummedLoss(model, label_smoothing=0.0)
    result: dict = {}
    loss, tokens, bleus = 0.0, 0, []
    for direction, corpus in dev:
        source, target = parse_direction(direction)
        limits = {"max_length": model.config.max_length, "source_language": source}
        pairs = corpus.oriented(direction)[: config.dev_sentences]
        pairs = [p for p in pairs if Examples.encode([p], tokenizer, target, **limits).source]
        examples = Examples.encode(pairs, tokenizer, target, **limits)
        for rows in plan_batches(examples, config.tokens_per_batch, seed=0, epoch=0):
            batch = make_batch(examples, rows, tokenizer).to(device)
            loss += summed_loss(batch.source, batch.inputs, batch.outputs).item()
            tokens += batch.tokens
        translator = Translator(Checkpoint("", model, tokenizer, (direction,), {}, ""), device)
        translations = translator.translate_batch([s for s, _ in pairs])
        references = [[t for _, t in pairs]]
        bleu = sacrebleu.corpus_bleu(translations, references).score
        bleus.append(bleu)
        result[f"{direction} {corpus.name}"] = {
            "bleu": round(bleu, 2),
            "chrf": round(sacrebleu.corpus_chrf(translations, references).score, 2),
        }
    return {"loss": round(loss / tokens, 4), "mean_bleu": round(float(np.mean(bleus)), 2), **result}


def export(folder: Path, out: Path) -> None:
    """Write the weights of chosen_model() as a checkpoint."""
    model, tokenizer, config = chosen_model(folder)
    checkpoint.save(out, model, tokenizer, config.directions)
    checkpoint.replace_file(out / LOG, lambda path: path.write_bytes((folder / LOG).read_bytes()))
    exported = checkpoint.load(out)
    history.export(folder, out, exported.model, tokenizer, exported.digest)


def is_exported_from(folder: Path, out: Path) -> bool:
    """Return whether this run wrote the checkpoint before: its log is the beginning of the run's."""
    logs = [path / LOG for path in (out, folder)]
    return all(map(Path.is_file, logs)) and logs[1].read_bytes().startswith(logs[0].read_bytes())


def chosen_model(folder: Path) -> tuple[AnyNetwork, TextTokenizer, TrainConfig]:
    """Return the raw or averaged weights, the better ones of the last evaluation on dev: float32, on the CPU."""
    model_config, config, tokenizer = start.read_run(folder)
    model = networks.build(model_config)
    state = TrainingState(model, torch.optim.Adam(model.parameters()), config.average_decay)
    state.load(folder / STATE)
    lines = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    scores = [line["dev"] for line in lines if "dev" in line]
    if scores and scores[-1]["averaged_is_better"]:
        state.swap()
    return model.eval(), tokenizer, config


def main(argv: list[str] | None = None, source: Source = CORPORA, about: str = __doc__) -> None:
    """Run the program. source: of the examples; about: the description for --help."""
    args = options.parse(argv, about, source)
    require("sacrebleu")
    device = choose_device(args.device)
    with processes.process_group("nccl" if device.type == "cuda" else "gloo"):
        if device.type == "mps" and processes.world_size() > 1:
            raise ValueError("several processes share a batch on CUDA or on the CPU: not on mps")
        train(args, device, source)


def train(args: argparse.Namespace, device: torch.device, source: Source) -> None:
    """Start or resume a run, train it, and export it where --out says."""
    folder, chief = args.run, processes.rank() == 0
    if args.out:
        refuse_existing(
            args.out / checkpoint.WEIGHTS, args.replace or (args.resume and is_exported_from(folder, args.out))
        )
    if args.resume:
        start.check_can_resume(folder, source)
        directions = start.read_run(folder, source.config)[1].directions
    else:
        directions = args.directions or options.DIRECTIONS
    corpora = source.find(args, list(directions))
    if chief and args.resume:
        start.resume_run(args, source)
    elif chief:
        start.start_run(args, corpora, source)
    processes.barrier()
    model_config, config, tokenizer = start.read_run(folder, source.config)
    torch.manual_seed(config.seed + processes.rank())
    model = networks.build(model_config)
    if args.init and not args.resume:
        model.load_state_dict(checkpoint.load(args.init).model.state_dict())
    examples, dev = source.examples(corpora, config, tokenizer, model_config.max_length)
    keep_freed_memory()  # only now: the memory for reading the corpora is returned to the system
    trainer = Trainer(config, model, tokenizer, examples, device, args.workers)
    if args.resume:
        trainer.state.load(folder / STATE)
        if not chief:  # the file has the first process's random generator, and the loss of all processes
            torch.manual_seed(config.seed + trainer.rank + trainer.state.update)
            trainer.state.loss_sum.zero_()
    recorded = None
    if chief:
        parameters = sum(p.numel() for p in model.parameters())
        print(f"{parameters:,} parameters, {len(examples):,} pairs an epoch, {device}", file=sys.stderr)
        history.copy_probes(args.probes, folder)
        recorded = History.of_run(
            folder, tokenizer, update=trainer.state.update, init=args.init, before=args.updates_before
        )
    run(trainer, folder, dev, recorded)
    trainer.epochs.close()
    if args.out and chief:
        export(folder, args.out)


if __name__ == "__main__":
    run_program(main)
