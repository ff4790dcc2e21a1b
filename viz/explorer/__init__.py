"""The explorer of attention maps: its payload, overlays, a second sentence to compare with, and cut edges."""
