"""Guided tours of the page: what they say is data in viz/tours/, and each claim is measured on the model at hand."""
