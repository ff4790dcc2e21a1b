"""The supported families, by the model_type of a folder's config.json."""

from __future__ import annotations

from attention_atlas.model.families import bart, m2m_100, marian, mbart, t5
from attention_atlas.model.families.family import Family
from attention_atlas.model.families.settings import Settings

FAMILIES: dict[str, Family] = {
    f.model_type: f for f in (marian.FAMILY, m2m_100.FAMILY, mbart.FAMILY, *t5.FAMILIES, *bart.FAMILIES)
}
# Why some well-known families are not supported.
UNSUPPORTED = {
    "nllb-moe": "its layers are a mixture of experts",
    "led": "its encoder's attention has windows",
    "longt5": "its encoder's attention has windows",
    "pegasus_x": "its encoder's attention has windows",
    "bigbird_pegasus": "its encoder's attention has windows",
    "switch_transformers": "its layers are a mixture of experts",
    "prophetnet": "its decoder predicts several tokens at once",
    "whisper": "it reads speech",
    "speech_to_text": "it reads speech",
    "encoder-decoder": "its two sides are models of their own",
    "vision-encoder-decoder": "it reads pictures",
    "fsmt": "its vocabularies are Moses'",
    "seamless_m4t": "it reads speech",
}


def family_of(settings: Settings) -> Family:
    """Return the family by model_type and architectures. Raises ValueError with both if none has them."""
    model_type, architectures = settings.config.get("model_type"), settings.config.get("architectures")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    names = [*map(str, architectures)] if isinstance(architectures, list) else []
    if family is None or (names and not set(names) & set(family.architectures)):
        reason = f": {UNSUPPORTED[model_type]}" if isinstance(model_type, str) and model_type in UNSUPPORTED else ""
        raise ValueError(
            f"{settings.path} is a {model_type!r:.60} ({', '.join(names)[:120] or 'no architecture named'}), "
            f"which is not supported{reason}. Supported are "
            + "; ".join(f"{f.model_type} ({', '.join(f.architectures)})" for f in FAMILIES.values())
            + ". Any other encoder-decoder of transformers can leave traces: attention_atlas.model.foreign.trace_of."
        )
    return family
