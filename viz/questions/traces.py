"""Caches of translations, recorded passes and visitors' own networks, by their addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.serve.caches import ByteCache
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import GREEDY
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.training.toy.toys import Toys
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.scene import not_served


@dataclass(frozen=True)
class CacheBytes:
    """The maximum bytes of the caches of translations, recorded passes and visitors' own networks."""

    traces: int = 256_000_000
    passes: int = 128_000_000
    toys: int = 128_000_000


class Retrained(Exception):
    """A toy that was trained again has other weights than an address names, since it was trained on another kind of
    CPU. `address` names the new weights."""

    def __init__(self, address: Address) -> None:
        super().__init__("a toy has other weights here")
        self.address = address


class Traces:
    """A cache of translations by their addresses. A translation that is not in it is computed again."""

    def __init__(self, translators: Translators, max_bytes: CacheBytes = CacheBytes()) -> None:
        self.translators, self.toys = translators, Toys(max_bytes.toys)
        self._traces: ByteCache[TranslationTrace] = ByteCache(max_bytes.traces, trace_bytes)
        self._passes: ByteCache[tuple[ForwardOutput, int]] = ByteCache(max_bytes.passes, lambda value: value[1])

    def add(self, trace: TranslationTrace) -> None:
        """Add a translation under its address."""
        if (address := Address.of(trace)) is not None:
            self._traces.put(address.key, trace)

    def find(self, address: Address) -> TranslationTrace:
        """Return the translation at an address.

        Raises Refusal for a model that is not served, ValueError for a text that it cannot translate, Busy if too many
        requests wait, and for a toy ToyNeeded or Retrained.
        """
        if address.recipe is not None:
            self.translator_of(address)  # raises ToyNeeded: questions about the translation need the model, too
        return self._traces.get_or_compute(address.key, lambda: self._translate(address))

    def recorded(self, translator: Translator, trace: TranslationTrace) -> ForwardOutput:
        """Return the recorded pass over a translation under its interventions. Raises as model.analysis.rerun does."""

        def compute() -> tuple[ForwardOutput, int]:
            output = record_pass(translator, trace)
            logits = 4 * len(trace.target_ids) * len(translator.tokenizer)  # computed when first used
            return output, output.nbytes + logits

        address = Address.of(trace)
        return (compute() if address is None else self._passes.get_or_compute(address.key, compute))[0]

    def _translate(self, address: Address) -> TranslationTrace:
        translator, direction = self.translator_of(address)
        decoding, options = address.decoding, {}
        if address.target_ids is not None:
            options = {"target": address.target_ids}
        elif decoding is not None:
            options = {"beam": decoding.width, "length_penalty": decoding.length_penalty}
        trace = translator.trace(
            address.text, direction, source_ids=address.source_ids, interventions=address.interventions, **options
        )
        if address.target_ids is not None:
            return replace(trace, decoding=decoding)
        self.add(trace)  # also under the address with its target
        return trace

    def translator_of(self, address: Address) -> tuple[Translator, str]:
        """Return the model and direction of an address. Raises Refusal if no such model is served, and for a toy
        ToyNeeded or Retrained."""
        if address.recipe is not None:
            toy = self.toys.find(address.recipe)
            self.translators.lend(toy)
            if address.digest not in ("", toy.digest):
                # Other weights may write another translation: the new address leaves the target open.
                search = replace(address.decoding or GREEDY, given=0)
                raise Retrained(replace(address, digest=toy.digest, target_ids=None, decoding=search))
            return toy, toy.directions[0]
        if address.digest:
            if (translator := self.translators.by_digest(address.digest)) is not None:
                return translator, address.direction
            raise not_served(address.checkpoint)
        route = self.translators.routes[0]
        if address.direction:
            route = self.translators.find(address.direction, address.checkpoint)
        if route is None:
            raise Refusal("No model on this server translates in this direction.")
        return self.translators[route.label], route.direction


def trace_bytes(trace: TranslationTrace) -> int:
    """Return the bytes of a translation's arrays."""
    return weight_bytes(trace) + sum(
        array.nbytes for array in (trace.log_probability, trace.top_ids, trace.top_probabilities)
    )


def weight_bytes(trace: TranslationTrace) -> int:
    """Return the bytes of a translation's attention maps."""
    return sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
