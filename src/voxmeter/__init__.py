"""Real-time speech-to-speech evaluation: accuracy and latency of spoken replies on one clock."""

__version__ = "0.1.0"
