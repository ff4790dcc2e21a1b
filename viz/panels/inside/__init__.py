"""The panels of the tab "Inside": a map of the model, one panel for each of its stations, and experiments."""
