"""The panels on heads, of the tab "More"."""
