"""Fixed sentences about an answer, in the language of the question: no answer, unknown, left out, not checked."""

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
_UNKNOWN = {
    "en": "I don't know.",
    "sv": "Jag vet inte.",
    "de": "Das wei\u00df ich nicht.",
    "fr": "Je ne sais pas.",
    "es": "No lo s\u00e9.",
    "it": "Non lo so.",
    "nl": "Dat weet ik niet.",
    "pt": "N\u00e3o sei.",
    "da": "Det ved jeg ikke.",
    "no": "Det vet jeg ikke.",
    "fi": "En tied\u00e4.",
    "ar": "\u0644\u0627 \u0623\u0639\u0631\u0641.",
}
_LEFT_OUT = {
    "en": "What the documents do not support was left out ({count}).",
    "sv": "Det som dokumenten inte st\u00f6der har utel\u00e4mnats ({count}).",
    "de": "Was die Dokumente nicht belegen, wurde weggelassen ({count}).",
    "fr": "Ce que les documents ne confirment pas a \u00e9t\u00e9 omis ({count}).",
    "es": "Se ha omitido lo que los documentos no confirman ({count}).",
    "it": "Ci\u00f2 che i documenti non confermano \u00e8 stato omesso ({count}).",
    "nl": "Wat de documenten niet bevestigen, is weggelaten ({count}).",
    "pt": "O que os documentos n\u00e3o confirmam foi omitido ({count}).",
    "da": "Det, som dokumenterne ikke underbygger, er udeladt ({count}).",
    "no": "Det som dokumentene ikke underbygger, er utelatt ({count}).",
    "fi": "Se, mit\u00e4 asiakirjat eiv\u00e4t tue, on j\u00e4tetty pois ({count}).",
}
_UNCHECKED = {
    "en": "Only figures and quotations were checked, not the meaning.",
    "sv": "Bara siffror och citat har kontrollerats, inte inneb\u00f6rden.",
    "de": "Nur Zahlen und Zitate wurden gepr\u00fcft, nicht die Bedeutung.",
    "fr": "Seuls les chiffres et les citations ont \u00e9t\u00e9 v\u00e9rifi\u00e9s, pas le sens.",
    "es": "Solo se han comprobado las cifras y las citas, no el significado.",
    "it": "Sono state verificate solo le cifre e le citazioni, non il significato.",
    "nl": "Alleen cijfers en citaten zijn gecontroleerd, niet de betekenis.",
    "pt": "S\u00f3 foram verificados os n\u00fameros e as cita\u00e7\u00f5es, n\u00e3o o significado.",
    "da": "Kun tal og citater er kontrolleret, ikke betydningen.",
    "no": "Bare tall og sitater er kontrollert, ikke betydningen.",
    "fi": "Vain luvut ja lainaukset on tarkistettu, ei merkityst\u00e4.",
}
_MEANT = {
    "en": ("The nearest they have is about {it}: is that meant?",
           "The nearest they have is about {it}: is one of these meant?", "and"),
    "sv": ("N\u00e4rmast handlar de om {it}: menas det?",
           "N\u00e4rmast handlar de om {it}: menas n\u00e5got av det?", "och"),
    "de": ("Am n\u00e4chsten kommt {it}: ist das gemeint?",
           "Am n\u00e4chsten kommen {it}: ist etwas davon gemeint?", "und"),
    "fr": ("Le plus proche concerne {it}\u00a0: est-ce cela\u00a0?",
           "Le plus proche concerne {it}\u00a0: est-ce l'un d'eux\u00a0?", "et"),
    "es": ("Lo m\u00e1s cercano trata de {it}: \u00bfes eso?",
           "Lo m\u00e1s cercano trata de {it}: \u00bfes algo de eso?", "y"),
    "it": ("La cosa pi\u00f9 vicina \u00e8 {it}: si intende questo?",
           "Le cose pi\u00f9 vicine sono {it}: si intende una di queste?", "e"),
    "nl": ("Het dichtst in de buurt komt {it}: wordt dat bedoeld?",
           "Het dichtst in de buurt komen {it}: wordt een daarvan bedoeld?", "en"),
    "pt": ("O mais pr\u00f3ximo trata de {it}: \u00e9 isso?",
           "O mais pr\u00f3ximo trata de {it}: \u00e9 algum destes?", "e"),
    "da": ("Det n\u00e6rmeste handler om {it}: er det ment?",
           "Det n\u00e6rmeste handler om {it}: er noget af det ment?", "og"),
    "no": ("Det n\u00e6rmeste handler om {it}: menes det?",
           "Det n\u00e6rmeste handler om {it}: menes noe av det?", "og"),
    "fi": ("L\u00e4himp\u00e4n\u00e4 on {it}: tarkoititko sit\u00e4?",
           "L\u00e4himp\u00e4n\u00e4 ovat {it}: tarkoititko jotakin niist\u00e4?", "ja"),
    "ar": ("\u0623\u0642\u0631\u0628 \u0645\u0627 \u0641\u064a\u0647\u0627 \u0639\u0646 {it}: \u0647\u0644 "
           "\u0647\u0630\u0627 \u0647\u0648 \u0627\u0644\u0645\u0642\u0635\u0648\u062f\u061f",
           "\u0623\u0642\u0631\u0628 \u0645\u0627 \u0641\u064a\u0647\u0627 \u0639\u0646 {it}: \u0647\u0644 "
           "\u0623\u062d\u062f\u0647\u0627 \u0647\u0648 \u0627\u0644\u0645\u0642\u0635\u0648\u062f\u061f", "\u0648"),
}  # fmt: skip
"""Whether the nearest subject is meant, or one of several; and the conjunction before the last of them."""
_ALL = (*_NOT_SAID.values(), *_UNKNOWN.values())


def get_no_answer_text(question: str = "") -> str:
    """Returns "The documents don't say." in the language of the question, or in English."""
    return _translate(_NOT_SAID, question)


def get_unknown_text(question: str = "") -> str:
    """Returns "I don't know.", the answer if no claim of a model's answer is supported."""
    return _translate(_UNKNOWN, question)


def get_left_out_text(question: str, count: int) -> str:
    """Returns the sentence that says that `count` unsupported statements were left out."""
    return _translate(_LEFT_OUT, question).format(count=count)


def get_unchecked_text(question: str) -> str:
    """Returns the sentence that says that the meaning of the answer was not checked."""
    return _translate(_UNCHECKED, question)


def is_no_answer_text(text: str) -> bool:
    """Whether a text is one of the fixed sentences that there is no answer, and says nothing else."""
    return text.strip(" \t\n*_") in _ALL


def contains_no_answer_text(text: str) -> bool:
    """Whether a text says that there is no answer, in any of the languages."""
    return any(one in text for one in _ALL)


def make_clarifying_question(question: str, subjects: tuple[str, ...]) -> str:
    """Returns the question whether one of the nearest subjects is meant."""
    one, several, conjunction = _MEANT.get(_detect_language(question), _MEANT["en"])
    quoted = [f"\u201c{subject}\u201d" for subject in subjects]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"
    return (one if len(quoted) == 1 else several).format(it=listed)


def _translate(texts: dict[str, str], question: str) -> str:
    return texts.get(_detect_language(question), texts["en"])


def _detect_language(question: str) -> str:
    return "ar" if detect_script(question) == "ARABIC" else detect_question_language(question)
