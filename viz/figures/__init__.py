"""Plotly figures of arrays, and matplotlib's for documents."""
