"""FedSPD-DP: Li, Wang, Chang, Chi, figure by figure, and an audit of its claim."""
