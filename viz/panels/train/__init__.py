"""The panels of the tab Train, beside the network that a visitor trains."""
