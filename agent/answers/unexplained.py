"""Marks the unexplained figures of an answer, so that readers know which ones to check."""

import re
from collections.abc import Sequence

MARK = "[?]"
"""Follows each unexplained figure, and precedes the sentence about them."""
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_SENTENCES = {
    "en": "Not confirmed by any result: {figures}. Check before you rely on it.",
    "sv": "Bekräftas inte av något resultat: {figures}. Kontrollera innan du litar på det.",
    "de": "Durch kein Ergebnis belegt: {figures}. Bitte prüfen, bevor Sie sich darauf verlassen.",
    "fr": "Confirmé par aucun résultat : {figures}. À vérifier avant de s'y fier.",
    "es": "Sin confirmar por ningún resultado: {figures}. Compruébelo antes de confiar en ello.",
    "it": "Non confermato da alcun risultato: {figures}. Da verificare prima di farvi affidamento.",
    "nl": "Door geen enkel resultaat bevestigd: {figures}. Controleer dit voordat u erop vertrouwt.",
    "pt": "Não confirmado por nenhum resultado: {figures}. Verifique antes de confiar nisto.",
    "da": "Bekræftes ikke af noget resultat: {figures}. Kontrollér, før du stoler på det.",
    "no": "Bekreftes ikke av noe resultat: {figures}. Kontroller før du stoler på det.",
    "fi": "Mikään tulos ei vahvista: {figures}. Tarkista ennen kuin luotat tähän.",
    "pl": "Żaden wynik tego nie potwierdza: {figures}. Sprawdź, zanim na tym polegasz.",
}


def mark_figures(text: str, figures: Sequence[str], language: str, *, inline: bool) -> str:
    """The answer with a sentence about its unexplained `figures`, in `language` or else in English.

    With `inline`, marks each figure outside code too. A streamed text gets only the sentence: it may only grow."""
    parts = _CODE.split(text)
    if inline:
        parts[::2] = [_add_marks(part, figures) for part in parts[::2]]
    sentence = _SENTENCES.get(language, _SENTENCES["en"]).format(figures=", ".join(figures))
    return f"{''.join(parts).rstrip()}\n\n{MARK} {sentence}" if inline else f"{text}\n\n{MARK} {sentence}"


def _add_marks(text: str, figures: Sequence[str]) -> str:
    alternatives = "|".join(re.escape(figure) for figure in sorted(figures, key=len, reverse=True))
    return re.sub(rf"(?<![\w.,])(?:{alternatives})(?![\w]|[.,]\d)", rf"\g<0> {MARK}", text) if alternatives else text
