"""All I/O and the order of things: configuration, audio, transports, sessions, runs, commands."""
