"""Says under an answer that the model only repeated itself from there on: the stream was ended."""

from agent.text.repetition import find_loop

REASON = "the model repeated itself until its answer was cut; ask again in other words, or with another model"
SENTENCES = {
    "en": "The model repeated itself, so the answer ends here. Ask again in other words, or with another model.",
    "sv": "Modellen upprepade sig, så svaret slutar här. Fråga igen med andra ord eller med en annan modell.",
    "de": "Das Modell wiederholte sich, daher endet die Antwort hier. Fragen Sie anders oder mit einem anderen Modell.",
    "fr": "Le modèle se répétait : la réponse s'arrête ici. Reformulez, ou essayez avec un autre modèle.",
    "es": "El modelo se repetía, así que la respuesta acaba aquí. Pregunte de otra forma o con otro modelo.",
    "it": "Il modello si ripeteva: la risposta finisce qui. Riprovi con altre parole o con un altro modello.",
    "nl": "Het model herhaalde zich, dus het antwoord stopt hier. Vraag het anders, of met een ander model.",
    "pt": "O modelo repetia-se, por isso a resposta acaba aqui. Pergunte por outras palavras ou com outro modelo.",
    "da": "Modellen gentog sig, så svaret slutter her. Spørg igen med andre ord eller med en anden model.",
    "no": "Modellen gjentok seg, så svaret slutter her. Spør igjen med andre ord eller med en annen modell.",
    "fi": "Malli toisti itseään, joten vastaus päättyy tähän. Kysy toisin sanoin tai toiselta mallilta.",
    "pl": "Model się powtarzał, więc odpowiedź kończy się tutaj. Zapytaj inaczej albo innego modelu.",
}


def end_looping_answer(text: str, language: str, *, was_streamed: bool) -> str:
    """An answer whose end is a loop, with the sentence in `language` or else in English. Of one that nobody has read
    yet, the repetitions are left out."""
    written = text
    while not was_streamed and (start := find_loop(written)) >= 0:  # it looks at the end of a long text only
        written = written[:start].rstrip()
    return f"{written}\n\n{SENTENCES.get(language, SENTENCES['en'])}"
