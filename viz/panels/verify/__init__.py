"""The panels of the tab "Verify": every claim checked on the sentence, BLEU, translation pairs, trust signals."""
