"""Surveys: what every attention head does over many sentences. The results are classes of model.trace.survey.

run.py     a survey of one direction, by one process or several, resumable, window by window
corpus.py  the sentences that it reads
batch.py   one pass over a batch: maps, gradients of gates, ablations
sums.py    sums over sentences and bootstrap resamples, examples, and the estimates made of them
"""
