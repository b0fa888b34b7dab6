"""One file per benchmark: its layout, clip recipe, scoring rule, groups and aggregation."""
