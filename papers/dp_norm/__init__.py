"""DP-Norm: Fukami, Murata, Niwa, Tyou, figure by figure, and beyond them."""
