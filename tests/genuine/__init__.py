"""Our sessions against other people's programs, each installed in an environment of its own."""
