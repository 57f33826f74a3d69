"""Scripts whose results are not in the project yet."""
