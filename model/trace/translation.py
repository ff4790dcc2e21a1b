"""What a translation left behind, as numpy arrays: the one type that crosses from the model to the pictures.

Importable without torch.

>>> from attention_atlas.model.translator import Translator
>>> trace = Translator.load("checkpoints/de-en", device="cpu").translate("Der Hund schläft.")
>>> len(trace.target_tokens) == len(trace.decoder_inputs) == len(trace.log_probability)
True
>>> [kind.value for kind in trace.kinds]
['encoder_self', 'decoder_self', 'cross']
"""

from __future__ import annotations

import hashlib
import html
import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_atlas.model.files import replace_file
from attention_atlas.model.trace import decoding as decoding_module
from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.decoding import Decoding, describe_decoding
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS, Interventions
from attention_atlas.model.trace.kinds import AttentionKind, Kind, Side
from attention_atlas.model.trace.language import Words
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.model.trace.recipe import ToyRecipe

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TranslationTrace"]


@dataclass(frozen=True)
class TraceIdentity:
    """The model, what it read and wrote, and every change to it. Hashable, and JSON-ready as to_plain().

    decoding       with the number of forced tokens (`given`); None: not known
    interventions  sets have no order, edits do; numbers are float64, so that 1 and 1.0 are equal, and 0.0 and -0.0
    unique         of a trace whose interventions cannot be run again (functions, tensors, words): different each
                   time. Otherwise empty
    """

    checkpoint: str
    digest: str
    direction: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    decoding: Decoding | None = None
    interventions: Interventions = NO_INTERVENTIONS
    unique: str = ""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready. Equal identities give the same JSON text."""
        return {
            "checkpoint": self.checkpoint,
            "digest": self.digest,
            "direction": self.direction,
            "source_ids": list(self.source_ids),
            "target_ids": list(self.target_ids),
            "decoding": decoding_module.to_plain(self.decoding),
            "interventions": interventions_file.to_plain(self.interventions),
            "unique": self.unique,
        }

    @property
    def key(self) -> str:
        """A short name: 32 hex digits of the SHA-256 of its JSON text."""
        text = json.dumps(self.to_plain(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


Maps = AttentionMaps | Any  # None where a model has no such attention, which whoever reads `kinds` knows


@dataclass(frozen=True, eq=False)
class TranslationTrace:
    """One sentence's way through the model.

    Row t of decoder_self and cross READ decoder_inputs[t] and PREDICTED target_tokens[t]; both tuples have the
    same length. `finished` is False when decoding was stopped by its length limit (then target_tokens does not end
    in `</s>`). log_probability is natural, entropy in bits, both of the model's full next-token distribution;
    chosen_rank counts from 1. `interventions` is what was switched off or cut, so that it can be run again; false for
    the plain model. A model need not have every kind of attention: a kind without maps is None, and `kinds` lists
    those that are there.
    """

    source_text: str
    direction: str  # such as "de-en"
    source_ids: tuple[int, ...]
    source_tokens: tuple[str, ...]  # <2en> x1 .. xS </s>
    decoder_ids: tuple[int, ...]
    decoder_inputs: tuple[str, ...]  # <s> y1 .. yT
    target_ids: tuple[int, ...]
    target_tokens: tuple[str, ...]  # y1 .. yT </s>
    finished: bool
    translation: str
    encoder_self: Maps
    decoder_self: Maps
    cross: Maps
    top_ids: np.ndarray  # int32 [step, k], most probable first
    top_tokens: tuple[tuple[str, ...], ...]  # [step][k]
    top_probabilities: np.ndarray  # float32 [step, k]
    chosen_rank: np.ndarray  # int32 [step]
    entropy: np.ndarray  # float32 [step], bits
    log_probability: np.ndarray  # float32 [step], of target_ids
    seconds: float  # wall-clock time of the batch it was translated in
    device: str
    checkpoint: str
    digest: str  # first 16 hex digits of the weights file's SHA-256
    interventions: Interventions = NO_INTERVENTIONS
    attention_only: bool = False  # of a model that runs elsewhere: it can be looked at, and nothing tried on it
    decoding: Decoding | None = None  # how target_ids came about; None: not known, as in files of earlier versions
    alignment: AttentionMaps | None = None
    recipe: ToyRecipe | None = None  # of a toy: how its weights are trained again; files do not contain it
    unique: str = field(init=False, repr=False)  # of its identity, where nothing else tells it apart

    def __post_init__(self) -> None:
        # Kept with the trace, so that its copies in other processes have the same identity.
        is_repeatable = bool(self.digest) and self.interventions.is_repeatable
        object.__setattr__(self, "unique", "" if is_repeatable else uuid.uuid4().hex)
        steps = len(self.target_ids)
        lengths = {
            "source_tokens": (len(self.source_tokens), len(self.source_ids)),
            "decoder_ids": (len(self.decoder_ids), steps),
            "decoder_inputs": (len(self.decoder_inputs), steps),
            "target_tokens": (len(self.target_tokens), steps),
            "top_ids": (len(self.top_ids), steps),
            "top_tokens": (len(self.top_tokens), steps),
            "top_probabilities": (len(self.top_probabilities), steps),
            "chosen_rank": (len(self.chosen_rank), steps),
            "entropy": (len(self.entropy), steps),
            "log_probability": (len(self.log_probability), steps),
        }
        for name, (found, expected) in lengths.items():
            if found != expected:
                raise ValueError(f"{name} has {found} entries, expected {expected}")
        for kind in self.kinds:
            maps = self.maps(kind)
            if (maps.query_tokens, maps.key_tokens) != tokens_of(kind, self.source_tokens, self.decoder_inputs):
                raise ValueError(f"the tokens of the {kind.value} maps are not the trace's own")

    @property
    def identity(self) -> TraceIdentity:
        """What it follows from: equal for equal translations by equal models, in whatever batch they were made. A trace
        of functions, tensors or words, or of a model without a digest, has one of its own."""
        return TraceIdentity(
            self.checkpoint,
            self.digest,
            self.direction,
            self.source_ids,
            self.target_ids,
            self.decoding,
            self.interventions,
            self.unique,
        )

    @property
    def decoded_by(self) -> Words:
        """How its target was decoded, in words."""
        return describe_decoding(self.decoding, len(self.target_ids))

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The kinds of attention whose maps it holds."""
        return tuple(kind for kind in AttentionKind if getattr(self, kind.value) is not None)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.direction} by {self.checkpoint}: {self.source_text!r:.80} → "
            f"{self.translation!r:.80}, {len(self.target_ids)} tokens>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the translation, the probability of each token."""
        note = (
            f"{self.direction}, {self.checkpoint}; log-probability {float(self.log_probability.sum()):.2f}, "
            f"decoding: {self.decoded_by}"
        )
        return _table(f"{self.source_text} → {self.translation}", self.target_tokens, self.log_probability, note)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table, a line for each step: `token`, its `probability` and `rank`, the step's `entropy` in bits."""
        import pandas as pd  # nothing else here needs it

        return pd.DataFrame(
            {
                "token": self.target_tokens,
                "probability": np.exp(self.log_probability.astype(np.float64)),
                "rank": self.chosen_rank,
                "entropy": self.entropy,
            }
        )

    def save(self, path: str | Path) -> None:
        """Write it, exact to the last bit: as JSON where the name ends in .json, as NPZ where it ends in .npz
        (model.trace.storage). A file of this name is replaced once the new one is whole. ValueError for any other
        name."""
        from attention_atlas.model.trace import storage  # which knows this class

        if _is_json(path):
            text = storage.to_json(self).encode()
            replace_file(Path(path), lambda partial: partial.write_bytes(text))
        elif Path(path).suffix.lower() == ".npz":
            replace_file(Path(path), lambda partial: storage.write_npz(self, partial))
        else:
            raise ValueError(f"a trace is written as NAME.json or NAME.npz, found {str(path)!r:.80}")

    @staticmethod
    def load(path: str | Path) -> TranslationTrace:
        """Read a file of save(). ValueError, naming the file, if it is not one."""
        from attention_atlas.model.trace import storage  # which knows this class

        data = Path(path).read_bytes()
        try:
            return storage.from_json(data.decode("utf-8")) if _is_json(path) else storage.from_npz(data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def maps(self, kind: Kind) -> AttentionMaps:
        """Return the maps of one kind, such as "cross". ValueError if the trace has none of this kind."""
        found = getattr(self, AttentionKind(kind).value)
        if found is None:
            raise ValueError(f"{self.checkpoint} has no {AttentionKind(kind).value} attention")
        return found


def a_trace(found: object) -> TranslationTrace:
    """The trace itself. ValueError, in words, for anything else."""
    if not isinstance(found, TranslationTrace):
        raise ValueError(f"expected a trace, as of translate(), found {found!r:.80}")
    return found


def _is_json(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".json"


def tokens_of(
    kind: AttentionKind,
    source: tuple[str, ...],
    inputs: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The query and key tokens of a kind's maps: source, the encoder's tokens; inputs, those that the decoder reads."""
    return (source if kind.side == Side.ENCODER else inputs, inputs if kind is AttentionKind.DECODER_SELF else source)


def _table(source: str, tokens: tuple[str, ...], log_probability: np.ndarray, note: str) -> str:
    """The source above the tokens that were written, each with its probability in percent as a number and as a bar.

    log_probability: float32 [step], natural. Every text is escaped: none can become markup. Colours are the notebook's.
    """
    columns = []
    for token, probability in zip(tokens, np.exp(log_probability.astype(np.float64))):
        bar = f"linear-gradient(to right, rgba(86, 140, 220, .45) {100 * probability:.1f}%, transparent 0)"
        columns.append(
            (
                f'<td dir="auto" style="text-align: center">{html.escape(token)}</td>',
                f'<td style="text-align: center; background: {bar}">{100 * probability:.1f}%</td>',
            )
        )
    rows = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns))
    return (
        f'<div><p dir="auto">{html.escape(source)}</p><div style="overflow-x: auto"><table>{rows}</table></div>'
        f"<p>{html.escape(note)}</p></div>"
    )
