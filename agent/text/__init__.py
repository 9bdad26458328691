"""Text processing that every package shares: languages, stems, stop words, numbers, dates and codes.

Begin with `terms.py` `extract_terms`, `language.py` `LanguageDetector`, `values.py` `KnownValues`, `numbers.py`
`NumberMention` and `plurals.py` `format_count`.
"""
