"""Small runs: their options, the command that starts one, and the losses that it logged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

CPU = torch.device("cpu")
SMALL = [
    "--d-model",
    "16",
    "--num-heads",
    "2",
    "--num-encoder-layers",
    "1",
    "--num-decoder-layers",
    "2",
    "--d-feedforward",
    "24",
    "--tokens-per-batch",
    "100",
    "--warmup-updates",
    "20",
    "--learning-rate",
    "0.005",
    "--cooldown-updates",
    "10",
    "--evaluate-every",
    "100000",
    "--device",
    "cpu",
]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "attention_atlas.model.train", *map(str, arguments)]


def losses(run: Path) -> list[tuple[int, float]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [(line["update"], line["loss"]) for line in lines if "loss" in line]
