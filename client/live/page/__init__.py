"""The page of a live session: its frame, its style and its scripts, served by `web`."""
