"""What passes hold at named places: a batch of sentences read at once, forced along their targets.

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
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.places.visit import Kept
from attention_atlas.model.nets.sweep import Changes, Sweep, joined
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace import check_count, check_sequence
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run"]

Item = TypeVar("Item")

FLOAT = 4  # bytes
AT_ONCE = 1024  # sentences that are translated together, of any number that stream


@dataclass(frozen=True, eq=False)
class Run:
    """run[name] is the tensor of a place, with the axes that the registry says; rows beyond a sentence are padding.

    source_ids, target_ids   of each sentence; the decoder read `<s>` and the target's ids but the last
    source_mask, mask        bool [batch, position], True at a source's, and at a target's, own rows
    """

    tensors: dict[str, Tensor]
    source_ids: tuple[tuple[int, ...], ...]
    target_ids: tuple[tuple[int, ...], ...]
    source_mask: Tensor
    mask: Tensor
    tokens: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()  # of each sentence: source, and what was read

    @property
    def names(self) -> tuple[str, ...]:
        """The places that were kept, in the order of the pass."""
        return tuple(self.tensors)

    def __getitem__(self, name: str) -> Tensor:
        """ValueError for a place that was not kept."""
        if name not in self.tensors:
            raise ValueError(f"{name!r} was not kept: there are {', '.join(self.tensors)}")
        return self.tensors[name]

    def __len__(self) -> int:
        return len(self.source_ids)

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the places, with their shapes."""
        rows = "".join(f"<tr><td>{name}</td><td>{list(held.shape)}</td></tr>" for name, held in self.tensors.items())
        return f"<p>{len(self)} sentences</p><table>{rows}</table>"

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """A pandas table of a place without heads: a line a token, `sentence`, `position` and `token`, then a column a
        number. Without a name of all that was kept, the column `place` before them. ValueError for a place with heads,
        and for places of several widths."""
        import pandas as pd  # nothing else here needs it

        if name is None:
            if len({tensor.shape[-1] for tensor in self.tensors.values()}) > 1:
                raise ValueError(f"name one place: {sorted(self.names)} have not the same width")
            tables = [self.to_frame(place) for place in self.names]
            return pd.concat(tables, keys=self.names, names=["place"]).reset_index(level="place").reset_index(drop=True)
        tensor = self[name]
        if tensor.ndim != 3 or len(tensor) != len(self):
            raise ValueError(f"{name} is no row a token: its shape is {list(tensor.shape)}")
        mask = self.source_mask if name.startswith(Side.ENCODER.value) else self.mask
        sentence, position = mask.nonzero().cpu().unbind(1)
        side = 0 if name.startswith(Side.ENCODER.value) else 1
        tokens = [self.tokens[s][side][p] for s, p in zip(sentence.tolist(), position.tolist())]
        told = pd.DataFrame({"sentence": sentence.numpy(), "position": position.numpy(), "token": tokens})
        return told.join(pd.DataFrame(tensor[mask].detach().float().cpu().numpy()))


def chunks(
    config: ModelConfig, names: Sequence[str], lengths: Sequence[tuple[int, int]], room: int
) -> Iterator[list[int]]:
    """Numbers of sentences, in their order, whose kept tensors have at most `room` bytes together (one sentence at the
    least). lengths: of each sentence's source and target."""
    chosen: list[int] = []
    longest = (0, 0)
    for number, sides in enumerate(lengths):
        grown = tuple(map(max, longest, sides))
        if chosen and (len(chosen) + 1) * kept_bytes(config, names, *grown) > room:
            yield chosen
            chosen, grown = [], sides
        chosen.append(number)
        longest = grown
    if chosen:
        yield chosen


def batched(items: Iterable, size: int) -> Iterator[tuple]:
    """`size` of them at a time, and what is left. ValueError for a size below 1."""
    remaining, size = iter(items), check_count("batch size", size)
    while part := tuple(islice(remaining, size)):
        yield part


def paired(texts: Iterable[Item], targets: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """A text and its target, one pair after the other. ValueError, in words, where one side has more."""
    for number, (text, target) in enumerate(
        zip_longest(check_sequence("texts", texts), check_sequence("targets", targets))
    ):
        if text is None or target is None:
            raise ValueError(f"each text has its target: one side ended after {number}")
        yield text, target


def kept_bytes(config: ModelConfig, names: Sequence[str], source: int, target: int) -> int:
    """What these places hold of one sentence."""
    total = 0
    for place in registry.matching(names, config):
        own = config.of(place.stack)
        sizes = {
            "heads": own.num_heads,
            "d_head": own.d_head,
            "d_model": config.d_model,
            "d_feedforward": own.d_feedforward,
            "vocabulary": config.num_target_tokens,
            "batch": 1,
            "1": 1,
        }
        rows = source if place.side is Side.ENCODER else target
        keys = source if ".cross." in place.name or place.side is Side.ENCODER else target
        numbers = 1
        for axis in place.axes:
            numbers *= sizes.get(axis) or (keys if axis == "key" else rows)
        total += FLOAT * numbers
    return total


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
    """One teacher-forced pass over all of them. names: places, or globs. grad: whether gradients flow, by any tensor
    that is kept. ValueError for a name that there is not. Seven parameters: a pass's, and what is asked of it."""
    device, pad_id = model.embedding.weight.device, model.config.pad_id
    kept = Kept(tuple(place.name for place in registry.matching(names, model.config)))
    read = [[begin_id, *ids[:-1]] for ids in targets]
    source, target = (pad([list(ids) for ids in side], pad_id).to(device) for side in (sources, read))
    with torch.inference_mode(False), nullcontext() if grad else torch.no_grad():
        output = model(source, target, interventions=joined(interventions, Sweep(kept=kept)))
        if "logits" in kept.names:
            _ = output.logits  # computed, and so kept, when it is asked for
    lengths = [[len(ids) for ids in side] for side in (sources, targets)]
    source_mask, mask = (
        torch.arange(max(side), device=device) < torch.tensor(side, device=device)[:, None] for side in lengths
    )
    return Run(
        {name: kept.found[name] for name in kept.names},
        tuple(map(tuple, sources)),
        tuple(map(tuple, targets)),
        source_mask,
        mask,
    )
