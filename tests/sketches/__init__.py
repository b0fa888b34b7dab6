"""Codecs just large enough to try the seam on; the whole ones live in `endpoints/`."""
