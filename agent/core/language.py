"""Which language a text is written in, and what the languages are called in prompts."""

import asyncio
import re
from functools import cache
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
    r"```.*?(?:```|$)|`[^`]*`|https?://\S+|\"[^\"]*\"|\u201c[^\u201d]*\u201d|(?<!\w)'[^']*'|\S+[/\\.@_]\S+|[\d\W_]",
    re.DOTALL,
)
"""Code, links, quoted words, paths and numbers say nothing about the language of the rest. Other signs one by one: a
space must not take the quotation mark behind it along."""
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


_TELLING = {
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
"""The words of very short requests, which the model cannot tell apart. Of two that fit alike the first is taken."""


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
        return language if probability >= SURE else _told_by_words(words)


def name_of(language: str) -> str:
    """The English name of a language."""
    return NAMES.get(language, language)


def _is_plainly_english(words: list[str]) -> bool:
    """Whether two words of three are common English ones."""
    known = sum(word.lower() in _ENGLISH_WORDS for word in words)
    return 3 * known >= 2 * len(words)


def _told_by_words(words: list[str]) -> str:
    """The language most of whose words stand in a short text: two of them, or all there are, and more than English."""
    own = {word.lower() for word in words}
    language = max(_TELLING, key=lambda name: len(own & _TELLING[name]))
    found = len(own & _TELLING[language])
    enough = found == len(own) or found >= 2
    return language if enough and found > len(own & _ENGLISH_WORDS) else ENGLISH


@cache
def _load() -> Identifier:
    """The model, once a process, however many gateways are in it: classifying changes nothing in it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]  # noqa: PLC0415

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(NAMES))
    loaded: Identifier = identifier
    return loaded
