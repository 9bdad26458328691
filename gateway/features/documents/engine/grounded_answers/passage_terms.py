"""`PassageTerms`: which words of a message a passage and its headings hold."""

import re

from agent.text.follow_up import NameInText, list_own_terms
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.stop_words import detect_language
from agent.text.terms import extract_terms, fold, remove_language_marker
from gateway.features.documents.engine.grounded_answers.models import describe_surroundings, list_headings
from gateway.features.documents.engine.search.models import RetrievedContext

MIN_PHRASE_SHARE = 0.5
"""A passage about a thing holds more than this share of the words for it."""
_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "den", "en", "ett", "le", "la", "les", "el", "il"})
_COMPOUND_CHARS = 6
"""Letters of a word that may begin a compound: "Weiterbildung" in "Weiterbildungsgeld"."""
_INFLECTED_CHARS = 4


class PassageTerms:
    """The search terms of a passage with its headings, as they stand and stemmed in its language."""

    def __init__(self, passage: RetrievedContext) -> None:
        text = f"{describe_surroundings(passage)}\n{passage.content}"
        language = detect_language(text)
        self._languages = (language,) if language in SNOWBALL_LANGUAGES else ()
        self._terms = self._extract(text)
        self._text, self._written = fold(text), text
        self._heading = self._extract(" ".join(list_headings(passage)[-1:]))
        self._heading_words = tuple(extract_terms(" ".join(list_headings(passage)[-1:])))

    def compute_share(self, message: str) -> float:
        """The share of a message's own terms that the passage holds, from 0 to 1; 0 for a message without any."""
        own = list_own_terms(message, self._languages)
        return sum(bool(forms & self._terms) for forms in own) / len(own) if own else 0.0

    def mentions(self, words: str) -> bool:
        """Whether the passage holds each own word of a text, be it within another one: "bucht" in "gebucht"."""
        own = list_own_terms(words, self._languages)
        return bool(own) and all(bool(forms & self._terms) or any(map(self._is_within, forms)) for forms in own)

    def has_sibling_of(self, one: NameInText) -> bool:
        """Whether the passage has another name in the place of this one and not this one: "in Porto" for "in Lisbon",
        "the Berlin office" for "the Madrid office", "Brewmaster 3" for "Brewmaster 4". Otherwise it may well speak of
        the same thing in other words."""
        *words, last = one.name.split()
        if fold(one.name).replace("-", "") in self._text.replace("-", "") or self.mentions(one.name):
            return False
        if words and re.search(rf"(?m)^[^\w\n]*{re.escape(last)}(?!\w)", self._written) is None:  # no numbered heading
            return re.search(rf"(?<!\w){re.escape(' '.join(words))}\s\d", self._written) is not None
        if any(map(str.isdigit, last)):
            if words:
                return False
            shape = "".join(
                "\\d" if sign.isdigit() else "[A-Z]" if sign.isupper() else re.escape(sign) for sign in last
            )
            return re.search(rf"(?<!\w){shape}(?!\w)", self._written) is not None
        behind = rf"(?<!\w){re.escape(one.before)}\s+[A-Z][a-z]+" if one.before and one.before not in _ARTICLES else ""
        ahead = rf"(?<=\w\s)[A-Z][a-z]+\s+{re.escape(one.after)}(?!\w)" if one.after else ""
        return any(pattern and re.search(pattern, self._written) for pattern in (behind, ahead))

    def has_heading_word(self, message: str) -> bool:
        """Whether the last heading has an own word of a message, or the beginning of a compound in it."""
        forms = frozenset().union(*list_own_terms(message, self._languages))
        beginnings = tuple(term for term in self._heading if len(term) >= _COMPOUND_CHARS)
        return bool(forms & self._heading) or any(form.startswith(beginnings) for form in forms)

    def is_headed_by(self, phrase: str) -> bool:
        """Whether the passage holds most words of a phrase, one of them in its last heading."""
        return self.compute_share(phrase) > MIN_PHRASE_SHARE and self.has_heading_word(phrase)

    def has_whole_heading(self, message: str) -> bool:
        """Whether each word of the last heading is in the message."""
        forms = frozenset().union(*list_own_terms(message, self._languages))
        return bool(self._heading_words) and forms.issuperset(self._heading_words)

    def _is_within(self, form: str) -> bool:
        stem = remove_language_marker(form)
        return len(stem) >= _INFLECTED_CHARS and stem in self._text

    def _extract(self, text: str) -> frozenset[str]:
        return frozenset(term for one in ("", *self._languages) for term in extract_terms(text, one))
