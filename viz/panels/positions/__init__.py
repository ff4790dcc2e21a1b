"""The panels of the tab "Positions": how the model tells positions apart, and what breaks without them."""
