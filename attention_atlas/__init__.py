"""Look inside a translation Transformer: every head, every step, verifiable.

from attention_atlas import Translator, viz

translator = Translator.load("de-en")
viz.explore(translator.translate("Ich möchte ein Bier, bitte."))
"""

import importlib
from pathlib import Path

__version__ = "0.2.0"
__all__ = ["Translator", "viz"]

# In a wheel, model/ and viz/ lie inside this package; in a checkout, beside it.
if not (Path(__file__).parent / "model").is_dir():
    __path__.append(str(Path(__file__).resolve().parent.parent))


def __getattr__(name: str) -> object:
    # Not before they are asked for: torch takes seconds, which `attention-atlas --help` need not wait for.
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name!r}: it has {', '.join(__all__)}")
    if name == "viz":
        return importlib.import_module("attention_atlas.viz")
    return importlib.import_module("attention_atlas.model.translator").Translator
