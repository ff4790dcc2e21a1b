"""Why a token was written: one panel an experiment, under the question that viz.panels.frame lays out."""
