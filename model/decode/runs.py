"""Teacher-forced passes over many sentences: the tensors at named places, and the log-probabilities of targets.

>>> from attention_atlas.model.translator import Translator
>>> translator = Translator.load("checkpoints/de-en", device="cpu")
>>> run = translator.run(["Der Hund schläft.", "Es regnet."], names=["decoder.*.resid_post", "decoder.0.cross.pattern"])
>>> len(run), run.names[0], run["decoder.1.resid_post"].shape[:2] == run.mask.shape
(2, 'decoder.0.cross.pattern', True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice, zip_longest
from math import prod
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.places.visit import Capture
from attention_atlas.model.nets.sweep import Changes, Sweep, combine
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace import check_count, check_sequence
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run"]

Item = TypeVar("Item")

FLOAT = 4  # bytes
AT_ONCE = 1024  # sentences of a stream that are translated together


@dataclass(frozen=True, eq=False)
class Run:
    """The tensors of a batch at named places: run[name] has the axes of the place; rows beyond a sentence are padding.

    tensors                  by name of the place, in the order of the pass
    source_ids, target_ids   of each sentence; the decoder read `<s>` and all target ids but the last
    source_mask, mask        bool [batch, position], True at the rows of a source, and of a target
    tokens                   of each sentence: the source's tokens, and those that the decoder read
    """

    tensors: dict[str, Tensor]
    source_ids: tuple[tuple[int, ...], ...]
    target_ids: tuple[tuple[int, ...], ...]
    source_mask: Tensor
    mask: Tensor
    tokens: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The captured places, in the order of the pass."""
        return tuple(self.tensors)

    def __getitem__(self, name: str) -> Tensor:
        """Return the tensor of a place. Raises ValueError for a place that was not captured."""
        if name not in self.tensors:
            raise ValueError(f"{name!r} was not captured: there are {', '.join(self.tensors)}")
        return self.tensors[name]

    def __len__(self) -> int:
        return len(self.source_ids)

    def _repr_html_(self) -> str:
        """Return the places and their shapes, for a notebook."""
        rows = "".join(
            f"<tr><td>{name}</td><td>{list(tensor.shape)}</td></tr>" for name, tensor in self.tensors.items()
        )
        return f"<p>{len(self)} sentences</p><table>{rows}</table>"

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Return a pandas table of a place without heads, one line a token.

        The columns are `sentence`, `position` and `token`, then one for each number. Without a name the table holds all
        places, after a column `place`. Raises ValueError for a place with heads, and for places of several widths.
        """
        import pandas as pd  # imported when it is used: it takes long, and most programs need no table

        if name is None:
            if len({tensor.shape[-1] for tensor in self.tensors.values()}) > 1:
                raise ValueError(f"name one place: {sorted(self.names)} have not the same width")
            tables = [self.to_frame(place) for place in self.names]
            return pd.concat(tables, keys=self.names, names=["place"]).reset_index(level="place").reset_index(drop=True)
        tensor = self[name]
        if tensor.ndim != 3 or len(tensor) != len(self):
            raise ValueError(f"{name} has no single row for each token: its shape is {list(tensor.shape)}")
        is_source = name.startswith(Side.ENCODER.value)
        mask, side = (self.source_mask, 0) if is_source else (self.mask, 1)
        sentence, position = mask.nonzero().cpu().unbind(1)
        tokens = [self.tokens[s][side][p] for s, p in zip(sentence.tolist(), position.tolist())]
        index = pd.DataFrame({"sentence": sentence.numpy(), "position": position.numpy(), "token": tokens})
        return index.join(pd.DataFrame(tensor[mask].detach().float().cpu().numpy()))


def run(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    names: Sequence[str],
    *,
    begin_id: int,
    interventions: Changes = NO_INTERVENTIONS,
    grad: bool = False,
) -> Run:
    """Run one teacher-forced pass over a batch and return its tensors at places.

    names: places or globs. grad: let gradients flow to the captured tensors. Raises ValueError for an unknown name.
    """
    device, pad_id = model.embedding.weight.device, model.config.pad_id
    capture = Capture(tuple(place.name for place in registry.matching(names, model.config)))
    decoder_ids = [[begin_id, *ids[:-1]] for ids in targets]
    source, target = (pad([list(ids) for ids in side], pad_id).to(device) for side in (sources, decoder_ids))
    with torch.inference_mode(False), nullcontext() if grad else torch.no_grad():
        output = model(source, target, interventions=combine(interventions, Sweep(capture=capture)))
        if "logits" in capture.names:
            _ = output.logits  # logits are computed, and captured, when they are read
    lengths = [[len(ids) for ids in side] for side in (sources, targets)]
    source_mask, mask = (
        torch.arange(max(side), device=device) < torch.tensor(side, device=device)[:, None] for side in lengths
    )
    return Run(
        {name: capture.tensors[name] for name in capture.names},
        tuple(map(tuple, sources)),
        tuple(map(tuple, targets)),
        source_mask,
        mask,
    )


def batched(items: Iterable, size: int) -> Iterator[tuple]:
    """Yield `size` items at a time, and the rest. Raises ValueError for a size below 1."""
    remaining, size = iter(items), check_count("batch size", size)
    while part := tuple(islice(remaining, size)):
        yield part


def paired(texts: Iterable[Item], targets: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """Yield each text with its target. Raises ValueError where one side has more items."""
    both = zip_longest(check_sequence("texts", texts), check_sequence("targets", targets))
    for number, (text, target) in enumerate(both):
        if text is None or target is None:
            raise ValueError(f"each text has its target: one side ended after {number}")
        yield text, target


def chunks(
    config: ModelConfig, names: Sequence[str], lengths: Sequence[tuple[int, int]], max_bytes: int
) -> Iterator[list[int]]:
    """Yield the numbers of sentences, in order, whose tensors take at most `max_bytes` (at least one sentence).

    lengths: of each sentence's source and target.
    """
    chunk: list[int] = []
    longest = (0, 0)
    for number, sides in enumerate(lengths):
        grown = tuple(map(max, longest, sides))
        if chunk and (len(chunk) + 1) * _captured_bytes(config, names, *grown) > max_bytes:
            yield chunk
            chunk, grown = [], sides
        chunk.append(number)
        longest = grown
    if chunk:
        yield chunk


def _captured_bytes(config: ModelConfig, names: Sequence[str], source: int, target: int) -> int:
    """Return the bytes of these places for one sentence of these lengths."""
    total = 0
    for place in registry.matching(names, config):
        stack = config.of(place.stack)
        sizes = {
            "heads": stack.num_heads,
            "d_head": stack.d_head,
            "d_model": config.d_model,
            "d_feedforward": stack.d_feedforward,
            "vocabulary": config.num_target_tokens,
            "batch": 1,
            "1": 1,
            "key": source if ".cross." in place.name or place.side is Side.ENCODER else target,
        }
        rows = source if place.side is Side.ENCODER else target
        total += FLOAT * prod(sizes.get(axis, rows) for axis in place.axes)
    return total
