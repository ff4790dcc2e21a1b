"""Why a token was written: one panel an experiment, under the question that viz.ui.lab.frame lays out."""
