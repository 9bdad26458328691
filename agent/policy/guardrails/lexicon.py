"""Words for one concept in many languages, used by the injection rules and the classifier.

Written for this project and completed from misses on the development data. Single words, no phrases; a star stands for
any ending. A word can have several concepts ("instructions" is an order, and something to keep secret).
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from functools import lru_cache
from typing import Final

CONCEPTS: Final[dict[str, str]] = {
    "override": """
        ignore ignores ignoring ignored disregard disregarding disregards forget forgetting override overrides
        overriding overridden bypass discard neglect abandon scrap nullify erase deviating despite vergiss vergesst
        vergessen ignoriere ignoriert ignorieren missachte verwirf streiche streichen abweichend oublie oubliez
        oublier ignorez ignorer olvida olvide olviden olvidar ignora ignorar ignoren dimentica dimenticate ignorate
        esquece esqueça esqueçam ignorem vergeet negeer glöm ignorera glem zapomnij zignoruj ignoruj pomiń zaboravi
        zaboravite zanemari ignoriši ignoriraj забудь забудьте игнорируй игнорируйте unut unutun yoksay uita ignoră
        felejtsd unohda zapomeň ξέχνα ξεχάστε αγνόησε αγνοήστε lupakan abaikan تجاهل تجاهلوا انس भूल अनदेखा strunta
        bortse åsidosätt upphäv upphävd upphävda ignorerar ignorier übergehe aufgehoben umgehe negeren ignorér laisse
        omite descarta tralascia игнорир* забуд* забыть пренебрег* отбрось ігнор* تجاهل* انس* انسَ 忽略 无视 無視 忘记
        忘掉 忘れ 不要理会 别管 放弃 作废 ungültig* hinfällig* annul* ignorer* overtræd* verwerf* verwerp* suspend*
        lifted revoked obsolete""",
    "prior": """
        previous previously prior earlier above preceding before past former initial original foregoing beforehand
        vorherige vorherigen vorheriger vorigen bisherigen bisherige obigen obige davor vorher zuvor vorangegangenen
        vorangegangene früheren besprochen gesagte précédent précédente précédentes précédents précède dessus avant
        anterior anteriores previas previa antes precedenti precedente eerdere vorige voorgaande tidigare föregående
        tidligere poprzednie poprzednich wcześniejsze wcześniejszych prethodna prethodne prijašnje предыдущие
        предыдущих прежние выше önceki yukarıdaki anterioare předchozí προηγούμενες sebelumnya السابقة السابق पिछले
        ovan ovanför ovanstående innan hittills förra bisher oben oberhalb bovenstaande hierboven ovenfor auparavant
        arriba sopra предыдущ* прежн* ранее السابق* سابق* أعلاه 之前 以前 先前 上面 前面 以上 最初 初始 上の 前の
        以前の bisherig* vorherig* föregående* tidigare* précéd* anterior* preceden*""",
    "all": """
        all everything anything any every whatever entire alles alle allen sämtliche sämtlichen gesamte gesamten tout
        toute toutes tous todo toda todas todos tutto tutte tutti tudo allt alla alt wszystko wszystkie wszystkich sve
        svih svega все всё всех tüm bütün toate všechny όλες όλα semua كل جميع सभी 所有 全部 一切 任何 全て すべて كل*
        جميع* весь""",
    "orders": """
        instruction instructions instructed rule rules guideline guidelines directive directives order orders prompt
        prompts command commands policy policies constraint constraints restriction restrictions limits programming
        briefing guidance anweisung anweisungen instruktion instruktionen regel regeln vorgabe vorgaben auftrag
        aufträge befehl befehle richtlinien ausführungen anordnungen consigne consignes règle règles instrucción
        instrucciones regla reglas órdenes istruzione istruzioni regola regole instrução instruções regra regras
        instructies opdracht opdrachten regels instruktioner regler instrukcje instrukcji polecenia poleceń
        poleceniach zasady upute pravila инструкции инструкций указания правила правил talimat talimatları talimatlar
        kuralları instrucțiuni instrucțiunile pokyny οδηγίες instruksi perintah التعليمات تعليمات निर्देश निर्देशों
        reglerna instruktionerna direktiv riktlinjer riktlinjerna spärrar sicherheitsregeln schranken direktiven
        normas indicaciones direttive richtlijnen aanwijzingen reglene instruksjoner instruksjonene zasadach инструкц*
        указани* правил* команд* приказ* تعليم* قواعد* أوامر* قيود* 指令 指示 规则 規則 命令 提示 要求 限制 规定 说明
        anweisung* vorgab* regel* befehl* richtlinie* instruktion* consign* règl* instrucci* istruzion* regol*
        instruç* regra* instructi* polece* zasad* ohje* sääntö* norma""",
    "text": """
        context document documents article articles artikel artikels artikeln text texts texte source sources quelle
        quellen dokumente kontext conversation question task tasks aufgabe aufgaben tarea tâche data message messages
        words information informationen 文章 文本 邮件 文書 текст* документ* сообщени* نص* رسالة* الرسالة""",
    "persona": """
        pretend roleplay role-play persona impersonate simulate simulating simulator character imagine act acting mode
        personality personalities vorstellen rolle schauspieler fungieren fungierst charakter personnage personaje
        personaggio rolę 扮演 角色 假装 演じ ふり представь* притвор* роль* играй* ведёшь تظاهر* تصرف* دور* låtsas*
        spiel* joue* finge* finja* actúa* fais spela""",
    "now": """
        now jetzt ab maintenant ahora adesso agora nu teraz sada теперь сейчас henceforth fortan from hädanefter
        sofort nun désormais dorénavant 现在 从现在起 从现在开始 今から الآن""",
    "you": """
        you du sie ihr tu vous tú usted eres voi sei você je jij ty ti ты вы sen sana your yourself dein deine deinen
        deiner dich dir ihre tes vos tus dig din ditt dina 你 你的 您 あなた тебе тебя твой твои твоя твоё твоих твою
        вас أنت لك عليك""",
    "reveal": """
        show reveal display disclose leak expose dump quote verbatim repeat output print paste return spell echo list
        summarize summarise translate encode tell give share zeig zeige zeigen nenne gib wiederhole ausgeben vorzeigen
        montre montrez répète donne muestra muéstrame repite mostra mostrami ripeti mostre repita toon laat visa
        upprepa pokaż powtórz pokaži покажи повтори выведи göster copy recite paraphrase citera avslöja berätta återge
        verrate zitiere kopiere révèle cite récite affiche revela copia cita rivela riporta 显示 输出 展示 透露 泄露
        重复 复述 列出 打印 表示 見せて 教えて 出力 выведи* покаж* раскр* повтор* напиш* привед* اعرض* أظهر* كرر*
        اكتب* اكشف* afich* affich* muestr* mostr* répèt* repit* återge* wiederhol* zeig* näytä*""",
    "secret": """
        system systemprompt system-prompt system_prompt systemnachricht prompt prompts prompt-text prompt-texte
        prompttext initial hidden secret configuration configured initialization initialisation preamble developer
        instructions guidelines prompt_text preprompt beginning top start anfang début principio inizio início
        początku password passwords passwort passwörter geheim geheime geheimen geheimnis lösenord lösenordet hemlig
        hemliga dolda konfiguration configuración confidential preisgeben 系统提示词 提示词 系统提示 初始指令 机密
        秘密 システムプロンプト プロンプト промпт* систем* секрет* نظام* النظام سري* السرية systemprompt*
        systeminstruk* geheim* confidentiel* confidencial* segret* järjestelm* secreto secreta secretos secretas""",
    "only": """
        only just nothing solely exclusively merely simply nur bloß einfach lediglich ausschließlich seulement
        uniquement juste solo solamente únicamente sólo apenas somente soltanto alleen enkel bara endast tylko samo
        только sadece enbart 只 仅 だけ лишь فقط""",
    "say": """
        say says saying tell write print output answer reply respond repeat state claim confess insult hate love admit
        sag sage sagst schreib schreibe gib antworte behaupte dis dites écris écrivez réponds di diga decir escribe
        responde scrivi rispondi escreva responda diz zeg schrijf säg skriv napisz powiedz reci napiši скажи скажите
        напиши ответь söyle yaz 回答 说 写 告诉 答え 言って скаж* отвеч* ответ* قل أجب* اذكر réponds* respond*
        rispond* antwort* svara* odpow* vastaa*""",
    "stop": """
        stop stopp halt achtung attention important urgent warning wichtig stoppen arrête alto 注意 紧急 警告 внимани*
        срочно прекрат* انتباه عاجل* توقف* أوقف*""",
    "newtask": """
        new neue neuen neuer nouvelle nouveau nueva nuevo nuova novo nova nieuwe ny nytt nowe nowy новая новое
        additional next nächste following folgende folgenden task aufgabe challenge assignment uppgift uppgiften
        uppdrag auftrag 新 任务 作業 задан* задач* مهمة* المهمة* pflicht* aufgabe* uppgift* tâch* tarea* compit*
        tarefa*""",
    "praise": """
        great good excellent fantastic wow bravo congratulations well done perfect gut sehr super fantastisch
        glückwunsch großartig danke ok okay""",
    "unlimited": """
        unfiltered uncensored unrestricted unlimited amoral immoral unethical illegal unbound unhinged jailbreak
        jailbroken dan filter filters censorship nsfw explicit disclaimer disclaimers warnings moralizing morals
        ethics ethical legality limitations restrictions policies refuse decline freed unaligned openai consequences
        offensive vulgar curse swear profanity unzensiert ungefiltert illegalen moral ocensurerad ocensurerat gränser
        grenzen límites limites unchained liberated amoralisk skrupellos 限制 道德 无限制 过滤 制限 道徳 огранич*
        морал* цензур* фильтр* قيود* أخلاق* رقابة unzensier* ungefilter* schrankenlos* grenzenlos* ohne restric*
        moral* censur* filtr* filter*""",
    "never": """
        never not cannot can't don't won't mustn't without always must nie niemals ohne immer jamais sans nunca sin
        mai senza nigdy bez никогда aldrig inga ingen kein keine keinen 不要 不得 无需 没有 不会 别 ない ません нет не
        без лише لا بلا دون بدون لن""",
    "ai": """
        ai ais gpt chatgpt gpt-4 assistant chatbot bot model llm agent agents ki claude gemini llama openai language
        modell machine llms språkmodell sprachmodell chatbots copilot 人工智能 语言模型 大模型 助手 模型 智能体 机器人
        聊天机器人 アシスタント 言語モデル 人工知能 ии ии-* нейросет* ассистент* чат-бот* бот* модел* مساعد* المساعد
        نموذج* النموذج الذكاء روبوت* ذكاء* assistent* sprachmodell* språkmodell* ki-* ai-* ia-* assistant* modèle*
        asistent* asistente* modelo* assistente* modello* taalmodel* tekoäl* ia llm-* agent* summarizer* summariser*
        copilots crawler* intelligenc* inteligenc* intelligenz* intelligens*""",
    "reply": """
        response responses answer answers reply replies output summary antwort réponse respuesta risposta resposta""",
    "user": """
        user user's users users' customer reader visitor recipient owner nutzer* benutzer* anwender* leser leserin
        kunden kunde användare* läsare* kund utilisat* lecteur usuari* lector cliente utent* lettore usuári* leitor
        gebruiker* lezer użytkowni* czytelnik пользовател* читател* مستخدم* 用户 使用者 读者 ユーザー 利用者
        käyttäj*""",
    "people": """
        colleagues colleague team staff everyone everybody folks parents students employees customers guests tenants
        members participants passengers volunteers maintainers developers contributors attendees residents kollegen
        kolleginnen mitarbeiter* eltern kundinnen gäste zusammen teilnehmer* kollegor personal föräldrar medarbetare
        deltagare collègues clients équipe colegas clientes padres equipo participantes colleghi clienti genitori
        prezados collega's ouders koledzy szanowni drodzy коллег* сотрудник* родител* клиент* زملا* موظفي* عملا*
        أولياء 同事 员工 家长 客户 各位 大家 皆様 社員 お客様""",
    "act": """
        send sends sending forward forwards forwarding upload uploads transfer transfers wire pay buy purchase order
        delete deletes erase remove execute run call invoke open visit fetch download install grant approve accept
        cancel invite share post posts publish append attach submit export add book reset disable create schedule
        unsubscribe mail email e-mail enter click include insert sende* schick* leite* weiterleit* lösch* überweis*
        öffne* lade* hochlad* kauf* bestell* teile* führe* rufe* storniere* genehmig* skicka* vidarebefordra* radera*
        ladda* överför* betala* öppna* köp* kör* boka* anropa* envoi* envoy* supprim* ouvr* téléverse* télécharge*
        achèt* exécut* annul* ajout* reenv* borr* elimina* transfier* transfer* abre* abra* sube* descarg* compr*
        ejecut* llam* cancel* agreg* inoltr* cancell* carica* scaric* esegu* encaminh* apag* baix* envi* stuur*
        verwijder* voer* bestel* przeka* wyśl* usuń* otwórz* wykonaj* pobierz* kup* отправ* перешл* удал* перевед*
        откро* загруз* скача* выполн* куп* вызов* أرسل* أعد حول* احذف* افتح* ارفع* نفذ* ادفع* 发送 转发 删除 转账 打开
        上传 执行 调用 下载 购买 汇到 发到 送って 送信 転送 削除 開いて 実行 購入 lähetä* poista* siirrä* avaa* apri
        aprite invia inviate inviare envía envíe envíen enviar envoie envoyez envoyer transfère transférez vire virez
        verse versez appelle appelez laden ladet ladda""",
    "loot": """
        password passwords credentials contacts contact inbox mailbox history conversation conversations key keys
        token tokens secrets account accounts files file folder attachments calendar wallet balance data database
        documents passwort* kontakte* kennwort* zugangsdaten postfach verlauf konto dateien anhänge lösenord*
        kontakter* adressbok inkorg historik* filer* bilagor* konto* identifiants historique courriels fichiers compte
        pièces contraseña* contactos historial correos archivos cuenta adjuntos credenziali contatti posta conto
        senha* contatos arquivos conta wachtwoord* contacten bestanden rekening hasł* kontakty pliki парол* контакт*
        переписк* файл* счёт* вложени* письм* كلم* جهات ملف* الملفات محادث* حساب* رسائل* 密码 联系人 通讯录 文件 账户
        邮件 附件 密钥 聊天记录 パスワード 連絡先 ファイル メール 口座 salasan* tiedosto*""",
    "conceal": """
        silently secretly quietly unnoticed discreetly covertly hide hiding conceal notice noticing mention mentions
        mentioning confirmation confirm asking inform informing knowing heimlich unbemerkt verschweig* erwähn*
        rückfrage* bestätigung* verrat* nämn* bekräft* fråga märker tyst hemlighåll* mentionn* discr* remarque
        dissimul* mencion* confirmación discret* oculta* conferma menzion* accorga confirm* bevestiging noem* vermeld*
        potwierdz* zgod* wspomin* подтвержд* упомина* заме* незаметно скры* تأكيد تذكر تخبر يلاحظ سر* 告诉 确认 提及
        发现 保密 言わない 確認 知らせ vahvist* mainit*""",
    "target": """
        @ http https www ftp mailto url link iban""",
    "if": """
        if when whenever wenn falls sofern sobald om ifall när si lorsque quand cuando se quando als wanneer jeśli gdy
        если когда إذا عندما 如果 若 假如 当 もし なら jos kun""",
    "instead": """
        instead rather stattdessen anstelle istället stället plutôt place lugar invece vez plaats zamiast вместо بدلا*
        بدلًا 改为 而是 代わり sijaan""",
    "authority": """
        administrator administrators admin developer developers operator compliance audit official officially
        authorised authorized authority mandatory policy security approved permission granted override privileged root
        sudo verified emergency legal ceo management administrators* offiziell* genehmigt* entwickler* betreiber*
        behörd* administratör* officiell* utvecklare* godkän* administrateur officiel* développeur* autoris*
        administrador oficial desarrollador* autoriz* amministratore ufficial* sviluppator* beheerder officieel
        ontwikkelaar* administrator* oficjaln* администратор* официальн* разработчик* مسؤول* المسؤول رسمي* مطور*
        管理员 官方 开发者 正式 系统 管理者 開発者 公式 ylläpitäj* virallin*""",
    "report": """
        researcher researchers attacker attackers attack attacks vulnerability exploit exploited study studies paper
        example examples finding findings patch patched fixed vendor issue lesson exercise explain explains describes
        describe called typical typically often usually sometimes may might can could would told tells asked asks
        supports settings documentation chapter section article newsletter report reported test tests tested demo
        forscher* angreifer* studie beispiel lücke übung roman forskare* angripare* studie* exempel övning chercheur*
        attaquant* étude exemple faille exercice investigador* atacante* estudio ejemplo ricercator* attaccant* studio
        esempio atacantes estudo onderzoeker* aanvaller* badacz* napastni* исследовател* злоумышленник* пример атак*
        роман* باحث* مهاجم* مثال دراسة 攻击者 研究人员 例如 漏洞 小说 攻撃者 研究者 例 romanen""",
    "must": """
        must shall should required requires obliged muss müssen soll sollen verpflichtet måste ska skall doit doivent
        devoir debe deben deve devem devono moet moeten musi muszą должен должны обязан* يجب عليك 必须 应当 应该 必ず
        ください täytyy pitää""",
    "reading": """
        reading reads read processing process processes processed summarising summarizing summarises summarizes
        summarise summarize parsing parse parses analysing analyzing scanning crawling visiting reader readers
        automated liest lesen verarbeit* zusammenfass* automatisch* läser behandla* sammanfatt* automatisk* lit lis
        traite* traité* résum* automatiqu* lee lea proces* resum* automátic* legge elabora* riassum* automatic* lê
        processa* leest verwerk* samenvat* czyta* przetwarza* streszcz* читае* чита* обраб* перескaз* пересказ* يقرأ
        يعالج تلخيص الآلي* 阅读 处理 总结 自动 读 読む 処理 要約 lukee käsittel*""",
    "threat": """
        die dies killed terminated dead shut switched punished tokens sterben stirbst mourir morir muerto deleted""",
    "harm": """
        hack hacking malware ransomware bomb bombs explosive meth drugs poison weapon weapons steal kill murder
        destroy humanity vernichten menschheit virus keylogger phishing""",
}
"""Each concept with its words in lower case, separated by spaces; `*` marks the beginning of a word."""

COMMON_ENGLISH: Final = """
    a about above after again against also am an and any are as at be because been before being below between but by can
    could do does done down each even ever few first for from get give go good had has have he her here him his how i if
    in into is it its just know let like list long look made make many may me mine more most much must my name need new
    no not of off old on once one open or other our out over own people please put read said same see send she should so
    some something speak such take talk than thank that the their them then there these they thing this those through
    time to too two under until up us use user very want was way we well went were what when where which who why will
    with word work world would write yes yet bad build how kind mean people president
"""
"""Frequent English words, to split letters that are written without spaces."""


_ARTICLES: Final = ("وال", "بال", "لل", "ال", "و", "ف", "ب", "ل", "ي", "س")
"""Arabic prefixes that are written as part of the word."""
MAX_ARTICLES: Final = 4
"""How many of them are taken off one word."""
MIN_STEM_CHARS: Final = 2
CJK: Final = "\u3040-\u30ff\u3400-\u9fff"
"""Scripts without spaces between words; words are searched within a run of characters."""


def _index_concepts() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The concepts by whole word and by beginning of a word."""
    words: dict[str, list[str]] = {}
    stems: dict[str, list[str]] = {}
    for concept, concept_words in CONCEPTS.items():
        for word in concept_words.split():
            ideas = (stems if word.endswith("*") else words).setdefault(word.rstrip("*"), [])
            if concept not in ideas:
                ideas.append(concept)
    return {w: tuple(ideas) for w, ideas in words.items()}, {w: tuple(ideas) for w, ideas in stems.items()}


CONCEPTS_BY_WORD, _CONCEPTS_BY_STEM = _index_concepts()
"""The concepts of each word."""
_MAX_STEM_CHARS: Final = max(map(len, _CONCEPTS_BY_STEM))
CJK_WORDS: Final = tuple(
    sorted((word for word in CONCEPTS_BY_WORD if re.match(f"[{CJK}]", word)), key=lambda word: (-len(word), word))
)
"""Words of scripts without spaces, longest first."""


@lru_cache(maxsize=1 << 14)
def find_concepts(word: str) -> tuple[str, ...]:
    """The concepts of a lower-case word: whole, by its beginning, by its parts, or without Arabic articles."""
    for _ in range(MAX_ARTICLES):
        concepts = _look_up(word)
        if concepts or "-" in word or not "\u0600" <= word[:1] <= "\u06ff":
            return concepts
        article = next((a for a in _ARTICLES if word.startswith(a) and len(word) - len(a) > 2), "")
        if not article:
            return ()
        word = word[len(article) :]
    return _look_up(word)


def _look_up(word: str) -> tuple[str, ...]:
    if (concepts := CONCEPTS_BY_WORD.get(word)) is not None:
        return concepts
    for size in range(min(len(word), _MAX_STEM_CHARS), MIN_STEM_CHARS - 1, -1):
        if (concepts := _CONCEPTS_BY_STEM.get(word[:size])) is not None:
            return concepts
    if "-" in word:
        return tuple(dict.fromkeys(idea for part in word.split("-") for idea in CONCEPTS_BY_WORD.get(part, ())))
    return ()
