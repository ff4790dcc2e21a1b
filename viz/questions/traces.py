"""Caches of translations and of recorded passes, by their addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attention_atlas.model.analysis.again import recorded
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
    """Bytes that each cache may take: of translations, of recorded passes, and of visitors' own networks."""

    traces: int = 256_000_000
    passes: int = 128_000_000
    toys: int = 128_000_000


class Retrained(Exception):
    """A toy's weights, trained here on another kind of CPU, differ from an address's. `address` names these."""

    def __init__(self, address: Address) -> None:
        super().__init__("a toy has other weights here")
        self.address = address


class Traces:
    """Finds translations by their addresses. It keeps those that were used last, and makes any other again."""

    def __init__(self, translators: Translators, most: CacheBytes = CacheBytes()) -> None:
        self.translators, self.toys = translators, Toys(most.toys)
        self._kept: ByteCache[TranslationTrace] = ByteCache(most.traces, size_of)
        self._passes: ByteCache[tuple[ForwardOutput, int]] = ByteCache(most.passes, lambda value: value[1])

    def add(self, trace: TranslationTrace) -> None:
        """Keep a translation that was just made."""
        if (address := Address.of(trace)) is not None:
            self._kept.put(address.key, trace)

    def find(self, address: Address) -> TranslationTrace:
        """The translation at this address. A Refusal for a model that is not served, ValueError for what it cannot
        translate, Busy while too many wait; ToyNeeded and Retrained for a toy."""
        if address.recipe is not None:
            self.translator_of(address)  # raises; questions about the translation need the model, too
        return self._kept.get_or_compute(address.key, lambda: self._made(address))

    def recorded(self, translator: Translator, trace: TranslationTrace) -> ForwardOutput:
        """Return the recorded pass over a translation, under its interventions; errors as in model.analysis.again."""

        def compute() -> tuple[ForwardOutput, int]:
            output = recorded(translator, trace)
            logits = 4 * len(trace.target_ids) * len(translator.tokenizer)  # computed when they are first asked for
            return output, output.nbytes + logits

        address = Address.of(trace)
        return (compute() if address is None else self._passes.get_or_compute(address.key, compute))[0]

    def _made(self, address: Address) -> TranslationTrace:
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
        self.add(trace)  # under the address that has its target, too
        return trace

    def translator_of(self, address: Address) -> tuple[Translator, str]:
        """The model and direction of an address. A Refusal if it is not served; ToyNeeded, Retrained for a toy."""
        if address.recipe is not None:
            toy = self.toys.find(address.recipe)
            self.translators.lend(toy)
            if address.digest not in ("", toy.digest):
                # Other weights may write another translation, so the text is translated again.
                search = replace(address.decoding or GREEDY, given=0)
                raise Retrained(replace(address, digest=toy.digest, target_ids=None, decoding=search))
            return toy, toy.directions[0]
        if address.digest:
            if (made := self.translators.made(address.digest)) is not None:
                return made, address.direction
            raise not_served(address.checkpoint)
        route = self.translators.routes[0]
        if address.direction:
            route = self.translators.find(address.direction, address.checkpoint)
        if route is None:
            raise Refusal("No model that is served here translates in this direction.")
        return self.translators[route.label], route.direction


def size_of(trace: TranslationTrace) -> int:
    """Bytes of a translation's arrays."""
    return weight_bytes(trace) + sum(
        array.nbytes for array in (trace.log_probability, trace.top_ids, trace.top_probabilities)
    )


def weight_bytes(trace: TranslationTrace) -> int:
    """Bytes of a translation's maps."""
    return sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
