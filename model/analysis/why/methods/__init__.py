"""The rows of the tokens' matrix, one file a method; model.analysis.why.registry names them all."""
