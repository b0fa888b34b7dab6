"""Written text as it is spoken."""
