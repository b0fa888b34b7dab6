"""The page of a run: its frame, its style and its scripts, put together by `report_html`."""
