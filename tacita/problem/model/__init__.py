"""Models: a loss of parameters and rows, with its gradient."""
