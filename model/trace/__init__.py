"""What a translation left behind, and what may be done to one: numpy and plain values. Imports no torch."""
