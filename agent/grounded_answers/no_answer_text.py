"""That the documents don't say, in the language of the question: one fixed sentence a language, and what opens the
nearest that they do say."""

from agent.search.models import NOT_IN_DOCUMENTS
from agent.text.stop_words import detect_question_language
from agent.text.terms import detect_script

_NOT_SAID = {
    "en": NOT_IN_DOCUMENTS,
    "sv": "Det st\u00e5r inte i dokumenten.",
    "de": "Das steht nicht in den Dokumenten.",
    "fr": "Les documents ne le disent pas.",
    "es": "Los documentos no lo dicen.",
    "it": "I documenti non lo dicono.",
    "nl": "Dat staat niet in de documenten.",
    "pt": "Os documentos n\u00e3o o dizem.",
    "da": "Det st\u00e5r ikke i dokumenterne.",
    "no": "Det st\u00e5r ikke i dokumentene.",
    "fi": "Asiakirjoissa ei kerrota sit\u00e4.",
    "ar": "\u0627\u0644\u0648\u062b\u0627\u0626\u0642 \u0644\u0627 \u062a\u0630\u0643\u0631 \u0630\u0644\u0643.",
}
_NEAREST = {
    "en": ("The documents don't speak of {words}.", "The documents don't say exactly that.", "The nearest they say:"),
    "sv": ("Dokumenten talar inte om {words}.", "Just det s\u00e4ger dokumenten inte.", "N\u00e4rmast s\u00e4ger de:"),
    "de": ("Von {words} sprechen die Dokumente nicht.", "Genau das sagen die Dokumente nicht.",
           "Am n\u00e4chsten kommt:"),
    "fr": ("Les documents ne parlent pas de {words}.", "Les documents ne disent pas exactement cela.",
           "Le plus proche\u00a0:"),
    "es": ("Los documentos no hablan de {words}.", "Los documentos no dicen exactamente eso.", "Lo m\u00e1s cercano:"),
    "it": ("I documenti non parlano di {words}.", "I documenti non dicono esattamente questo.",
           "La cosa pi\u00f9 vicina:"),
    "nl": ("De documenten spreken niet over {words}.", "Precies dat zeggen de documenten niet.",
           "Het dichtst in de buurt komt:"),
    "pt": ("Os documentos n\u00e3o falam de {words}.", "Os documentos n\u00e3o dizem exatamente isso.",
           "O mais pr\u00f3ximo:"),
    "da": ("Dokumenterne taler ikke om {words}.", "Netop det siger dokumenterne ikke.", "Det n\u00e6rmeste de siger:"),
    "no": ("Dokumentene snakker ikke om {words}.", "Akkurat det sier ikke dokumentene.", "Det n\u00e6rmeste de sier:"),
    "fi": ("Asiakirjoissa ei puhuta asiasta {words}.", "Aivan tuota asiakirjoissa ei kerrota.",
           "L\u00e4himp\u00e4n\u00e4 on:"),
}  # fmt: skip
_NOT_AS_WRITTEN = {
    "en": "The documents don't say what the model wrote. In their own words:",
    "sv": "Dokumenten s\u00e4ger inte det som modellen skrev. Med deras egna ord:",
    "de": "Was das Modell schrieb, steht nicht in den Dokumenten. In ihren eigenen Worten:",
    "fr": "Les documents ne disent pas ce que le mod\u00e8le a \u00e9crit. Selon leurs propres termes\u00a0:",
    "es": "Los documentos no dicen lo que escribi\u00f3 el modelo. En sus propias palabras:",
    "it": "I documenti non dicono quello che il modello ha scritto. Con le loro parole:",
    "nl": "De documenten zeggen niet wat het model schreef. In hun eigen woorden:",
    "pt": "Os documentos n\u00e3o dizem o que o modelo escreveu. Nas suas pr\u00f3prias palavras:",
    "da": "Dokumenterne siger ikke det, som modellen skrev. Med deres egne ord:",
    "no": "Dokumentene sier ikke det som modellen skrev. Med deres egne ord:",
    "fi": "Asiakirjoissa ei sanota sit\u00e4, mit\u00e4 malli kirjoitti. Niiden omin sanoin:",
}
_MEANT = {
    "en": (
        "The nearest they have is about {it}: is that meant?",
        "The nearest they have is about {it}: is one of these meant?",
        "and",
    ),
    "sv": (
        "N\u00e4rmast handlar de om {it}: menas det?",
        "N\u00e4rmast handlar de om {it}: menas n\u00e5got av det?",
        "och",
    ),
    "de": (
        "Am n\u00e4chsten kommt {it}: ist das gemeint?",
        "Am n\u00e4chsten kommen {it}: ist etwas davon gemeint?",
        "und",
    ),
    "fr": (
        "Le plus proche concerne {it}\u00a0: est-ce cela\u00a0?",
        "Le plus proche concerne {it}\u00a0: est-ce l'un d'eux\u00a0?",
        "et",
    ),
    "es": (
        "Lo m\u00e1s cercano trata de {it}: \u00bfes eso?",
        "Lo m\u00e1s cercano trata de {it}: \u00bfes algo de eso?",
        "y",
    ),
    "it": (
        "La cosa pi\u00f9 vicina \u00e8 {it}: si intende questo?",
        "Le cose pi\u00f9 vicine sono {it}: si intende una di queste?",
        "e",
    ),
    "nl": (
        "Het dichtst in de buurt komt {it}: wordt dat bedoeld?",
        "Het dichtst in de buurt komen {it}: wordt een daarvan bedoeld?",
        "en",
    ),
    "pt": (
        "O mais pr\u00f3ximo trata de {it}: \u00e9 isso?",
        "O mais pr\u00f3ximo trata de {it}: \u00e9 algum destes?",
        "e",
    ),
    "da": (
        "Det n\u00e6rmeste handler om {it}: er det ment?",
        "Det n\u00e6rmeste handler om {it}: er noget af det ment?",
        "og",
    ),
    "no": (
        "Det n\u00e6rmeste handler om {it}: menes det?",
        "Det n\u00e6rmeste handler om {it}: menes noe av det?",
        "og",
    ),
    "fi": (
        "L\u00e4himp\u00e4n\u00e4 on {it}: tarkoititko sit\u00e4?",
        "L\u00e4himp\u00e4n\u00e4 ovat {it}: tarkoititko jotakin niist\u00e4?",
        "ja",
    ),
    "ar": (
        "\u0623\u0642\u0631\u0628 \u0645\u0627 \u0641\u064a\u0647\u0627 \u0639\u0646 {it}"
        ": \u0647\u0644 \u0647\u0630\u0627 \u0647\u0648 \u0627\u0644\u0645\u0642\u0635\u0648\u062f\u061f",
        "\u0623\u0642\u0631\u0628 \u0645\u0627 \u0641\u064a\u0647\u0627 \u0639\u0646 {it}"
        ": \u0647\u0644 \u0623\u062d\u062f\u0647\u0627 \u0647\u0648 \u0627\u0644\u0645\u0642\u0635\u0648\u062f\u061f",
        "\u0648",
    ),
}
_ALL = tuple(_NOT_SAID.values())


def get_no_answer_text(question: str = "") -> str:
    """The sentence in the question's language, in English where there is none in it."""
    if detect_script(question) == "ARABIC":
        return _NOT_SAID["ar"]
    return _NOT_SAID.get(detect_question_language(question), NOT_IN_DOCUMENTS)


def contains_no_answer_text(text: str) -> bool:
    """Whether a text says so, in any of the languages."""
    return any(one in text for one in _ALL)


def not_as_written(question: str) -> str:
    """What opens the documents' own words where nothing stands of what a model wrote."""
    return _NOT_AS_WRITTEN.get(detect_question_language(question), _NOT_AS_WRITTEN["en"])


def nearest(question: str, words: tuple[str, ...] = ()) -> str:
    """What opens an answer that is not quite one: which words of the question the documents lack."""
    lacking, vaguely, opening = _NEAREST.get(detect_question_language(question), _NEAREST["en"])
    quoted = ", ".join(f"\u201c{word}\u201d" for word in words)
    return f"{lacking.format(words=quoted) if words else vaguely} {opening}"


def is_meant(question: str, subjects: tuple[str, ...]) -> str:
    """Asks whether what comes nearest is meant, in the question's language."""
    tongues = "ar" if detect_script(question) == "ARABIC" else detect_question_language(question)
    one, several, also = _MEANT.get(tongues, _MEANT["en"])
    quoted = [f"\u201c{subject}\u201d" for subject in subjects]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {also} {quoted[-1]}"
    return (one if len(quoted) == 1 else several).format(it=listed)
