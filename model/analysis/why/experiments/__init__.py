"""Experiments that run the model again: heads ablated, the smallest set of heads, patching, attention edges cut."""
