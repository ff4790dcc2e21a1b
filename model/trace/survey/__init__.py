"""Surveys of what heads do over many sentences: the statistics, their cells in a sentence, results and head names."""
