"""Texts, models and traces of any size to measure, and the libraries compared with ours."""
