"""Protocols: messages to typed events and back, with no socket, clock or log."""
