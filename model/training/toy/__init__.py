"""Toys: networks small enough to train in the page. A ToyRun trains one, Toys keeps recent ones."""
