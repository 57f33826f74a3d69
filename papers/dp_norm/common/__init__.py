"""What the scripts share: the benchmark, noise of each method, runs, pages."""
