"""The built-in endpoints: metronome, echo and cascade, and the host that serves them."""
