"""Look inside a translation Transformer: every head, every step, verifiable.

from attention_atlas import Translator, viz

translator = Translator.load("de-en")
viz.explore(translator.translate("Ich möchte ein Bier, bitte."))
"""

import importlib

__version__ = "0.2.0"
__all__ = ["Translator", "viz"]


def __getattr__(name: str) -> object:
    # Not before they are asked for: torch takes seconds, which `attention-atlas --help` need not wait for.
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name!r}: it has {', '.join(__all__)}")
    from attention_atlas.model.program import HOME

    return (
        importlib.import_module(f"{HOME}viz")
        if name == "viz"
        else importlib.import_module(f"{HOME}model.translator").Translator
    )
