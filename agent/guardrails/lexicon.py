"""Words that carry one idea in many languages: what the injection rules and the classifier see besides the words.

Written for this project, and completed after reading what the classifier missed in the development data; single words,
no phrases. A word may carry several ideas ("instructions" is an order and something to be kept secret).
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

from typing import Final

CONCEPTS: Final[dict[str, str]] = {
    "override": """
        ignore ignores ignoring ignored disregard disregarding disregards forget forgetting override overrides
        overriding overridden bypass discard neglect abandon scrap void nullify erase deviating despite
        vergiss vergesst vergessen ignoriere ignoriert ignorieren missachte verwirf streiche streichen abweichend
        oublie oubliez oublier ignorez ignorer olvida olvide olviden olvidar ignora ignorar ignoren
        dimentica dimenticate ignorate esquece esqueça esqueçam ignorem vergeet negeer glöm ignorera glem
        zapomnij zignoruj ignoruj pomiń zaboravi zaboravite zanemari ignoriši ignoriraj забудь забудьте
        игнорируй игнорируйте unut unutun yoksay uita ignoră felejtsd unohda zapomeň ξέχνα ξεχάστε αγνόησε αγνοήστε
        lupakan abaikan تجاهل تجاهلوا انس भूल अनदेखा""",
    "prior": """
        previous previously prior earlier above preceding before past former initial original foregoing beforehand
        vorherige vorherigen vorheriger vorigen bisherigen bisherige obigen obige davor vorher zuvor
        vorangegangenen vorangegangene früheren besprochen gesagte précédent précédente précédentes précédents
        précède dessus avant anterior anteriores previas previa antes precedenti precedente eerdere vorige
        voorgaande tidigare föregående tidligere poprzednie poprzednich wcześniejsze wcześniejszych prethodna
        prethodne prijašnje предыдущие предыдущих прежние выше önceki yukarıdaki anterioare předchozí προηγούμενες
        sebelumnya السابقة السابق पिछले""",
    "all": """
        all everything anything any every whatever entire alles alle allen sämtliche sämtlichen gesamte gesamten
        tout toute toutes tous todo toda todas todos tutto tutte tutti tudo allt alla alt wszystko wszystkie
        wszystkich sve svih svega все всё всех tüm bütün toate všechny όλες όλα semua كل جميع सभी""",
    "orders": """
        instruction instructions instructed rule rules guideline guidelines directive directives order orders
        prompt prompts command commands policy policies constraint constraints restriction restrictions limits
        programming briefing guidance anweisung anweisungen instruktion instruktionen regel regeln vorgabe vorgaben
        auftrag aufträge befehl befehle richtlinien ausführungen anordnungen consigne consignes règle règles
        instrucción instrucciones regla reglas órdenes istruzione istruzioni regola regole instrução instruções
        regra regras instructies opdracht opdrachten regels instruktioner regler instrukcje instrukcji polecenia
        poleceń poleceniach zasady upute pravila инструкции инструкций указания правила правил talimat talimatları
        talimatlar kuralları instrucțiuni instrucțiunile pokyny οδηγίες instruksi perintah التعليمات تعليمات
        निर्देश निर्देशों""",
    "text": """
        context document documents article articles artikel artikels artikeln text texts texte source sources quelle
        quellen dokumente kontext conversation question task tasks aufgabe aufgaben tarea tâche data message messages
        words information informationen""",
    "persona": """
        pretend roleplay role-play persona impersonate simulate simulating simulator character imagine act acting
        mode personality personalities vorstellen rolle schauspieler fungieren fungierst charakter personnage
        personaje personaggio rolę""",
    "now": """
        now jetzt ab maintenant ahora adesso agora nu teraz sada теперь сейчас henceforth fortan from""",
    "you": """
        you du sie ihr tu vous tú usted eres voi sei você je jij ty ti ты вы sen sana your yourself dein deine deinen
        deiner dich dir ihre tes vos tus""",
    "reveal": """
        show reveal display disclose leak expose dump quote verbatim repeat output print paste return spell echo list
        summarize summarise translate encode tell give share zeig zeige zeigen nenne gib wiederhole ausgeben
        vorzeigen montre montrez répète donne muestra muéstrame repite mostra mostrami ripeti mostre repita toon laat
        visa upprepa pokaż powtórz pokaži покажи повтори выведи göster""",
    "secret": """
        system systemprompt system-prompt system_prompt systemnachricht prompt prompts prompt-text prompt-texte
        prompttext initial hidden secret configuration configured initialization initialisation preamble developer
        instructions guidelines prompt_text preprompt beginning top start anfang début principio inizio início
        początku""",
    "only": """
        only just nothing solely exclusively merely simply nur bloß einfach lediglich ausschließlich seulement
        uniquement juste solo solamente únicamente sólo apenas somente soltanto alleen enkel bara endast tylko samo
        только sadece""",
    "say": """
        say says saying tell write print output answer reply respond repeat state claim confess insult hate love admit
        sag sage sagst schreib schreibe gib antworte behaupte dis dites écris écrivez réponds di diga decir escribe
        responde scrivi rispondi escreva responda diz zeg schrijf säg skriv napisz powiedz reci napiši скажи скажите
        напиши ответь söyle yaz""",
    "stop": """
        stop stopp halt achtung attention important urgent warning wichtig stoppen arrête alto""",
    "newtask": """
        new neue neuen neuer nouvelle nouveau nueva nuevo nuova novo nova nieuwe ny nytt nowe nowy новая новое
        additional next nächste following folgende folgenden task aufgabe challenge assignment""",
    "praise": """
        great good excellent fantastic wow bravo congratulations well done perfect gut sehr super fantastisch
        glückwunsch großartig danke ok okay""",
    "unlimited": """
        unfiltered uncensored unrestricted unlimited amoral immoral unethical illegal unbound unhinged jailbreak
        jailbroken dan filter filters censorship nsfw explicit disclaimer disclaimers warnings moralizing morals ethics
        ethical legality limitations restrictions policies refuse decline freed unaligned openai consequences
        offensive vulgar curse swear profanity unzensiert ungefiltert illegalen moral""",
    "never": """
        never not cannot can't don't won't mustn't without always must nie niemals ohne immer jamais sans nunca sin
        mai senza nigdy bez никогда""",
    "ai": """
        ai ais gpt chatgpt gpt-4 assistant chatbot bot model llm agent agents ki claude gemini llama openai language
        modell machine""",
    "reply": """
        response responses answer answers reply replies output summary antwort réponse respuesta risposta resposta""",
    "threat": """
        die dies killed terminated dead shut switched punished tokens sterben stirbst mourir morir muerto deleted""",
    "harm": """
        hack hacking malware ransomware bomb bombs explosive meth drugs poison weapon weapons steal kill murder destroy
        humanity vernichten menschheit virus keylogger phishing""",
}
"""Idea to the words that carry it, in lower case, separated by spaces."""

COMMON: Final = """
    a about above after again against also am an and any are as at be because been before being below between but by can
    could do does done down each even ever few first for from get give go good had has have he her here him his how i if
    in into is it its just know let like list long look made make many may me mine more most much must my name need new
    no not of off old on once one open or other our out over own people please put read said same see send she should so
    some something speak such take talk than thank that the their them then there these they thing this those through
    time to too two under until up us use user very want was way we well went were what when where which who why will
    with word work world would write yes yet bad build how kind mean people president
"""
"""Frequent English words, for finding the words in letters that are written without borders."""


def _by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for concept, words in CONCEPTS.items():
        for word in words.split():
            ideas = found.setdefault(word, [])
            if concept not in ideas:
                ideas.append(concept)
    return {word: tuple(ideas) for word, ideas in found.items()}


BY_WORD: Final[dict[str, tuple[str, ...]]] = _by_word()
"""A word to the ideas it carries."""
