"""Words that say the same, and words of questions that say little: what a question's words are compared by."""

from agent.grounded_answers.units import WORDS
from agent.text.terms import extract_terms, fold

_GROUPS = """
people person persons employee employees staff worker workers personnel colleague colleagues
holiday holidays leave vacation
cost costs price prices fee fees charge charges expensive cheap admission tariff
salary salaries pay wage wages earnings
car cars vehicle vehicles automobile
weight weigh weighs heavy heavier heaviest light lighter lightest
length long longer longest
height high higher highest tall
width wide wider widest broad
depth deep
speed fast faster fastest quick
age old older oldest born
noise noisy loud louder loudest
size large big bigger biggest largest area
build builds built construct constructed construction erected
design designed designer drew draw drawn architect
sell sells sold sale
buy buys bought purchase purchased
send sends sent
write writes wrote written
lend lends lent
rise rises rose risen increase increased grew grow grown
fall falls fell fallen decrease decreased dropped
burn burns burned burnt
lead leads led leader head heads headed
chair chairs chaired chairman
manage manages managed manager run runs
own owns owned owner
begin begins began start starts started
end ends ended expire expires expired
obtain obtained receive received
doctor doctors physician medical
flat apartment
house home
company firm employer business
maximum most max limit
minimum least min
need needs needed require requires required necessary
allow allowed allows permit permitted may forbidden prohibited
repair repairs repaired fix fixed mend
phone telephone extension
email mail
reimburse reimbursed reimbursement refund refunded repaid paid
accommodation hotel hotels lodging
meal meals food
illness ill sick sickness
supplier suppliers supply supplies sell sells vendor
sign signs signed signature signatures
address mail email
freeze freezes froze frozen freezing
break breaks broke broken
choose chooses chose chosen
drive drives drove driven
eat eats ate eaten
fly flies flew flown
speak speaks spoke spoken
spend spends spent
steal stole stolen
teach teaches taught
throw throws threw thrown
wear wears wore worn
win wins won
lose loses lost
erlaubt erlauben gestattet darf dürfen zulässig
deadline due
resign resignation quit
guarantee warranty
manual guide handbook
error fault failure
locate located location place
resident residents inhabitant inhabitants population
approve approves approved approval authorise authorised
absent absence apologies excused
present attend attends attended attendees attendance participants
abstain abstains abstained abstaining abstention abstentions
pay pays paid payment payments
valid validity apply applies applied applicable
contract contracts agreement agreements
cap caps capped ceiling limit limits limited
close closes closed closing shut shuts
finish finishes finished complete completed
anställd anställda medarbetare
stänger stängt stängd stängda
öppnar öppet öppettider öppen öppna
kosta kostar pris
"""
_SAME: dict[str, frozenset[str]] = {}
for _line in (*_GROUPS.strip().splitlines(), *WORDS.values()):
    _group = frozenset(extract_terms(" ".join(word for word in _line.split() if len(word) > 1)))
    for _term in _group:
        _SAME[_term] = _SAME.get(_term, frozenset()) | _group

_LIGHT = frozenset(
    fold("""
    according account action actual ago allowed amount amounts annual answer anyone applied applies apply approximately
    article ask asked away back begin begins bring brought bullet call called case cases changed color colour come comes
    company
    concern concerning condition conditions contain contained contains count cover covered current currently daily
    date dates day days deal deep degree do does early else end ends ever every everybody everyone exact exactly
    example exist far fast few first following form found full fully general generally get gets give gives go goes
    going good group hand happen happens have heavy high hold holds hour hours include included includes including
    involve item items itself keep keeps kept kind kinds last lasts late left legal let level like line list located
    long made main make makes many matter may mean meant minute minutes month monthly months much must name named
    names necessary need needed needs new next normal normally number numbers offer offered offers old one ones open
    opens order own part parts per percent percentage permitted person persons place placed places please point
    policies policy possible provide provided provides put quick quickly reach real really reason reasons receive
    received receives regular required requirement requirements right rule rules run runs say says second seconds
    section see set short should size small sort start started starts state stated stay stays steps still stop sum
    summarise summarize summary sums take taken takes tall tell there thing think time times total true try type
    types unit use used usually value values way ways week weekly weeks well whole wide within without word words
    year yearly years yes

    alla antal beror brukar dag dagar dagars finns gör gäller gång hög heter hur kallas kostar kostnad länge lång många
    händer högst månad mycket namn ofta sker plats stor tar tid timmar vecka veckor år året öppnar öppet stänger
    anzahl beginnt beträgt dauert ende endet gibt groß heißen heißt hoch jahr jahre kostet lange lang monat name nennt
    oft passiert geschieht höchstens tag tage tagen teuer uhr viel viele wieviel woche wochen zeit öffnet
    année appelle an ans coûte date dure durée fois haut heure heures jour jours mois nom nombre ouvre peut prix
    semaine temps s'appelle
    año años cuesta cuánto día días dura fecha hora horas llama mes nombre número puede tiempo semana
    anno anni chiama costa data dura giorni giorno mese nome numero ora ore può settimana tempo
    aantal begint dag dagen duur duurt heet hoog jaar kost lang maand naam uur vaak week weken
    ano anos chama começa custa data dia dias hora horas mês nome número pode quanto semana tempo
    antall antal begynner begynder dage dager hedder heter koster lenge længe måned måneder navn ofte tid uge uger uke
    uker år
    aika alkaa kauan kestää kuukausi maksaa nimi päivä päivää tunti usein viikko vuosi
    """).split()
)
_SAYS_HOW_MUCH = frozenset(
    extract_terms("cost costs price prices fee fees charge charges expensive cheap pay paid admission budget worth")
)


def same_as(term: str) -> frozenset[str]:
    """The terms that say the same, itself among them."""
    return _SAME.get(term, frozenset()) | {term}


def is_light(word: str) -> bool:
    """Whether a folded word of a question says little of what is asked for."""
    return word in _LIGHT


def asks_money(term: str) -> bool:
    """Whether a term is answered by an amount of money."""
    return term in _SAYS_HOW_MUCH
