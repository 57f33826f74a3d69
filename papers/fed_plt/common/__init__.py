"""What the scripts share: problems, counting, tuning, writing."""
