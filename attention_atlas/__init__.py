"""Look inside a translation Transformer: every head, every step, verifiable.

    from attention_atlas import Translator, viz

    translator = Translator.load("de-en")
    viz.explore(translator.translate("Ich möchte ein Bier, bitte."))

Translator      a checkpoint on a device: translations, and traces of everything that happened inside
Interventions   what to switch off, cut or shift in a pass
edits           values to add, scale, replace or ablate at the named places (hook points) of a pass
why             attribution of a token: measured, split exactly, or estimated
circuits        the paths of a pass that make a decision
lenses          predictions decoded from the residual stream of earlier layers
viz             pictures of a trace, for notebooks

All are imported on first use: `import attention_atlas` alone does not import torch.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "0.3.0"
__all__ = ["Interventions", "Translator", "circuits", "edits", "lenses", "viz", "why"]

# In a wheel, model/ and viz/ are inside this package; in a checkout they are next to it.
if not (Path(__file__).parent / "model").is_dir():
    __path__.append(str(Path(__file__).resolve().parent.parent))

if TYPE_CHECKING:
    from attention_atlas import viz
    from attention_atlas.model.analysis import circuits, lenses, why
    from attention_atlas.model.trace import edits
    from attention_atlas.model.trace.interventions import Interventions
    from attention_atlas.model.translator import Translator
else:  # hidden from type checkers, which accept any name of a module with __getattr__
    _CLASSES = {"Interventions": "model.trace.interventions", "Translator": "model.translator"}
    _MODULES = {
        "circuits": "model.analysis.circuits",
        "edits": "model.trace.edits",
        "lenses": "model.analysis.lenses",
        "viz": "viz",
        "why": "model.analysis.why",
    }

    def __getattr__(name):
        """Import a name on first use: torch takes seconds, and `attention-atlas --help` does not need it."""
        if name in _CLASSES:
            return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{_MODULES[name]}")
        raise AttributeError(f"{__name__} has no {name!r}: it has {', '.join(__all__)}")

    def __dir__():
        return sorted({*globals(), *__all__})
