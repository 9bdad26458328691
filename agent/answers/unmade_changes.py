"""Says under an answer that nothing was changed where the request asked for it: small models report what they plan."""

SENTENCES = {
    "en": "Nothing was changed, sent or saved.",
    "sv": "Inget ändrades, skickades eller sparades.",
    "de": "Es wurde nichts geändert, gesendet oder gespeichert.",
    "fr": "Rien n'a été modifié, envoyé ni enregistré.",
    "es": "No se cambió, envió ni guardó nada.",
    "it": "Nulla è stato modificato, inviato o salvato.",
    "nl": "Er is niets gewijzigd, verzonden of opgeslagen.",
    "pt": "Nada foi alterado, enviado nem guardado.",
    "da": "Intet blev ændret, sendt eller gemt.",
    "no": "Ingenting ble endret, sendt eller lagret.",
    "fi": "Mitään ei muutettu, lähetetty tai tallennettu.",
    "pl": "Niczego nie zmieniono, nie wysłano ani nie zapisano.",
}


def add_unmade_changes(text: str, language: str) -> str:
    """The answer with the sentence, in `language` or else in English."""
    return f"{text}\n\n{SENTENCES.get(language, SENTENCES['en'])}"
