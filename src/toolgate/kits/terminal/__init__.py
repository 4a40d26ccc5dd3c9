"""Terminal kit: what commands of the command line are made of, whichever feature brings them."""
