"""Stop words by language.

A query is not searched by its stop words, and the stop words of a text show its language.
"""

import re
from collections import Counter
from collections.abc import Sequence

NEGATION = re.compile(r"\b(?:not|never|nor?|none|nothing|neither|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
"""The English words that turn a sentence round."""
_WORD = re.compile(r"[^\W\d_]+")
_VOWELS = "aeiouy\u00e0\u00e5\u00e8\u00e9"
"""Single letters that are words; other single letters are remains of contractions."""
MAX_READ_CHARS = 2_000
MIN_STOP_WORDS = 2
"""Stop words needed to detect the language of a passage. A single one is often part of a name ("de", "van")."""

ENGLISH = """
a about after all also am an and any are as at be because been before being between both but by can cannot could did
do does doing done during each few for from further had has have having he her here hers him his how however i if in
into is it its itself just may me might more most must my no nor not of off on once only or other our ours out over own
please same shall she should so some such than that the their theirs them then there these they this those through to
too under until up upon us very was we were what whatever when where whether which while who whom whose why will with
within without would yes yet you your yours s t d ll re ve don doesn didn isn aren wasn won
"""
SWEDISH = "att av de den det du en ett för har hur inte jag med men min mitt mina när och om på som till var vad vem är"
ARABIC = """
في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف هل هو هي هم كان كانت يكون أن ان إن أو او ثم
لا لم لن قد كل بعد قبل بين حتى كما لكن عند لماذا و يا أي اي كم
"""
COMMON_STOP_WORDS = f"{ENGLISH} one ones {SWEDISH} {ARABIC}"
"""Stop words of every query. The other lists contain words that mean something in English ("die", "war", "son") and
apply only to queries in their language."""
BY_LANGUAGE = {
    "sv": f"""{SWEDISH} alla allt annars av blev bli blir bör dess dessa detta deras där då efter eller er ett finns
        från få får före genom han hon hos här i ingen innan inom inte kan kunde kunna man mellan mig mot mycket många
        mån måste ni någon något några nu samt sedan sig sin sina sitt ska skall skulle så under upp ur ut utan varför
        varje vart vid vilka vilken vilket vi var vars än även över""",
    "de": """ab aber alle als am an auch auf aus bei beim bin bis da damit dann das dass dein dem den der des die dies
        diese dieser dieses doch dort du durch ein eine einem einen einer eines er es für gegen gibt hat haben hatte
        ich ihm ihr ihre im in ist ja jede jeder jedes kann kein keine können man mein mit muss nach nicht noch nur
        ob oder ohne sein seine sich sie sind so soll um und uns unser unter vom von vor wann war waren warum was
        welche welchem welchen welcher welches wem wen wenn wer werden wie wird wo woher wohin wurde wurden zu zum
        zur zwischen über""",
    "fr": """a au aux avec ce ces cet cette chez combien comme comment d dans de des du elle elles en est et eux il
        ils j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus
        pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont sur t ta te tes
        toi ton tu un une vos votre vous y à été être""",
    "es": """a al algo como con cual cuales cuando cuanta cuantas cuanto cuantos cuál cuáles cuándo cuánta cuántas
        cuánto cuántos cómo de del desde donde dónde e el ella ellas ellos en entre era es esa ese eso esta este esto
        está están fue ha hasta hay la las lo los me mi mis muy más ni no nos o para pero por porque qué que
        quien quién quiénes se ser si sin sobre son su sus también te tiene tu un una uno unos y ya yo""",
    "it": """a ad agli ai al alla alle anche che chi ci come con cosa cui da dai dal dalla dalle dei del dell della
        delle dello di dove e ed era fra gli ha hanno i il in io l la le lei li lo loro lui ma mi mia mio nei nel
        nella nelle noi non o per perché più può qual quale quali quando quanta quante quanti quanto questa questo
        se sei si sono su sua sul sulla suo tra tu un una uno voi è""",
    "nl": """aan al als bij dan dat de deze die dit doen door een en er geen haar had heb hebben heeft het hier hij
        hoe hoeveel hun ik in is je kan kunnen maar mag me meer men met mijn moet na naar niet nog nu of om onder ons
        ook op over te tegen toen tot u uit van veel voor waar waarom wanneer waren was wat we welk welke werd wie wij
        wordt worden ze zich zij zijn zo zou""",
    "pt": """a ao aos as até com como da das de do dos e ela elas ele eles em entre era essa esse esta este está eu
        foi há isso isto já lhe mais mas me meu minha muito na nas nem no nos não nós o onde os ou para pela pelas
        pelo pelos por porque qual quais quando quanta quantas quanto quantos que quem se sem ser seu seus sobre sua
        suas são também te tem um uma você à às é""",
    "da": """af alle at blev bliver da de dem den denne der det dette dig din du efter eller en er et for fra får
        før ham han har hun hvad hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornår i ikke ind jeg
        kan man med meget men mig min mit mod må ned nej nu når og om op os over på sig sin skal som så til ud under
        var ved vi vil være""",
    "no": """alle at av ble blir da de dem den denne der det dette du eller en er et etter for fra får før ham han
        har hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke inn jeg kan man med meg men min
        mot mye må nei nå når og om opp oss over på seg sin skal som så til ut under var ved vi vil være""",
    "fi": """ei eikä en että he hän ja jo jos joka jotka kanssa koska kuin kuka kuinka kun ketkä me mikä mitä mitkä
        millainen milloin minä missä mistä mihin miksi miten moni montako mutta myös ne niin nyt olen oli olla on
        onko ovat paljonko se sen siitä siinä sinä tai te tämä tässä vai vain voi voiko""",
}
"""The stop words of the languages that are detected besides English."""
_ACCENTED_LETTERS = {
    "da": "æøåé", "de": "äöüß", "en": "", "es": "áéíñóúü", "fi": "äöå", "fr": "àâæçéèêëîïôœùûüÿ", "it": "àèéìòù",
    "nl": "ëïéèöü", "no": "æøåéò", "pt": "ãáàâçéêíóôõú", "sv": "åäöé",
}  # fmt: skip
"""The letters beyond a to z of each language: "var" is Swedish, Danish and Norwegian, "var läggs" is Swedish."""
_STOP_WORDS_BY_LANGUAGE = {name: frozenset(words.split()) for name, words in {"en": ENGLISH, **BY_LANGUAGE}.items()}
_LANGUAGES_BY_WORD = {
    word: tuple(name for name, words in _STOP_WORDS_BY_LANGUAGE.items() if word in words)
    for word in frozenset().union(*_STOP_WORDS_BY_LANGUAGE.values())
}


def detect_part_languages(texts: Sequence[str]) -> list[str]:
    """The language of each part of one document.

    A part with enough stop words has its own language, any other part the most frequent language of the document; empty
    if no part has enough.
    """
    own = [_detect_part_language(text) for text in texts]
    most = Counter(filter(None, own)).most_common(1)
    return [one or (most[0][0] if most else "") for one in own]


def detect_language(text: str) -> str:
    """The code of the text's language by its stop words, or an empty string."""
    candidates = detect_candidate_languages(text)
    return candidates[0] if len(candidates) == 1 or set(candidates) == {"da", "no"} else ""


def detect_question_language(question: str) -> str:
    """The language of a question, which has few stop words.

    If several languages share them, the one whose alphabet has all letters of the question wins.
    """
    candidates = detect_candidate_languages(question)
    letters = {letter for letter in question[:MAX_READ_CHARS].lower() if letter > "z" and letter.isalpha()}
    possible = [name for name in candidates if letters.issubset(_ACCENTED_LETTERS[name])]
    return possible[0] if len(possible) == 1 else detect_language(question)


def detect_candidate_languages(text: str) -> tuple[str, ...]:
    """The languages with the most stop words in a text; more than one in case of a tie."""
    counts = _count_stop_words(text)
    most = max(counts.values(), default=0)
    return tuple(name for name in counts if counts[name] == most)


def _detect_part_language(text: str) -> str:
    """The language with at least `MIN_STOP_WORDS` stop words in a passage, and more than any other."""
    counts = _count_stop_words(text)
    best = max(counts, key=lambda name: (counts[name], name), default="")
    # Danish and Norwegian share their stop words and are not distinguished.
    others = [count for name, count in counts.items() if {name, best} not in ({best}, {"da", "no"})]
    return best if counts[best] >= MIN_STOP_WORDS and counts[best] > max(others, default=0) else ""


def _count_stop_words(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text[:MAX_READ_CHARS].lower()):
        for name in _LANGUAGES_BY_WORD.get(word, ()) if len(word) > 1 or word in _VOWELS else ():
            counts[name] += 1
    return counts
