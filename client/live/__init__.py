"""Live mode: talk to an endpoint by microphone, on the same driver and the same log as a run."""
