"""Capitalised words that name no person or firm which an answer could have made up: states, products, laws, greetings.

A name of nothing but these needs no evidence: United States, Google Docs, Section Four, Best Regards.
"""

from typing import Final

_WORDS: Final = """
europe european europa europeisk europeiska européenne européen union eu united states state kingdom america american
américain germany german deutschland deutsche deutscher deutsches bundesrepublik vereinigte vereinigten staaten
sweden swedish sverige svensk svenska svenskt france french français française états-unis états unis britain british
england english scotland ireland norway norwegian denmark danish finland finnish austria österreich switzerland swiss
schweiz spain spanish italy italian poland polish netherlands dutch belgium china chinese japan japanese india indian
africa african asia asian berlin london paris stockholm hamburg munich münchen vienna wien zurich zürich brussels
bruxelles york new washington north south east west northern southern eastern western central middle

google microsoft apple amazon linux windows word excel powerpoint outlook teams office docs sheets slides drive gmail
onedrive sharepoint adobe acrobat visual studio code github gitlab slack zoom chrome firefox safari edge python
javascript java android iphone mac web internet

act law code civil criminal commercial labour labor data protection regulation regulations directive constitution court
supreme federal national international local public parliament commission council ministry minister government
department agency authority office bureau bank central reserve board committee police tax customs statistics health
human resources finance accounting sales marketing support legal engineering operations service services team customer
computer science information technology machine learning artificial intelligence business administration economics
banque centrale république ministère conseil code droit loi règlement riksdagen regeringen skatteverket bundestag
bundesbank bundesamt gesetz grundgesetz gericht gesetzbuch

section sections article articles chapter appendix annex table figure part page step steps phase item version level
question answer example note notes points point key next summary overview conclusion introduction background result
results action actions details period notice start end date dates name names total totals time times day days week weeks
month months year years quarter monthly weekly annual yearly daily price prices cost costs amount number status type
happy merry christmas easter best kind warm regards wishes dear sincerely yours your thanks thank hello hi good morning
standard summer winter are here is the a an my our this that these it
freundliche freundlichen grüße grüßen beste besten viele liebe lieber sehr geehrte geehrter
vänliga hälsningar bästa hej kära med mvh
cordialement bien cher chère madame monsieur salutations meilleures assistant assistenten
abteilung bereich referat einkauf vertrieb personal verwaltung buchhaltung geschäftsführung kundendienst kundenservice
avdelning avdelningen ekonomi inköp kundtjänst personalavdelningen service clientèle comptabilité achats direction
"""
COMMON_NAMES: Final = frozenset(_WORDS.split())
