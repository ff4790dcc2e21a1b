"""The panels on positions, of the tab "More": how the model tells positions apart, and what breaks without them."""
