"""Options of small training runs, the command that starts one, and the losses that it logged."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import torch

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m"]
CPU = torch.device("cpu")
SCHEDULE = shlex.split(
    "--tokens-per-batch 100 --warmup-updates 20 --cooldown-updates 10 --evaluate-every 100000 --device cpu"
)
SMALL = shlex.split(
    "--d-model 16 --num-heads 2 --num-encoder-layers 1 --num-decoder-layers 2 --d-feedforward 24 --learning-rate 0.005"
)
SMALL += SCHEDULE


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "attention_atlas.model.train", *map(str, arguments)]


def losses(run: Path) -> list[tuple[int, float]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [(line["update"], line["loss"]) for line in lines if "loss" in line]
