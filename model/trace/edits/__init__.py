"""What a pass may be changed by at named places: plain values, and their form in files. Importable without torch."""

from attention_atlas.model.trace.edits.values import Ablate, Add, Edit, Numbers, Recipe, Replace, Scale

__all__ = ["Ablate", "Add", "Edit", "Numbers", "Recipe", "Replace", "Scale"]
