"""Languages by their ISO 639-1 codes: their names, and which one a text has."""

import asyncio
import re
from functools import cache
from typing import Protocol

from agent.text.stop_words import BY_LANGUAGE

ENGLISH = "en"
LANGUAGE_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian",
    "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that are detected. With all 142 of the detector, rare languages win on short texts."""
MIN_RATIO = 10
"""A text counts as English unless another language is this many times as probable. The probability itself says little:
neighbours share it ("Kontrollera stavningen" is Danish, Swedish or Norwegian with 0.3 each, English with 0.005)."""
SURE_RATIO = 50
"""The same for a text of plain letters without a common word of the language: "Renaissance painters" is 47 times as
French as English."""
MIN_PROBABILITY = 0.1
LETTERS_PROBABILITY = 0.6
"""The same for a text with a letter that English has not and no common word: it may be a loan or a name, as in "fiancé
visa" and "call Björn"."""
NEIGHBOUR_SHARE = 0.5
"""A language with more than this share of the best one's probability could be it as well; then common words decide."""
_NAME_PARTICLES = frozenset("af al av da das de del della den der di do dos du el la le van von y zu".split())  # noqa: SIM905
MAX_READ_CHARS = 2_000
_IGNORED_TEXT = re.compile(
    r"```.*?(?:```|$)|`[^`]*`|https?://\S+|\"[^\"]*\"|\u201c[^\u201d]*\u201d|(?<!\w)'[^']*'|\S+[/\\.@_]\S+|[\d\W_]",
    re.DOTALL,
)
"""Code, links, quoted words, paths and numbers do not show the language of the rest. Other characters match one by one,
so that a space does not consume the quotation mark after it."""
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
"""Words that make up most of an English request. Some also belong to other languages, but never most of a text."""


_SHORT_REQUEST_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "sv": "hej hejsan tack skriv sammanfatta dikt filen filerna lista räkna gånger och är vad hur mig ett "
        "på för med min mina översätt förklara berätta hjälp visa sök läs gör hämta en",
        "da": "hej tak skriv opsummér opsummer digt filen filerne og er hvad hvordan mig et på for med min mine "
        "oversæt forklar fortæl hjælp vis søg læs gør hent gange en",
        "no": "hei takk skriv oppsummer filen filene og er hva hvordan meg et på for med min mine oversett "
        "forklar fortell hjelp vis søk les gjør hent ganger en",
        "de": "hallo danke bitte schreib schreibe rechne fasse zusammen die der das den datei dateien mal und "
        "ist was wie mir ein eine erkläre übersetze zeige suche lies hilf",
        "fr": "bonjour salut merci écris écrivez résume résumez fichier fichiers le la les un une et est quoi "
        "comment explique traduis montre cherche lis calcule aide fois",
        "es": "hola gracias escribe resume resuma archivo archivos el la los un una y es qué cómo explica "
        "traduce muestra busca lee calcula ayuda por",
        "it": "ciao grazie scrivi riassumi il lo la un una e è che come spiega traduci mostra cerca leggi "
        "calcola aiuta",
        "nl": "hallo bedankt dank schrijf vat samen bestand bestanden het een de en is wat hoe mij uit leg "
        "vertaal toon zoek lees bereken keer",
        "pt": "olá obrigado obrigada escreva escreve resuma arquivo ficheiro o um uma e é que como explique "
        "traduza mostre procure leia calcule vezes",
        "fi": "hei moi kiitos kirjoita tiivistä tiedosto tiedostot ja on mikä miten minun selitä käännä näytä "
        "etsi lue laske kertaa runo",
    }.items()
}
"""Words of very short requests, which the model cannot classify. In case of a tie the first language wins."""


def get_language_name(language: str) -> str:
    """The English name of a language, or the code if it is unknown."""
    return LANGUAGE_NAMES.get(language, language)


class Identifier(Protocol):
    """The part of py3langid that is used here."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """All languages with their probabilities, the most probable first."""
        ...


class LanguageDetector:
    """Detects languages with the model of py3langid.

    The model loads with the first text that is not plainly English: it takes 0.5 s and 75 MB, which an installation
    without other languages saves.
    """

    def __init__(self) -> None:
        self._identifier: Identifier | None = None
        self._loading = asyncio.Lock()

    async def detect(self, text: str) -> str:
        """The ISO 639-1 code of the text's language; `en` unless another language is likely."""
        words = _IGNORED_TEXT.sub(" ", text[:MAX_READ_CHARS]).split()
        if not words or _is_plainly_english(words):
            return ENGLISH
        async with self._loading:
            if self._identifier is None:
                self._identifier = await asyncio.to_thread(_load_model)
        language = _classify(self._identifier, words)
        others = _drop_names(words)
        if not others or len(others) == len(words):
            return language
        # Foreign names say nothing: "Rio de Janeiro population", "Wer ist Ludwig van Beethoven?"
        own = _classify(self._identifier, others)
        return language if own == ENGLISH and _shows_language(others, language) else own


def _classify(identifier: Identifier, words: list[str]) -> str:
    ranked = identifier.rank(" ".join(words))
    english = dict(ranked)[ENGLISH]
    others = [(language, probability) for language, probability in ranked if language != ENGLISH]
    language = _choose_among_neighbours(words, others)
    if language:
        probability = dict(others)[language]
        ratio = MIN_RATIO if _shows_language(words, language) else SURE_RATIO
        least = LETTERS_PROBABILITY if _shows_only_letters(words, language) else MIN_PROBABILITY
        if probability >= least and probability > ratio * english:
            return language
    return _detect_by_words(words)


def _choose_among_neighbours(words: list[str], ranked: list[tuple[str, float]]) -> str:
    """The most probable language; of several nearly as probable the one with the most common words in the text. Empty
    if words do not distinguish them."""
    near = [language for language, probability in ranked if probability > NEIGHBOUR_SHARE * ranked[0][1]]
    if len(near) == 1:
        return near[0]
    counts = {language: sum(word.lower() in _list_common_words(language) for word in words) for language in near}
    most = max(counts.values())
    best = [language for language in near if counts[language] == most]
    return best[0] if most and len(best) == 1 else ""


def _drop_names(words: list[str]) -> list[str]:
    """The words that are in no name of several: capitalised ones in a row, with small words between them."""
    names: set[int] = set()
    start = 0
    while start < len(words):
        end = last = start
        while end < len(words) and (words[end][:1].isupper() or (end > start and words[end] in _NAME_PARTICLES)):
            last = end if words[end][:1].isupper() else last
            end += 1
        names.update(range(start, last + 1) if last > start else ())
        start = max(last, start) + 1
    return [word for at, word in enumerate(words) if at not in names]


def _shows_language(words: list[str], language: str) -> bool:
    """Whether a text has a letter that English has not, or a common word of the language."""
    common = _list_common_words(language)
    return any(not word.isascii() or word.lower() in common for word in words)


def _shows_only_letters(words: list[str], language: str) -> bool:
    """Whether foreign letters are all that shows the language."""
    common = _list_common_words(language)
    return not " ".join(words).isascii() and not any(word.lower() in common for word in words)


@cache
def _list_common_words(language: str) -> frozenset[str]:
    words = _SHORT_REQUEST_WORDS.get(language, frozenset()) | frozenset(BY_LANGUAGE.get(language, "").split())
    return words - _ENGLISH_WORDS


def _is_plainly_english(words: list[str]) -> bool:
    """Whether two of three words are common English ones."""
    english_words = sum(word.lower() in _ENGLISH_WORDS for word in words)
    return 3 * english_words >= 2 * len(words)


def _detect_by_words(words: list[str]) -> str:
    """The language whose short-request words match best: at least two words or all of them, and more than
    for English.
    """
    own = {word.lower() for word in words}
    language = max(_SHORT_REQUEST_WORDS, key=lambda name: len(own & _SHORT_REQUEST_WORDS[name]))
    count = len(own & _SHORT_REQUEST_WORDS[language])
    enough = count == len(own) or count >= 2
    return language if enough and count > len(own & _ENGLISH_WORDS) else ENGLISH


@cache
def _load_model() -> Identifier:
    """The model, loaded once per process; classifying does not change it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]  # noqa: PLC0415

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(LANGUAGE_NAMES))
    loaded: Identifier = identifier
    return loaded
