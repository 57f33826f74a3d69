"""What the scripts of FedSPD-DP share."""
