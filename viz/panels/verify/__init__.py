"""The panels that check: every claim on the current sentence, and BLEU laid out."""
