"""Scripts whose 100 repetitions have not been run yet."""
