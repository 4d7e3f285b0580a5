"""Results as text and figures. Nothing here measures."""
