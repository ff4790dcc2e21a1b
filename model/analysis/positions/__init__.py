"""Codes for positions: other schemes, their geometry, what they should be able to do."""
