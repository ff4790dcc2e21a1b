"""Networks small enough to train while one watches."""
