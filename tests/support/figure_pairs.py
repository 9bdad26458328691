"""Pairs of sentences about one piece of evidence: the first is true, in the second one figure is invented.

Written by hand, by kinds that people write: units, dates, ranges, currencies, ordinals, telephones, accounts.
"""

# ruff: noqa: RUF001 - signs of multiplication, dashes and quotation marks are meant; a pair is a line

from typing import NamedTuple


class FigurePair(NamedTuple):
    """The language, what the tools gave, a true sentence, and one with an invented figure; the sentences before it."""

    language: str
    evidence: str
    true: str
    invented: str
    before: str = ""


_TABLE = r"""
en|{"rent": 1240, "currency": "EUR", "due_day": 3}|The rent is €1,240 a month.|The rent is €1,370 a month.
en|deposit: 3720.00 EUR|The deposit amounts to EUR 3,720.|The deposit amounts to EUR 4,120.
en|area_km2: 450.3|The reserve covers 450.3 km².|The reserve covers 512.7 km².
en|area_m2 = 84|The flat has 84 m² of floor space.|The flat has 96 m² of floor space.
en|{"volume_m3": 12.5}|The tank holds 12.5 m³.|The tank holds 14.5 m³.
en|surface 250 cm2|The plate measures 250 cm².|The plate measures 320 cm².
en|temp: -5.4 C|It was −5.4 °C at dawn.|It was −8.4 °C at dawn.
en|max 31 °C|The high will be 31 °C.|The high will be 37 °C.
en|phone: +46701234567|Call +46 70 123 45 67.|Call +46 70 765 43 21.
en|phone 020 7946 0958|The desk is at 020 7946 0958.|The desk is at 020 7946 0123.
en|iban: DE89370400440532013000|Pay to DE89 3704 0044 0532 0130 00.|Pay to DE12 3704 0044 0532 0999 00.
en|start: 2026-05-12|It starts on 12 May 2026.|It starts on 14 June 2026.
en|start: 2026-05-12|It starts on May 12th.|It starts on May 21st.
en|due 2026-05-12|It is due on the twelfth of May.|It is due on the twentieth of May.
en|rank: 21|She came 21st of all.|She came 34th of all.
en|position 12|They finished twelfth.|They finished seventeenth.
en|{"floor": 23}|The office is on the twenty-third floor.|The office is on the twenty-seventh floor.
en|share: 0.175|The share is 17.5 %.|The share is 18.5 %.
en|growth 3.2 percent|It grew by 3.2 percentage points.|It grew by 4.1 percentage points.
en|rate: 4.25%|The rate is 4.25% per annum.|The rate is 4.75% per annum.
en|rate change 25 bps|The rate rose by 25 basis points.|The rate rose by 75 basis points.
en|min 120 max 180|Prices lie between 120 and 180 euros.|Prices lie between 120 and 240 euros.
en|range 15-20 minutes|It takes 15–20 minutes.|It takes 15–35 minutes.
en|pages 112 to 118|See pages 112-118.|See pages 212-218.
en|revenue: 2500000000 GBP|Revenue reached £2.5bn.|Revenue reached £3.5bn.
en|budget 1500000|The budget is $1.5 million.|The budget is $1.9 million.
en|salary: 54000|The salary is 54k.|The salary is 68k.
en|staff 1432|The firm has 1,432 employees.|The firm has 1,832 employees.
en|time 14:35|The train leaves at 2:35 pm.|The train leaves at 4:15 pm.
en|time: 07:50|It opens at ten to eight.|It opens at twenty to eight.
en|duration_s: 5400|The run took an hour and a half.|The run took 75 minutes.
en|duration 90 min|It lasts 1 h 30 min.|It lasts 1 h 50 min.
en|dims 120x80|The desk measures 120 × 80 cm.|The desk measures 140 × 80 cm.
en|ratio 3:1|The ratio is 3:1.|The ratio is 45:1.
en|tenants 45 of 60|45 of the 60 tenants paid.|52 of the 60 tenants paid.
en|year founded 1987|It was founded in 1987.|It was founded in 1979.
en|fiscal 2024/25|In 2024/25 it grew.|In 2021/22 it grew.
en|quarter: Q3 2026|It ships in Q3 2026.|It ships in Q3 2028.
en|week 34|It happens in week 34.|It happens in week 41.
en|version 3.11.4|Version 3.11.4 is installed.|Version 3.11.9 is installed.
en|clause 7.3|Clause 7.3 governs this.|Clause 9.12 governs this.
en|order PO-20431|The order is PO-20431.|The order is PO-20413.
en|weight 2.4 kg|It weighs 2.4 kilograms.|It weighs 3.1 kilograms.
en|speed 88 km/h|The car did 88 km/h.|The car did 97 km/h.
en|distance_m: 12400|The route is 12.4 km long.|The route is 13.9 km long.
en|score 4.6 of 5, 231 reviews|Guests give 4.6 out of 5 over 231 reviews.|Guests give 4.9 out of 5 over 231 reviews.
en|pop 1,234,567|About 1.2 million people live there.|About 1.6 million people live there.
en|loss -340.50|The loss was (340.50).|The loss was (430.50).
en|ph 7.35|The pH is 7.35.|The pH is 7.85.
en|power 750 W|It draws 750 watts.|It draws 950 watts.
en|dose 400 mg|Take 400 mg daily.|Take 600 mg daily.
en|memory 16 GB|It has 16 GB of memory.|It has 24 GB of memory.
en|latency 230 ms|The latency is 230 ms.|The latency is 320 ms.
en|fine 1,500 SEK|The fine is SEK 1,500.|The fine is SEK 2,500.
en|{"a": 12, "b": 30}|Together they make 42.|Together they make 47.
en|price 80, discount 25%|The discount brings it to 60.|The discount brings it to 55.
de|{"miete": 1240.5}|Die Miete beträgt 1.240,50 €.|Die Miete beträgt 1.420,50 €.
de|kaution 3720|Die Kaution liegt bei 3.720 Euro.|Die Kaution liegt bei 3.270 Euro.
de|umsatz 1200000000|Der Umsatz lag bei 1,2 Mrd. Euro.|Der Umsatz lag bei 1,7 Mrd. Euro.
de|flaeche 84,5 qm|Die Wohnung hat 84,5 m².|Die Wohnung hat 94,5 m².
de|2026-03-14|Der Vertrag endet am 14. März 2026.|Der Vertrag endet am 24. März 2026.
de|2026-03-14|Der Vertrag endet am 14.03.2026.|Der Vertrag endet am 17.03.2026.
de|frist 30.6.|Die Frist läuft bis zum 30. Juni.|Die Frist läuft bis zum 13. Juni.
de|14:30|Beginn ist um 14.30 Uhr.|Beginn ist um 16.45 Uhr.
de|14:30|Beginn ist um halb drei.|Beginn ist um halb fünf.
de|anteil 0.125|Der Anteil beträgt 12,5 Prozent.|Der Anteil beträgt 15,2 Prozent.
de|KW 34|Lieferung in KW 34.|Lieferung in KW 43.
de|platz 21|Sie wurde 21. im Lauf.|Sie wurde 37. im Lauf.
de|etage 12|Das Büro ist im zwölften Stock.|Das Büro ist im siebzehnten Stock.
de|rang 25|Er belegte den fünfundzwanzigsten Platz.|Er belegte den achtunddreißigsten Platz.
de|tel 030 901820|Telefon: 030 90 18 20.|Telefon: 030 90 28 30.
de|temperatur -3,5|Es waren −3,5 °C.|Es waren −6,5 °C.
de|gewicht 2,4 t|Die Ladung wiegt 2,4 Tonnen.|Die Ladung wiegt 3,4 Tonnen.
de|mitarbeiter 1432|Es arbeiten 1 432 Menschen dort.|Es arbeiten 1 843 Menschen dort.
de|zahl 250|Es kamen zweihundertfünfzig Gäste.|Es kamen dreihundertvierzig Gäste.
de|jahr 1987|Gegründet 1987.|Gegründet 1978.
de|preis 15 bis 20|Der Preis liegt bei 15 bis 20 Euro.|Der Preis liegt bei 15 bis 28 Euro.
de|zins 4,25|Der Zins liegt bei 4,25 %.|Der Zins liegt bei 4,52 %.
de|§ 573c|Nach § 573c BGB gilt das.|Nach § 489b BGB gilt das.
de|strecke 12,4 km|Die Strecke ist 12.400 m lang.|Die Strecke ist 14.200 m lang.
de|verbrauch 5,6 l/100 km|Der Verbrauch liegt bei 5,6 l/100 km.|Der Verbrauch liegt bei 7,6 l/100 km.
de|betrag 99 CHF|Es kostet CHF 99.–.|Es kostet CHF 89.–.
de|betrag 99,90|Es kostet 99,90 €.|Es kostet 89,90 €.
de|{"summe": 4500, "menge": 17.5, "preis": 257.142857}|Das macht 4.500 Euro.|Das macht 4.900 Euro.
de|anzahl 2/3|Zwei Drittel (67 %) stimmten zu.|Drei Viertel (75 %) stimmten zu.
sv|{"hyra": 8450}|Hyran är 8 450 kr i månaden.|Hyran är 8 540 kr i månaden.
sv|belopp 1250,50|Beloppet är 1 250,50 kr.|Beloppet är 1 520,50 kr.
sv|omsättning 12500000 SEK|Omsättningen var 12,5 MSEK.|Omsättningen var 15,2 MSEK.
sv|yta 68 kvm|Lägenheten är 68 m².|Lägenheten är 86 m².
sv|2026-09-01|Avtalet börjar den 1 september 2026.|Avtalet börjar den 11 september 2026.
sv|2026-09-21|Det är den tjugoförsta september.|Det är den tjugofemte september.
sv|plats 12|Hon kom tolva.|Hon kom trettonde.
sv|plats 14|Han kom på fjortonde plats.|Han kom på sextonde plats.
sv|14:30|Mötet börjar halv tre.|Mötet börjar halv fyra.
sv|07:45|Bussen går kvart i åtta.|Bussen går kvart i nio.
sv|andel 0.123|Andelen är 12,3 %.|Andelen är 13,2 %.
sv|vecka 34|Det sker vecka 34.|Det sker v. 43.
sv|tel 08-123 45 67|Ring 08-123 45 67.|Ring 08-123 54 76.
sv|orgnr 556012-5790|Organisationsnumret är 556012-5790.|Organisationsnumret är 556021-5970.
sv|personer 250|Tvåhundrafemtio personer kom.|Trehundrafyrtio personer kom.
sv|vikt 3,2 ton|Lasten väger 3 200 kg.|Lasten väger 2 300 kg.
sv|mål 3-2, publik 1203|Publiken var 1 203.|Publiken var 1 302.
sv|ränta 3,85 procent|Räntan ligger på 3,85 procent.|Räntan ligger på 3,58 procent.
sv|pris mellan 150 och 200 kr|Priset ligger på 150–200 kr.|Priset ligger på 150–250 kr.
sv|år 1987|Huset byggdes 1987.|Huset byggdes 1978.
sv|1990-talet|Det var på 1990-talet.|Det var på 1970-talet.
sv|temperatur -12|Det var 12 minusgrader.|Det var 21 minusgrader.
sv|avstånd 45 mil|Det är 45 mil dit.|Det är 54 mil dit.
sv|3 tsk, 250 g|Ta 250 gram smör.|Ta 350 gram smör.
sv|paragraf 12 kap 46 §|Se 12 kap. 46 §.|Se 12 kap. 64 §.
fr|{"loyer": 1240.5}|Le loyer est de 1 240,50 €.|Le loyer est de 1 420,50 €.
fr|budget 2500000|Le budget est de 2,5 millions d'euros.|Le budget est de 3,5 millions d'euros.
fr|ca 1200000000|Le chiffre est de 1,2 milliard d'euros.|Le chiffre est de 1,9 milliard d'euros.
fr|surface 84,5 m2|L'appartement fait 84,5 m².|L'appartement fait 48,5 m².
fr|2026-03-01|Le bail commence le 1er mars 2026.|Le bail commence le 11 mars 2026.
fr|2026-03-14|Le bail finit le 14/03/2026.|Le bail finit le 24/03/2026.
fr|rang 21|Elle est arrivée 21e.|Elle est arrivée 37e.
fr|étage 12|Le bureau est au douzième étage.|Le bureau est au quinzième étage.
fr|rang 25|Il est vingt-cinquième.|Il est trente-deuxième.
fr|14:30|La réunion est à 14 h 30.|La réunion est à 16 h 45.
fr|14:30|La réunion est à 14h30.|La réunion est à 15h45.
fr|part 0.175|La part est de 17,5 %.|La part est de 15,7 %.
fr|tel 01 42 68 53 00|Appelez le 01 42 68 53 00.|Appelez le 01 42 86 35 00.
fr|siret 73282932000074|Le SIRET est 732 829 320 00074.|Le SIRET est 732 928 320 00047.
fr|personnes 80|Quatre-vingts personnes sont venues.|Quatre-vingt-dix personnes sont venues.
fr|temp -5|Il fait −5 °C ce matin.|Il fait −15 °C ce matin.
fr|poids 2,4 kg|Il pèse 2 400 g.|Il pèse 4 200 g.
fr|durée 90 min|Cela dure une heure et demie.|Cela dure 75 minutes.
fr|entre 15 et 20|Le prix va de 15 à 20 euros.|Le prix va de 15 à 28 euros.
fr|article 1134|L'article 1134 s'applique.|L'article 1143 s'applique.
fr|année 1987|Fondée en 1987.|Fondée en 1978.
fr|taux 4,25|Le taux est de 4,25 %.|Le taux est de 4,52 %.
fr|effectif 1432|L'effectif est de 1 432 salariés.|L'effectif est de 1 342 salariés.
fr|une douzaine|Il y en a une douzaine (12).|Il y en a une vingtaine (22).
en|charge 2.5 x 10^-6|The charge is 2.5 × 10⁻⁶ C.|The charge is 2.5 × 10⁻⁹ C.
en|count 12000|About 1.2 × 10⁴ cells were counted.|About 1.9 × 10⁴ cells were counted.
en|{"price": "¥12,800"}|It costs ¥12,800.|It costs ¥18,200.
en|price R$ 1.250,00|It costs R$ 1,250.|It costs R$ 1,520.
en|invoice 2026/0431|Invoice 2026/0431 is open.|Invoice 2026/0413 is open.
en|postcode SW1A 2AA, 10115 Berlin|The office is in 10115 Berlin.|The office is in 10551 Berlin.
en|hash a1b2c3d4|The commit is a1b2c3d4.|The commit is a1b2c4d3.
en|coordinates 59.3293, 18.0686|It lies at 59.3293° N.|It lies at 58.2393° N.
en|half-life 5730 years|The half-life is 5,730 years.|The half-life is 7,530 years.
en|doubled from 20 to 40|It doubled from 20 to 40.|It tripled from 20 to 60.
en|age 34|The tenant is thirty-four years old.|The tenant is forty-three years old.
en|1 in 8|One in eight (12.5%) replied.|One in five (20%) replied.
en|1/4|A quarter (25%) left.|A third (33%) left.
en|GDP 28.78 trillion|GDP is $28.78 trillion.|GDP is $27.88 trillion.
en|screen 6.1 inch|The screen is 6.1".|The screen is 6.7".
en|height 5'11"|He is 5'11" tall.|He is 6'14" tall.
en|eleven sites|There are eleven sites.|There are fifteen sites.
en|21st century|It is from the 21st century.|It is from the 14th century.
en|the 1990s|It was built in the 1990s.|It was built in the 1960s.
en|route E4, 560 km|Follow it for 560 km.|Follow it for 650 km.
"""

PAIRS = [FigurePair(*line.split("|")) for line in _TABLE.strip().splitlines()]
