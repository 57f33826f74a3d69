"""Published tables and figures, run again: one folder per paper, one script each."""
