"""What the laboratory of causes found about one written token: numpy and plain values. Imports no torch."""
