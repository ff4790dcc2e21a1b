"""Measure the time of an update by sentence length: python -m attention_atlas.model.training.pace.measure

A recurrent network processes tokens one after another, a Transformer all at once (Vaswani et al. 2017, table 1). Two
networks with nearly the same number of parameters are updated in alternation; every update has the same number of
tokens, in fewer sentences the longer they are. Writes measured.json beside this module, for the page.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from attention_atlas.model import processor
from attention_atlas.model.config import ModelConfig, from_json
from attention_atlas.model.files import read_json, value_errors, write_json
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.program import CommandLine, integer, refuse_existing, run_program
from attention_atlas.model.training.loss import SummedLoss

FILE = Path(__file__).with_name("measured.json")
LENGTHS, TOKENS, ROUNDS = (4, 8, 16, 32, 64, 128), 1024, 5
# The sizes of the shipped recurrent network, and a Transformer whose number of parameters is equal within one per cent.
CONFIGS = {
    "recurrent": RecurrentConfig(8000, d_model=192),
    "transformer": ModelConfig(
        8000, d_model=192, num_heads=4, num_encoder_layers=1, num_decoder_layers=1, d_feedforward=384
    ),
}


@dataclass(frozen=True)
class Pace:
    """The measurements and their conditions.

    tokens      on each side, in every update
    parameters  by network
    seconds     network -> (fastest, median, slowest) update for each length
    """

    processor: str
    threads: int
    tokens: int
    rounds: int
    lengths: tuple[int, ...]
    parameters: dict[str, int]
    seconds: dict[str, tuple[tuple[float, float, float], ...]]


class Updates:
    """Updates of one network on sentences of random words: loss, gradients, Adam."""

    def __init__(self, config: ModelConfig | RecurrentConfig) -> None:
        torch.manual_seed(1)
        self.config, self.model = config, networks.build(config).train()
        self.loss = SummedLoss(self.model, 0.1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def update(self, length: int, tokens: int) -> float:
        """Return the seconds of an update with `tokens` tokens on each side, in sentences of this length."""
        source, inputs, outputs = torch.randint(1, self.config.vocabulary_size, (3, max(1, tokens // length), length))
        started = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(source, inputs, outputs).backward()
        self.optimizer.step()
        return time.perf_counter() - started


def measure(lengths: tuple[int, ...] = LENGTHS, *, tokens: int = TOKENS, rounds: int = ROUNDS) -> Pace:
    """Measure both networks at every length in alternation, after a warm-up round."""
    networks_by_name = {name: Updates(config) for name, config in CONFIGS.items()}
    results = {(name, length): [] for name in networks_by_name for length in lengths}
    for turn in range(rounds + 1):
        for (name, length), seconds in results.items():
            elapsed = networks_by_name[name].update(length, tokens)
            if turn:
                seconds.append(elapsed)
    return Pace(
        processor.name(),
        torch.get_num_threads(),
        tokens,
        rounds,
        tuple(lengths),
        {name: updates.parameters for name, updates in networks_by_name.items()},
        {name: tuple(_spread(results[name, length]) for length in lengths) for name in networks_by_name},
    )


def _spread(seconds: list[float]) -> tuple[float, float, float]:
    return tuple(round(value, 5) for value in (min(seconds), statistics.median(seconds), max(seconds)))


def read(path: Path = FILE) -> Pace:
    """Read the measurements. Raises ValueError if the file is damaged."""
    with value_errors(f"{path} does not say how long updates take", ValueError, TypeError, AttributeError):
        pace = from_json(Pace, read_json(path))
        lengths = len(pace.lengths)
        if set(pace.seconds) != set(CONFIGS) or any(len(rows) != lengths for rows in pace.seconds.values()):
            raise ValueError(f"three numbers are expected for each of {lengths} lengths and each network")
    return pace


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m attention_atlas.model.training.pace.measure", __doc__)
    parser.add_argument("--lengths", type=integer(), nargs="+", default=list(LENGTHS), help="of sentences, in tokens")
    parser.add_argument("--tokens", type=integer(), default=TOKENS, help=f"a side in every update, default {TOKENS}")
    parser.add_argument("--rounds", type=integer(), default=ROUNDS, help=f"updates of each kind, default {ROUNDS}")
    parser.add_argument("--threads", type=integer(), default=1, help="of torch, default 1")
    parser.add_argument("--out", type=Path, default=FILE, help="where to write, default what the page shows")
    parser.add_argument("--replace", action="store_true", help="write over what is there already")
    args = parser.parse_args(argv)
    refuse_existing(args.out, args.replace)
    before = torch.get_num_threads()
    torch.set_num_threads(args.threads)
    try:
        pace = measure(tuple(args.lengths), tokens=args.tokens, rounds=args.rounds)
    finally:
        torch.set_num_threads(before)
    write_json(args.out, asdict(pace))
    for name, rows in pace.seconds.items():
        milliseconds = ", ".join(
            f"{length}: {1e3 * median:.0f} ms" for length, (_, median, _) in zip(pace.lengths, rows)
        )
        print(f"{name}, {pace.parameters[name]:,} parameters: {milliseconds}", file=sys.stderr)


if __name__ == "__main__":
    run_program(main)
