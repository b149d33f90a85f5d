"""One file per example model; ALL maps names to functions that return the Example."""
