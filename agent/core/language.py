"""Which language a text is written in, and what the languages are called in prompts."""

import asyncio
import re
from typing import Protocol

ENGLISH = "en"
NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian",
    "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages told apart. Fewer are told apart better: of 142, rare ones win on short texts."""

SURE = 0.6
"""The least probability; below it a text counts as English. On 50 short requests in 14 languages this took no English
one for another, and missed three of two words."""
READ_CHARS = 2_000
_LEAVE_OUT = re.compile(
    r"```.*?(?:```|$)|`[^`]*`|https?://\S+|\"[^\"]*\"|\u201c[^\u201d]*\u201d|(?<!\w)'[^']*'|\S+[/\\.@_]\S+|[\d\W_]+",
    re.DOTALL,
)
"""Code, links, quoted words, paths and numbers say nothing about the language of the rest."""
_ENGLISH_WORDS = frozenset(
    (  # noqa: SIM905 - as a list of quoted words it reads worse
        "a about above add after again all also always an and answer any are as ask at back be been before begin "
        "below best better between both bring build but buy by calculate call can change check choose city code "
        "compare complete compute could country create current data date day days debug define delete describe "
        "design did difference different do document documents does done down draft draw each edit email end "
        "english error every example explain extract fetch few file files fill find first fix folder following for "
        "format four free from full function generate get give given go good got great had has have he hello help her "
        "here him his hour hours how idea if image important improve in information into is it its just keep kind "
        "know language large last latest learn least length less let letter like line lines list little long look "
        "lot made main make many may me mean meeting minutes model money month months more most much must my name "
        "need never new news next no not note notes now number of off office on one only open or order other our "
        "out over page pages paper paragraph people per person picture plan please point possible price problem "
        "product program project question quick read really reason recipe remember remove rename replace report "
        "request results review rewrite right run safe same save say schedule search second section see send "
        "sentence set she short should show sides simple simply since single small so some something sort start "
        "state step steps still story such suggest sum summarise summarize summary sure system table take tasks "
        "team tell text than thank thanks that the their them then there these they thing things think this those "
        "three through time times to today together tomorrow too tool tools top topic translate travel trip true "
        "try turn two under understand until up update us use used user using value version very view want was way "
        "we weather web week weeks well were what when where whether which while who whole why will with without "
        "word words work world would write wrong year years yes yesterday yet you your"
    ).split()
)
"""The words requests in English are mostly made of. Some are words of other languages too, but not most of a text."""


class Identifier(Protocol):
    """What py3langid offers, as far as it is used."""

    def classify(self, text: str) -> tuple[str, float]:
        """The language and its probability."""
        ...


class LanguageDetector:
    """Detects languages with py3langid's model, loaded when the first text is not plainly English: it takes half a
    second and 75 MB that a house without other languages need not spend."""

    def __init__(self) -> None:
        self._identifier: Identifier | None = None
        self._loading = asyncio.Lock()

    async def detect(self, text: str) -> str:
        """The ISO 639-1 code of the text's language; `en` where nothing speaks clearly for another."""
        words = _LEAVE_OUT.sub(" ", text[:READ_CHARS]).split()
        if not words or _is_plainly_english(words):
            return ENGLISH
        async with self._loading:
            if self._identifier is None:
                self._identifier = await asyncio.to_thread(_load)
        language, probability = self._identifier.classify(" ".join(words))
        return language if probability >= SURE else ENGLISH


def name_of(language: str) -> str:
    """The English name of a language."""
    return NAMES.get(language, language)


def _is_plainly_english(words: list[str]) -> bool:
    """Whether two words of three are common English ones."""
    known = sum(word.lower() in _ENGLISH_WORDS for word in words)
    return 3 * known >= 2 * len(words)


def _load() -> Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]  # noqa: PLC0415

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(NAMES))
    loaded: Identifier = identifier
    return loaded
