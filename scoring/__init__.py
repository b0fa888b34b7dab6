"""Replies to numbers: speech bounds, marks, answers, transcription, statistics."""
