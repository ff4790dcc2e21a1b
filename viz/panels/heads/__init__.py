"""The panels of the tab "Heads"."""
