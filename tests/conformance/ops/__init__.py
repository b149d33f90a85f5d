"""Op cases by family; each module has cases(f)."""
