"""Text processing that every package shares: languages, stems, stop words, numbers, dates and codes."""
