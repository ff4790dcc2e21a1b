"""The panels that verify, of the tab "More": claims checked on the sentence, BLEU, translation pairs, trust signals."""
