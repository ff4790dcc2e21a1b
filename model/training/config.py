"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field

from attention_atlas.model.config import check_fraction, check_whole_number


@dataclass(frozen=True)
class TrainConfig:
    """The settings of one training run. Raises ValueError for a value that cannot work."""

    directions: tuple[str, ...] = ("de-en",)
    max_updates: int = 10_000
    tokens_per_batch: int = 2048  # target tokens, padding included, over all processes
    learning_rate: float = 1e-3  # the peak, reached at the end of the warm-up
    warmup_updates: int = 800  # 0: a constant rate, but for the cool-down
    cooldown_updates: int = 2000  # linear decay to zero over the last updates
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    average_decay: float = 0.999  # exponential moving average of the weights; 0 switches it off
    evaluate_every: int = 1000
    save_every: int = 200
    dev_sentences: int = 500  # translated greedily at each evaluation
    # Pairs with more tokens on either side are left out of training. Packed rows are as wide.
    max_pair_length: int = 128
    bf16: bool = False
    compile: bool = False  # whether torch.compile compiles the network
    seed: int = 1
    repeats: tuple[tuple[str, float], ...] = field(default=())  # (corpus name, times per epoch); others once

    def __post_init__(self) -> None:
        if not self.directions:
            raise ValueError("directions is empty: name at least one, such as 'de-en'")
        for name in (
            "max_updates",
            "tokens_per_batch",
            "evaluate_every",
            "save_every",
            "dev_sentences",
            "max_pair_length",
        ):
            check_whole_number(name, getattr(self, name), 1)
        check_whole_number("warmup_updates", self.warmup_updates, 0)
        check_whole_number("cooldown_updates", self.cooldown_updates, 0, self.max_updates)
        check_whole_number("seed", self.seed, 0)
        for name, times in self.repeats:
            if not isinstance(times, (int, float)) or not times >= 0:
                raise ValueError(f"a corpus is seen 0 times an epoch or more often, found {name} {times!r}")
        for name in ("label_smoothing", "average_decay"):
            check_fraction(name, getattr(self, name))
        for name in ("learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, found {getattr(self, name)!r}")

    def learning_rate_at(self, update: int) -> float:
        """Return the learning rate of an update, counted from 1.

        Linear warm-up, then the inverse square root (Vaswani et al. 2017, equation 3), times a linear decay to zero
        over the last `cooldown_updates`. Without warm-up the rate is constant until the cool-down. Before the cool-down
        it does not depend on max_updates, so a run may be extended.
        """
        rate = self.learning_rate
        if self.warmup_updates:
            rate *= min(update / self.warmup_updates, (self.warmup_updates / update) ** 0.5)
        remaining = self.max_updates - update + 1
        return rate * min(1.0, remaining / (self.cooldown_updates + 1))
