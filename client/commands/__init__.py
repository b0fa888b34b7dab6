"""One file per command: parse, call, exit status."""
