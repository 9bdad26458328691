"""Sentences of the labelled answers with figures, by kind and language."""

# ruff: noqa: RUF001 - the multiplication sign is meant

SENTENCES = {
    "amount": {
        "en": "The invoice for {name} comes to {x}.",
        "de": "Die Rechnung für {name} beträgt {x}.",
        "sv": "Fakturan för {name} är på {x}.",
        "fr": "La facture de {name} s'élève à {x}.",
    },
    "quantity": {
        "en": "There are {x} units of {name} in stock.",
        "de": "Von {name} sind {x} Stück auf Lager.",
        "sv": "Det finns {x} enheter av {name} i lager.",
        "fr": "Il y a {x} unités de {name} en stock.",
    },
    "weight": {
        "en": "The load of {name} weighs {x} kg in all.",
        "de": "Die Ladung von {name} wiegt {x} kg.",
        "sv": "Lasten från {name} väger {x} kg.",
        "fr": "Le chargement de {name} pèse {x} kg.",
    },
    "percent": {
        "en": "The share of {name} is {x}%.",
        "de": "Der Anteil von {name} liegt bei {x} %.",
        "sv": "Andelen för {name} är {x} procent.",
        "fr": "La part de {name} est de {x} %.",
    },
    "million": {
        "en": "The budget of {name} is about {x} million.",
        "de": "Das Budget von {name} liegt bei rund {x} Millionen Euro.",
        "sv": "Budgeten för {name} är omkring {x} miljoner kronor.",
        "fr": "Le budget de {name} est d'environ {x} millions d'euros.",
    },
    "thousand": {
        "en": "The turnover with {name} was €{x}k last year.",
        "de": "Der Umsatz mit {name} lag bei {x} Tsd. Euro.",
        "sv": "Omsättningen för {name} var {x} tkr.",
        "fr": "Le chiffre d'affaires avec {name} était de {x} k€.",
    },
    "date": {
        "en": "The contract with {name} ends on {x}.",
        "de": "Der Vertrag mit {name} endet am {x}.",
        "sv": "Avtalet med {name} löper ut {x}.",
        "fr": "Le contrat avec {name} se termine le {x}.",
    },
    "time": {
        "en": "The meeting about {name} starts at {x}.",
        "de": "Das Treffen zu {name} beginnt um {x} Uhr.",
        "sv": "Mötet om {name} börjar kl. {x}.",
        "fr": "La réunion sur {name} commence à {x}.",
    },
    "hours": {
        "en": "The run for {name} takes {x} hours.",
        "de": "Der Lauf für {name} dauert {x} Stunden.",
        "sv": "Körningen för {name} tar {x} timmar.",
        "fr": "Le passage pour {name} dure {x} heures.",
    },
    "range": {
        "en": "The price for {name} is between {y} and {x} dollars.",
        "de": "Der Preis für {name} beträgt {y}\u2013{x} Euro.",
        "sv": "Priset för {name} ligger på {y}\u2013{x} kr.",
        "fr": "Le prix pour {name} est de {y} à {x} euros.",
    },
    "word": {
        "en": "In {name}, {x} people work in the office.",
        "de": "In {name} arbeiten {x} Menschen im Büro.",
        "sv": "I {name} arbetar {x} personer på kontoret.",
        "fr": "À {name}, {x} personnes travaillent au bureau.",
    },
    "total": {
        "en": "Together they come to {x} dollars.",
        "de": "Zusammen sind das {x} Euro.",
        "sv": "Tillsammans blir det {x} kr.",
        "fr": "Au total, cela fait {x} euros.",
    },
    "difference": {
        "en": "{name} rose from {y} to {z}, which is {x} more.",
        "de": "{name} stieg von {y} auf {z}, das sind {x} mehr.",
        "sv": "{name} ökade från {y} till {z}, alltså {x} mer.",
        "fr": "{name} est passé de {y} à {z}, soit {x} de plus.",
    },
    "share": {
        "en": "{y} of {z} orders came from {name}, which is {x}%.",
        "de": "{y} von {z} Bestellungen kamen von {name}, das sind {x} %.",
        "sv": "{y} av {z} beställningar kom från {name}, det är {x} %.",
        "fr": "{y} des {z} commandes venaient de {name}, soit {x} %.",
    },
    "equation": {
        "en": "The cost of {name} is {y} × {z} = {x} dollars.",
        "de": "Die Kosten für {name} sind {y} × {z} = {x} Euro.",
        "sv": "Kostnaden för {name} är {y} * {z} = {x} kr.",
        "fr": "Le coût de {name} est {y} × {z} = {x} euros.",
    },
    "grams": {
        "en": "A piece of {name} weighs {x} g.",
        "de": "Ein Stück {name} wiegt {x} g.",
        "sv": "En bit {name} väger {x} g.",
        "fr": "Une pièce de {name} pèse {x} g.",
    },
    "year": {
        "en": "The company {name} has existed since {x}.",
        "de": "Die Firma {name} besteht seit {x}.",
        "sv": "Företaget {name} har funnits sedan {x}.",
        "fr": "L'entreprise {name} existe depuis {x}.",
    },
    "ordinal": {
        "en": "{name} came in {x} in the ranking.",
        "de": "{name} landete auf dem {x} Platz der Liste.",
        "sv": "{name} kom på {x} plats i listan.",
        "fr": "{name} est arrivé à la {x} place du classement.",
    },
    "table": {
        "en": "| item | price |\n|---|---|\n| {name} | {x} |",
        "de": "| Artikel | Preis |\n|---|---|\n| {name} | {x} |",
        "sv": "| artikel | pris |\n|---|---|\n| {name} | {x} |",
        "fr": "| article | prix |\n|---|---|\n| {name} | {x} |",
    },
}
PROSE = {
    "en": "For {name} the ledger has {a} and {b}, as of {d}.",
    "de": "Für {name} stehen {a} und {b} im Buch, Stand {d}.",
    "sv": "För {name} står det {a} och {b} i boken den {d}.",
    "fr": "Pour {name}, le registre indique {a} et {b}, au {d}.",
}

EXTRA = {
    "en": "The {key} of {name} is {x} as we know.",
    "de": "Die Angabe {key} ist bei {name} {x} und gilt.",
    "sv": "Uppgiften {key} är för {name} {x} och den gäller.",
    "fr": "La donnée {key} est de {x} pour {name} et elle vaut.",
}
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
WORDS = {
    "en": "thirty-one forty-seven fifty-two sixty-four seventy-three eighty-eight ninety-six",
    "de": "einunddreißig siebenundvierzig zweiundfünfzig vierundsechzig dreiundsiebzig achtundachtzig sechsundneunzig",
    "sv": "trettioett fyrtiosju femtiotvå sextiofyra sjuttiotre åttioåtta nittiosex",
    "fr": "trente-et-un quarante-sept cinquante-deux soixante-quatre soixante-treize quatre-vingt-huit "
    "quatre-vingt-seize",
}
