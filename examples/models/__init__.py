"""One file per example model; make_graphs.py has the list of their names."""
