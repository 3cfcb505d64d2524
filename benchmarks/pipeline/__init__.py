"""How fast the pipeline is, and whether it is right when it is disturbed."""
