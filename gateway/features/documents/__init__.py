"""Documents: reading, searching and answering from them, with citations."""
