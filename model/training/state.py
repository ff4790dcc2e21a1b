"""The state of a training run in one file, and its log."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from attention_atlas.model.files import replace_file, value_errors
from attention_atlas.model.nets.transformer import Transformer

POSITION = ("update", "epoch", "batch", "tokens", "seconds")
DAMAGE = (SafetensorError, OSError, KeyError, TypeError, RuntimeError, json.JSONDecodeError)  # errors of a damaged file


class TrainingState:
    """The weights, their moving average, the optimiser's moments, the position in the data and the random states.

    It is saved atomically in one safetensors file, so a killed process leaves the last state or the new one.
    """

    def __init__(self, model: Transformer, optimizer: torch.optim.Adam, average_decay: float) -> None:
        self.model, self.optimizer, self.average_decay = model, optimizer, average_decay
        self.update = 0  # finished updates
        self.epoch = 0
        self.batch = 0  # batches of this epoch already used
        # Of the minimised loss, and of the cross-entropy without label smoothing.
        self.loss_sum = torch.zeros(2, device=next(model.parameters()).device)
        self.start_window()
        self.average = [p.detach().clone() for p in model.parameters()] if average_decay else []

    def start_window(self) -> None:
        """Reset the sums for the next line of the log: loss, target tokens and seconds of training."""
        self.loss_sum.zero_()
        self.tokens, self.seconds = 0, 0.0

    @torch.no_grad()
    def update_average(self) -> None:
        """Move the average towards the weights, faster in the first updates so that the initial weights are
        forgotten."""
        if self.average:
            decay = min(self.average_decay, (1 + self.update) / (10 + self.update))
            torch._foreach_lerp_(self.average, list(self.model.parameters()), 1.0 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their average, in place; a second call undoes it."""
        for parameter, average in zip(self.model.parameters(), self.average):
            weights = parameter.clone()
            parameter.copy_(average)
            average.copy_(weights)

    def save(self, path: Path) -> None:
        tensors = {}
        for i, (name, parameter) in enumerate(self.model.named_parameters()):
            tensors[f"weight.{name}"] = parameter.detach()
            if self.average:
                tensors[f"average.{name}"] = self.average[i]
            for moment, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"{moment}.{name}"] = value
        tensors["random.cpu"] = torch.get_rng_state()
        if (kind := self.loss_sum.device.type) != "cpu":
            tensors[f"random.{kind}"] = torch.get_device_module(kind).get_rng_state()
        position = json.dumps({name: getattr(self, name) for name in POSITION} | {"loss_sum": self.loss_sum.tolist()})
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        replace_file(path, lambda partial: save_file(tensors, partial, metadata={"place": position}))

    @torch.no_grad()
    def load(self, path: Path) -> None:
        """Load a saved state. Raises ValueError if the file is missing, damaged or of another model."""
        with value_errors(f"{path} is not the state of this run", *DAMAGE), safe_open(path, framework="pt") as file:
            position = json.loads(file.metadata()["place"])
            self._load_tensors(file)
            self.update, self.epoch, self.batch = position["update"], position["epoch"], position["batch"]
        self.tokens, self.seconds = position.get("tokens", 0), position.get("seconds", 0.0)  # older states lack them
        self.loss_sum.copy_(torch.tensor(position.get("loss_sum", 0.0)))  # a number in older states

    def _load_tensors(self, file) -> None:
        for i, (name, parameter) in enumerate(self.model.named_parameters()):
            parameter.copy_(file.get_tensor(f"weight.{name}"))
            if self.average:
                self.average[i].copy_(file.get_tensor(f"average.{name}"))
            self.optimizer.state[parameter] = {
                moment: file.get_tensor(f"{moment}.{name}").to(parameter.device)
                for moment in ("step", "exp_avg", "exp_avg_sq")
            }
        torch.set_rng_state(file.get_tensor("random.cpu"))
        kind = self.loss_sum.device.type
        if kind != "cpu" and f"random.{kind}" in file.keys():
            torch.get_device_module(kind).set_rng_state(file.get_tensor(f"random.{kind}"))


class Log:
    """The log metrics.jsonl. Opened at an update, it drops later lines, which a killed run may have left."""

    def __init__(self, path: Path, update: int) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        earlier = [f"{line}\n" for line in lines if _update_of(line) <= update]
        replace_file(path, lambda partial: partial.write_text("".join(earlier)))

    def write(self, **values: object) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


def _update_of(line: str) -> float:
    try:
        return json.loads(line)["update"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return float("inf")  # an incomplete line of a killed run
