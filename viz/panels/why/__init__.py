"""The panels of the tab "Why": one experiment each on the question why a token was written."""
