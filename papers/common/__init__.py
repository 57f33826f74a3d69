"""What scripts of several papers share."""
