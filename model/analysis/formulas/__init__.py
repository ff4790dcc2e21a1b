"""The formulas of attention and of what came before it, each computed so that it can be looked at and tried out."""
