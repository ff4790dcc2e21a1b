"""TranslationTrace: everything that a model computed for one sentence, as numpy arrays.

It is the one type that passes from the model to the pictures.

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

from attention_atlas.model.files import replace_file, value_errors
from attention_atlas.model.trace import decoding as decoding_file
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


Maps = AttentionMaps | Any  # None if the model has no such attention; `kinds` lists those that it has


@dataclass(frozen=True, eq=False)
class TranslationTrace:
    """The translation of one sentence, with the attention maps and probabilities of every step.

    Row t of decoder_self and cross reads decoder_inputs[t] and predicts target_tokens[t]; both tuples have the same
    length. chosen_rank counts from 1; log_probability is natural and entropy in bits, both of the full next-token
    distribution. `finished` is False if decoding stopped at its length limit, so that target_tokens does not end in
    `</s>`. A kind of attention that the model lacks is None.
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
    seconds: float  # wall-clock time of its batch
    device: str
    checkpoint: str
    digest: str  # first 16 hex digits of the weights file's SHA-256
    interventions: Interventions = NO_INTERVENTIONS
    attention_only: bool = False  # True for a model of another library, which cannot be run from here
    decoding: Decoding | None = None  # None: unknown, as in old files
    alignment: AttentionMaps | None = None
    recipe: ToyRecipe | None = None  # how to train the model again if it is a toy; not part of files
    unique: str = field(init=False, repr=False)  # a random text if it cannot be repeated, else ""

    def __post_init__(self) -> None:
        # A field, so that copies in other processes have the same key.
        is_repeatable = bool(self.digest) and self.interventions.is_repeatable
        object.__setattr__(self, "unique", "" if is_repeatable else uuid.uuid4().hex)
        steps = len(self.target_ids)
        lengths = {"source_tokens": len(self.source_ids)} | dict.fromkeys(
            (
                "decoder_ids",
                "decoder_inputs",
                "target_tokens",
                "top_ids",
                "top_tokens",
                "top_probabilities",
                "chosen_rank",
                "entropy",
                "log_probability",
            ),
            steps,
        )
        for name, expected in lengths.items():
            if (length := len(getattr(self, name))) != expected:
                raise ValueError(f"{name} has {length} entries, expected {expected}")
        for kind in self.kinds:
            maps = self.maps(kind)
            if (maps.query_tokens, maps.key_tokens) != tokens_of(kind, self.source_tokens, self.decoder_inputs):
                raise ValueError(f"the tokens of the {kind.value} maps differ from those of the trace")

    @property
    def key(self) -> str:
        """An identifier of everything that determines the trace: the model, its input and output, and every change to
        it.

        It is equal for equal translations by equal models, whatever the batch. It is unique if the interventions cannot
        be repeated or the model has no digest. 32 hex digits.
        """
        names = ("checkpoint", "digest", "direction", "source_ids", "target_ids", "unique")
        values = {
            **{name: getattr(self, name) for name in names},
            "decoding": decoding_file.to_plain(self.decoding),
            "interventions": interventions_file.to_plain(self.interventions),
        }
        text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def decoded_by(self) -> Words:
        """How the target was decoded, in words."""
        return describe_decoding(self.decoding, len(self.target_ids))

    @property
    def kinds(self) -> tuple[AttentionKind, ...]:
        """The kinds of attention that the trace has maps of."""
        return tuple(kind for kind in AttentionKind if getattr(self, kind.value) is not None)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.direction} by {self.checkpoint}: {self.source_text!r:.80} → "
            f"{self.translation!r:.80}, {len(self.target_ids)} tokens>"
        )

    def _repr_html_(self) -> str:
        """The notebook's view: the translation and the probability of each token."""
        note = (
            f"{self.direction}, {self.checkpoint}; log-probability {float(self.log_probability.sum()):.2f}, "
            f"decoding: {self.decoded_by}"
        )
        return _table(f"{self.source_text} → {self.translation}", self.target_tokens, self.log_probability, note)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with a row for each step: token, probability, rank, entropy in bits."""
        import pandas as pd  # only needed here

        return pd.DataFrame(
            {
                "token": self.target_tokens,
                "probability": np.exp(self.log_probability.astype(np.float64)),
                "rank": self.chosen_rank,
                "entropy": self.entropy,
            }
        )

    def save(self, path: str | Path) -> None:
        """Write the trace, exact to the last bit, as NAME.json or NAME.npz (model.trace.storage).

        An existing file is replaced once the new one is complete. ValueError for any other name.
        """
        from attention_atlas.model.trace import storage  # it imports this module

        if _is_json(path):
            text = storage.to_json(self).encode()
            replace_file(Path(path), lambda partial: partial.write_bytes(text))
        elif Path(path).suffix.lower() == ".npz":
            replace_file(Path(path), lambda partial: storage.write_npz(self, partial))
        else:
            raise ValueError(f"a trace is written as NAME.json or NAME.npz, found {str(path)!r:.80}")

    @staticmethod
    def load(path: str | Path) -> TranslationTrace:
        """Read a file of save(). ValueError, naming the file, for any other file."""
        from attention_atlas.model.trace import storage  # it imports this module

        data = Path(path).read_bytes()
        with value_errors(path):
            return storage.from_json(data.decode("utf-8")) if _is_json(path) else storage.from_npz(data)

    def maps(self, kind: Kind) -> AttentionMaps:
        """Return the maps of one kind, such as "cross". ValueError if the trace has none of this kind."""
        kind = AttentionKind(kind)
        maps = getattr(self, kind.value)
        if maps is None:
            raise ValueError(f"{self.checkpoint} has no {kind.value} attention")
        return maps


def check_trace(trace: object) -> TranslationTrace:
    """Return the trace unchanged. ValueError for any other type."""
    if not isinstance(trace, TranslationTrace):
        raise ValueError(f"expected a trace, as returned by translate(), found {trace!r:.80}")
    return trace


def _is_json(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".json"


def tokens_of(
    kind: AttentionKind, source_tokens: tuple[str, ...], decoder_inputs: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the query tokens and the key tokens of a kind's maps."""
    queries = source_tokens if kind.side == Side.ENCODER else decoder_inputs
    return queries, decoder_inputs if kind is AttentionKind.DECODER_SELF else source_tokens


def _table(source: str, tokens: tuple[str, ...], log_probability: np.ndarray, note: str) -> str:
    """Return HTML with the source above the written tokens, each with its probability as a number and as a bar.

    log_probability: float32 [step], natural. All text is escaped. Colours are the notebook's.
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
