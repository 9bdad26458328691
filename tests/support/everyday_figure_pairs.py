"""More pairs of a true and an invented sentence about one piece of evidence, by hand, in four languages.

Durations, decades, post codes, labels with units, rates, spans between times and dates, prices that are summed up.
What takes a formula that nobody gave (a body mass index) is not among them.
"""

# ruff: noqa: RUF001 - signs of multiplication, dashes and quotation marks are meant; a pair is a line

from tests.support.figure_pairs import FigurePair

_TABLE = r"""
en|resolution: 2560x1440|The display has 2560 × 1440 pixels.|The display has 2880 × 1620 pixels.
en|bp 128/84 mmHg|Blood pressure was 128 over 84.|Blood pressure was 137 over 84.
en|lat: 59.3293, lon: 18.0686|It lies at 59.33° N, 18.07° E.|It lies at 57.71° N, 18.07° E.
en|tyre: 205/55 R16|It needs 205/55 R16 tyres.|It needs 225/45 R17 tyres.
en|scale 1:50000|The map's scale is 1:50,000.|The map's scale is 1:25,000.
en|iso: 9001:2015|It is certified to ISO 9001:2015.|It is certified to ISO 14001:2018.
en|lap 1:45.382|The fastest lap took 1:45.382.|The fastest lap took 1:47.911.
en|spread: 0.0125|The spread is 125 basis points.|The spread is 310 basis points.
en|{"q2": 340, "q3": 289}|Orders fell from 340 to 289, a drop of 15%.|Orders fell from 340 to 289, a drop of 24%.
en|{"2023": 120, "2024": 240}|Sales doubled to 240.|Sales doubled to 263.
en|duration_s: 9300|The film runs 2 h 35 min.|The film runs 2 h 52 min.
en|uptime 0.99987|Uptime was 99.987%.|Uptime was 99.42%.
en|build 4711, version 3.14.2|It is build 4711.|It is build 4832.
en|battery: 52 Wh|The battery holds 52 Wh.|The battery holds 71 Wh.
en|noise 43 dB(A)|It makes 43 dB of noise.|It makes 57 dB of noise.
en|salary 85k-105k USD|The salary is between $85,000 and $105,000.|The salary is between $85,000 and $128,000.
en|page 14-19|See pages 14 to 19.|See pages 14 to 37.
en|flight SK1429 gate B17|Flight SK1429 leaves from gate B17.|Flight SK1583 leaves from gate B17.
en|century: 18th|The house is from the 18th century.|The house is from the 15th century.
en|week 42|Delivery is planned for week 42.|Delivery is planned for week 47.
en|score 87 out of 100|She scored 87 of 100 points.|She scored 93 of 100 points.
en|attendees: twenty-four|24 people came.|38 people came.
en|weight 72 kg|He weighs 72 kg, which is about 159 lb.|He weighs 72 kg, which is about 181 lb.
en|size_bytes: 1572864|The file is 1.5 MiB.|The file is 2.7 MiB.
en|speed 300 Mbit/s|You get 300 Mbps down.|You get 450 Mbps down.
en|price 19.99|It costs $19.99, so three cost $59.97.|It costs $19.99, so three cost $64.37.
en|net 200, vat_rate 0.25|With VAT it comes to 250.|With VAT it comes to 265.
en|born 1948-07-14|She was born on 14 July 1948.|She was born on 23 July 1948.
en|opens 09:30 closes 18:00|The shop is open from 9.30 a.m. to 6 p.m.|The shop is open from 9.30 a.m. to 7.45 p.m.
en|population 10,521,556|About 10.5 million people live there.|About 12.8 million people live there.
en|distance 42.195 km|A marathon is 42.195 km, roughly 26.2 miles.|A marathon is 42.195 km, roughly 31.4 miles.
de|Auflösung 1920x1080|Der Bildschirm hat 1920 x 1080 Pixel.|Der Bildschirm hat 2560 x 1440 Pixel.
de|Blutdruck 128/84|Der Blutdruck lag bei 128 zu 84.|Der Blutdruck lag bei 143 zu 84.
de|{"preis": 1250.0, "waehrung": "CHF"}|Das kostet CHF 1'250.–.|Das kostet CHF 1'480.–.
de|Betrag: 1250|Der Betrag ist 1.250,-- €.|Der Betrag ist 1.390,-- €.
de|Umsatz 1500000 EUR|Der Umsatz liegt bei 1,5 Mio. Euro.|Der Umsatz liegt bei 2,3 Mio. Euro.
de|Schulden: 2300000000|Die Schulden betragen 2,3 Mrd. €.|Die Schulden betragen 3,1 Mrd. €.
de|Alkohol: 0.5 Promille|Erlaubt sind 0,5 ‰.|Erlaubt sind 0,8 ‰.
de|KW 42/2026|Geliefert wird in KW 42.|Geliefert wird in KW 45.
de|Paragraph 433 BGB|Maßgeblich ist § 433 BGB.|Maßgeblich ist § 823 BGB.
de|Fahrzeit 95 min|Die Fahrt dauert 1 Stunde 35 Minuten.|Die Fahrt dauert 1 Stunde 52 Minuten.
de|Teilnehmer: 25|Es kamen fünfundzwanzig Gäste.|Es kamen achtundvierzig Gäste.
de|Mitglieder 212|Der Verein hat zweihundertzwölf Mitglieder.|Der Verein hat dreihundertvierzig Mitglieder.
de|gegründet 1895|Die Firma wurde im Jahr 1895 gegründet.|Die Firma wurde im Jahr 1872 gegründet.
de|Jubiläum: 75|Sie feiern das 75. Jubiläum.|Sie feiern das 90. Jubiläum.
de|Beginn 20:15|Beginn ist um 20.15 Uhr.|Beginn ist um 21.40 Uhr.
de|Temperatur min -3, max 12|Es wird zwischen −3 und 12 °C warm.|Es wird zwischen −3 und 17 °C warm.
de|Verbrauch 6.8 l/100km|Der Verbrauch liegt bei 6,8 l auf 100 km.|Der Verbrauch liegt bei 8,4 l auf 100 km.
de|PLZ 50667|Die Postleitzahl ist 50667.|Die Postleitzahl ist 50823.
de|{"alt": 480, "neu": 528}|Die Miete stieg um 10 % auf 528 Euro.|Die Miete stieg um 17 % auf 528 Euro.
de|Anteil 0.375|Das sind 37,5 Prozent, also drei Achtel.|Das sind 42,5 Prozent.
de|Schraube M8x40|Nimm eine Schraube M8x40.|Nimm eine Schraube M10x65.
de|Rufnummer 0221 4710815|Rufen Sie 0221 / 471 08 15 an.|Rufen Sie 0221 / 533 92 17 an.
de|Baujahr 1994|Das Haus stammt aus der Mitte der 90er-Jahre.|Das Haus stammt aus dem Jahr 1983.
de|Fläche 3,5 ha|Das Grundstück misst 35.000 m².|Das Grundstück misst 52.000 m².
de|Strom 4200 kWh, Preis 0.32|4.200 kWh zu 32 Cent ergeben 1.344 Euro.|4.200 kWh zu 32 Cent ergeben 1.512 Euro.
de|Datum 2026-03-07|Die Frist endet am 07.03.26.|Die Frist endet am 19.03.26.
de|Laufzeit 36 Monate|Der Vertrag läuft 3 Jahre (36 Monate).|Der Vertrag läuft 48 Monate.
de|Dosis 2x 500 mg|Nehmen Sie zweimal täglich 500 mg.|Nehmen Sie zweimal täglich 750 mg.
de|Maßstab 1:200|Der Plan ist im Maßstab 1:200 gezeichnet.|Der Plan ist im Maßstab 1:500 gezeichnet.
de|3 von 4 Befragten, n=812|Drei Viertel der 812 Befragten stimmten zu.|Drei Viertel der 934 Befragten stimmten zu.
sv|pris 99|Biljetten kostar 99:-.|Biljetten kostar 129:-.
sv|hyra: 12400|Hyran är 12 400 kr/mån.|Hyran är 13 850 kr/mån.
sv|omsättning 2,4 miljarder|Omsättningen var 2,4 mdkr.|Omsättningen var 3,7 mdkr.
sv|byggår 1780|Gården byggdes i slutet av 1700-talet.|Gården byggdes år 1834.
sv|antal: 125|Det kom etthundratjugofem gäster.|Det kom tvåhundratrettio gäster.
sv|vecka 36|Kursen börjar vecka 36.|Kursen börjar vecka 41.
sv|tid 14:45|Tåget går kvart i tre.|Tåget går kvart över fem.
sv|född 1987-05-12|Hon föddes den 12 maj 1987.|Hon föddes den 29 maj 1987.
sv|ränta 4.15%|Räntan är 4,15 procent.|Räntan är 5,35 procent.
sv|telefon 08-123 45 67|Ring 08-123 45 67.|Ring 08-765 43 21.
sv|postnr 11359|Adressen är 113 59 Stockholm.|Adressen är 118 26 Stockholm.
sv|org.nr 556036-0793|Organisationsnumret är 556036-0793.|Organisationsnumret är 556703-7485.
sv|längd 183 cm|Han är 1,83 m lång.|Han är 1,96 m lång.
sv|jubileum 25|Det är det 25:e året i rad.|Det är det 31:a året i rad.
sv|hastighet 110 km/h|Hastigheten är 110 km/h.|Hastigheten är 90 km/h.
sv|restid 3 h 20 min|Resan tar 200 minuter.|Resan tar 245 minuter.
sv|yta 68 kvm|Lägenheten är på 68 kvadratmeter.|Lägenheten är på 84 kvadratmeter.
sv|temp -12.5|Det var 12,5 minusgrader.|Det var 17,5 minusgrader.
sv|öppet 10-18|Butiken har öppet 10–18.|Butiken har öppet 10–21.
sv|version 11.4.2|Installera version 11.4.2.|Installera version 11.6.1.
sv|40 st à 35 kr|40 stycken à 35 kr blir 1 400 kr.|40 stycken à 35 kr blir 1 650 kr.
sv|moms 25 %, netto 480|Med moms blir det 600 kr.|Med moms blir det 640 kr.
fr|participants : 92|Quatre-vingt-douze personnes sont venues.|Soixante-quinze personnes sont venues.
fr|montant: 1250.5|Le montant est de 1 250,50 €.|Le montant est de 1 420,50 €.
fr|dette 2,3 milliards|La dette s'élève à 2,3 Md€.|La dette s'élève à 3,6 Md€.
fr|heure 18:30|Le train part à 18 h 30.|Le train part à 19 h 45.
fr|heure 18h05|Rendez-vous à 18h05.|Rendez-vous à 17h25.
fr|siècle XVIIIe (18)|L'église date du XVIIIe siècle.|L'église date de 1634.
fr|tel 0142685300|Appelez le 01 42 68 53 00.|Appelez le 01 42 71 86 35.
fr|code postal 75011|Le code postal est 75011.|Le code postal est 75019.
fr|surface 84.5|L'appartement mesure 84,5 m².|L'appartement mesure 92,3 m².
fr|article L. 121-4|C'est l'article L. 121-4 qui s'applique.|C'est l'article L. 213-7 qui s'applique.
fr|né le 14/07/1989|Il est né le 14 juillet 1989.|Il est né le 27 juillet 1989.
fr|anniversaire 50|C'est le 50e anniversaire.|C'est le 60e anniversaire.
fr|taux 0.045|Le taux est de 4,5 %.|Le taux est de 5,9 %.
fr|durée 90 min|Le film dure une heure et demie (90 minutes).|Le film dure 115 minutes.
fr|vitesse 130 km/h|La vitesse est limitée à 130 km/h.|La vitesse est limitée à 110 km/h.
fr|température -7|Il faisait moins 7 degrés, soit −7 °C.|Il faisait −16 °C.
fr|12 mois x 89 €|12 mensualités de 89 € font 1 068 €.|12 mensualités de 89 € font 1 190 €.
fr|population 67 800 000|La France compte 67,8 millions d'habitants.|La France compte 71,2 millions d'habitants.
fr|page 112|Voir la page 112.|Voir la page 127.
fr|siret 73282932000074|Le SIRET est 732 829 320 00074.|Le SIRET est 552 100 554 00021.
fr|poids 1,2 t|Le colis pèse 1 200 kg.|Le colis pèse 1 450 kg.
fr|de 15 à 25 ans|Réservé aux 15-25 ans.|Réservé aux 15-28 ans.
fr|dix-sept élèves|Il y a 17 élèves.|Il y a 23 élèves.
fr|prix 12 CHF|Cela coûte 12.- francs.|Cela coûte 18.- francs.
en|room 12.04 on floor 12|The meeting is in room 12.04.|The meeting is in room 14.11.
en|ratio 16:9|The ratio is 16:9.|The ratio is 21:9.
en|founded MCMLXXXIV (1984)|It was founded in 1984.|It was founded in 1976.
en|ip 10.20.30.40 port 8443|It listens on 10.20.30.40:8443.|It listens on 10.20.30.40:9443.
en|dozen: 3|That is 36 eggs, three dozen.|That is 42 eggs.
en|[12, 18, 30]|The average of the three is 20.|The average of the three is 23.
en|start 2026-01-30, days 45|45 days later is 16 March 2026.|45 days later is 22 March 2026.
en|{"paid": "2026-05-04", "due": "2026-04-20"}|It was paid 14 days late.|It was paid 23 days late.
en|price 1.299,00 EUR (German shop)|It costs €1,299.|It costs €1,450.
en|CO2 412 ppm|CO2 stands at 412 ppm.|CO2 stands at 438 ppm.
en|interest 3¾ %|The interest is 3.75%.|The interest is 4.25%.
en|{"elapsed_ms": 4200}|It took 4.2 seconds.|It took 6.7 seconds.
en|{"fileSizeBytes": 734003200}|The file has 700 MB.|The file has 912 MB.
en|height 188 cm|He is 6 feet 2 inches tall.|He is 6 feet 11 inches tall.
en|{"distance_km": 12.4}|It is 12,400 metres away.|It is 15,100 metres away.
en|{"year": 1967, "title": "x"}|It was released in the 1960s.|It was released in the 1980s.
en|{"temp_c": 21.5}|It is 21.5 °C, about 71 °F.|It is 21.5 °C, about 84 °F.
en|{"humidity": 0.64}|Humidity is at 64%.|Humidity is at 83%.
en|bounce rate 41.7%, last month 46.2%|The bounce rate fell by 4.5 points.|The bounce rate fell by 7.5 points.
en|total 1240, discount 0.15|After the discount it is 1,054.|After the discount it is 1,112.
en|principal 5000, rate 4%, years 1|You earn $200 in interest.|You earn $265 in interest.
en|Windows 11 23H2|It runs Windows 11 23H2.|It runs Windows 11 25H4.
en|width: 30 in, height: 20 in|It measures 30 by 20 inches.|It measures 34 by 20 inches.
en|seats 180, booked 153|27 seats are free; 85% are booked.|31 seats are free.
en|CPU at 0.874 load|The load is 0.87.|The load is 0.67.
en|latency p50 12ms p95 48ms p99 310ms|Its p99 is 310 ms.|Its p99 is 420 ms.
en|3 rooms x 120 EUR x 4 nights|Three rooms for four nights cost €1,440.|Three rooms for four nights cost €1,620.
en|"$1.2B revenue"|Revenue reached 1.2 billion dollars.|Revenue reached 1.7 billion dollars.
en|GDP 27.36 trillion|GDP is about $27.4 trillion.|GDP is about $31.2 trillion.
en|EUR/USD 1.0842|One euro buys 1.08 dollars.|One euro buys 1.19 dollars.
en|from 2019 to 2024|That is a span of 5 years, 2019–2024.|That is the span 2019–2027.
en|age: 34, in 10 years|In ten years she will be 44.|In ten years she will be 47.
en|sunrise 06:42, sunset 20:18|The day lasts 13 h 36 min.|The day lasts 14 h 51 min.
en|departure 22:50, arrival 06:15 (+1)|The flight takes 7 hours 25 minutes.|The flight takes 8 hours 55 minutes.
en|HTTP 503 at 14:02:17|At 14:02:17 it answered 503.|At 14:09:44 it answered 503.
en|0.1 + 0.2 = 0.30000000000000004|It gives about 0.3.|It gives about 0.45.
en|rows: 1,048,576|There are 1,048,576 rows, or 2^20.|There are 1,148,576 rows.
en|memory 16384 MB|It has 16 GB of memory.|It has 24 GB of memory.
en|score 4.6/5 (1,238 reviews)|It has 4.6 stars from 1,238 reviews.|It has 4.6 stars from 1,512 reviews.
en|sold 2.5 million units in 2024, 2 million in 2023|Sales grew by 25%.|Sales grew by 38%.
en|loss -12,400|A loss of $12,400 was booked.|A loss of $15,900 was booked.
de|{"dauer_min": 135}|Das Treffen dauert 2 Stunden und 15 Minuten.|Das Treffen dauert 2 Stunden und 45 Minuten.
de|{"groesse_mb": 2048}|Die Datei ist 2 GB groß, genau 2.048 MB.|Die Datei ist 2.560 MB groß.
de|Einwohner: 83.2 Mio|Deutschland hat 83,2 Millionen Einwohner.|Deutschland hat 87,6 Millionen Einwohner.
de|Gewicht 1250 g|Das Paket wiegt 1,25 kg.|Das Paket wiegt 1,65 kg.
de|von 07:45 bis 16:15|Sie arbeitet 8,5 Stunden.|Sie arbeitet 9,75 Stunden.
de|Zins 3,5 %, Betrag 20000|Das sind 700 Euro Zinsen.|Das sind 840 Euro Zinsen.
de|Preis netto 84,03, MwSt 19 %|Brutto sind das 100,00 €.|Brutto sind das 108,40 €.
de|Spannung 230 V, Strom 16 A|Das ergibt 3.680 Watt.|Das ergibt 4.120 Watt.
de|Kapitel 12, Seite 348|Es steht in Kapitel 12 auf Seite 348.|Es steht in Kapitel 12 auf Seite 391.
de|DIN EN 1090-2|Es gilt DIN EN 1090-2.|Es gilt DIN EN 1993-1.
de|Anzahl 1.000|Es sind tausend Stück.|Es sind 1.400 Stück.
de|Erster Platz mit 47,31 s|Die Siegerzeit war 47,31 Sekunden.|Die Siegerzeit war 48,92 Sekunden.
de|Quote 12 von 48|Das ist ein Viertel der 48 Fälle.|Das ist ein Viertel der 56 Fälle.
de|2 EL = 30 ml|Zwei Esslöffel sind 30 ml.|Zwei Esslöffel sind 45 ml.
de|Schuhgröße 42,5|Er trägt Größe 42,5.|Er trägt Größe 44,5.
de|geb. 3.4.1976|Er wurde am 3. April 1976 geboren.|Er wurde am 13. April 1976 geboren.
de|Hausnr. 117b|Sie wohnt in Nummer 117b.|Sie wohnt in Nummer 136b.
de|Faktor 1,2|Der Faktor ist 1,2, also 20 % mehr.|Der Faktor ist 1,7.
sv|{"langd_m": 1540}|Sträckan är 1,54 km.|Sträckan är 1,87 km.
sv|pris före 1 250 kr, rabatt 20 %|Priset blir 1 000 kr.|Priset blir 1 080 kr.
sv|klockan 08.00-16.30|Skiftet är åtta och en halv timme, 08.00–16.30.|Skiftet är 08.00–17.45.
sv|invånare 10,5 miljoner|Sverige har cirka 10,5 miljoner invånare.|Sverige har cirka 12,3 miljoner invånare.
sv|vindstyrka 14 m/s|Det blåser 14 m/s.|Det blåser 19 m/s.
sv|årskurs 9, betyg A 23 %|I nian fick 23 % betyget A.|I nian fick 31 % betyget A.
sv|lån 2 000 000, ränta 4 %|Räntan blir 80 000 kr per år.|Räntan blir 95 000 kr per år.
sv|{"antal_ar": 15}|Avtalet löper på 15 år.|Avtalet löper på 25 år.
sv|regnr ABC 12D|Bilen har numret ABC12D.|Bilen har numret XYZ98K.
sv|kWh 18 250|Förbrukningen är 18,25 MWh.|Förbrukningen är 21,75 MWh.
sv|1 mil = 10 km; 25 mil|Det är 250 km.|Det är 310 km.
sv|OS 1912|Det var på 1910-talet.|Det var på 1930-talet.
sv|55 av 220 röster|En fjärdedel av de 220 rösterna, alltså 25 %.|Det är 35 % av de 220 rösterna.
sv|bankgiro 5051-6905|Betala till bankgiro 5051-6905.|Betala till bankgiro 5832-1147.
sv|personnr 850709-9805|Personnumret är 850709-9805.|Personnumret är 780312-2384.
sv|1,5 dl mjölk|Ta 1,5 dl mjölk, det är 150 ml.|Ta 1,5 dl mjölk, det är 225 ml.
sv|höjd 2 097 m|Toppen är 2 097 meter hög.|Toppen är 2 317 meter hög.
sv|start 1 mars, 90 dagar|Det slutar den 30 maj.|Det slutar den 12 juni.
fr|{"duree_h": 2.5}|Cela dure deux heures et demie, soit 150 minutes.|Cela dure 185 minutes.
fr|prix HT 80, TVA 20 %|Le prix TTC est de 96 €.|Le prix TTC est de 104 €.
fr|longueur 3,2 km|Le sentier fait 3 200 mètres.|Le sentier fait 4 100 mètres.
fr|{"note": 15.5}|Elle a obtenu 15,5 sur 20.|Elle a obtenu 17,5 sur 20.
fr|fondée en 1894|Elle date du XIXe siècle, de 1894 précisément.|Elle date de 1857.
fr|12 bouteilles à 7,50 €|Les 12 bouteilles coûtent 90 €.|Les 12 bouteilles coûtent 103 €.
fr|3e étage, appartement 34|C'est l'appartement 34 au 3e étage.|C'est l'appartement 47 au 3e étage.
fr|capital 10 000 €|Le capital est de dix mille euros.|Le capital est de 14 500 euros.
fr|0,8 g/l|La limite est de 0,8 g/l.|La limite est de 0,5 g/l.
fr|vol AF1234 à 6h40|Le vol AF1234 part à 6 h 40.|Le vol AF1234 part à 8 h 15.
fr|population 1,4 milliard|La Chine compte 1,4 milliard d'habitants.|La Chine compte 1,7 milliard d'habitants.
fr|années: 1993|Le film est sorti dans les années 90.|Le film est sorti dans les années 70.
fr|2 h 45|Le trajet dure 165 minutes.|Le trajet dure 205 minutes.
fr|température 38,6|Il a 38,6 de fièvre.|Il a 39,8 de fièvre.
fr|superficie 643 801 km²|La France couvre 643 801 km².|La France couvre 551 500 km².
fr|{"remise": 0.3, "prix": 150}|Avec 30 % de remise, il reste 105 €.|Avec 30 % de remise, il reste 118 €.
fr|rue 14 bis|Il habite au 14 bis.|Il habite au 27 bis.
en|invoice INV-2026-0412: 3 x 249.00, shipping 15.00|The invoice totals 762.00.|The invoice totals 798.00.
en|rating: 4.35|It is rated 4.35 out of 5.|It is rated 4.65 out of 5.
en|CVE-2024-3094, score 10.0|CVE-2024-3094 scores 10.0.|CVE-2024-4127 scores 10.0.
en|price per kg 3.49, bought 2.5 kg|2.5 kg cost 8.73.|2.5 kg cost 9.96.
en|"warranty": "P24M"|The warranty lasts 24 months.|The warranty lasts 36 months.
en|PT1H30M|It takes 90 minutes.|It takes 120 minutes.
en|1 GBP = 1.17 EUR; 250 GBP|250 pounds are €292.50.|250 pounds are €317.40.
en|mean 5.21, sd 1.34, n=48|The mean was 5.21 (SD 1.34, n = 48).|The mean was 5.21 (SD 1.87, n = 48).
en|p = 0.003|The result is significant (p = 0.003).|The result is significant (p = 0.041).
en|95% CI [1.2, 3.4]|The 95% interval runs from 1.2 to 3.4.|The 95% interval runs from 1.2 to 4.7.
en|Louis XIV, reigned 1643-1715|He reigned for 72 years.|He reigned for 58 years.
en|ISBN 978-3-16-148410-0|Its ISBN is 9783161484100.|Its ISBN is 9783161486402.
en|altitude FL350|The aircraft is at FL350.|The aircraft is at FL410.
en|120 mg/dL|Glucose was 120 mg/dL.|Glucose was 164 mg/dL.
en|1,000 BTC at $43,215.60|One bitcoin stood at $43,215.60.|One bitcoin stood at $46,820.10.
en|table 7 seats 12|Table 7 seats twelve people.|Table 7 seats eighteen people.
en|yes: 64, no: 36|64% voted yes and 36% no.|71% voted yes and 36% no.
en|budget 50k, spent 38k|12k of the budget is left.|17k of the budget is left.
en|Q1 2026: +3.2%, Q2 2026: -0.4%|Growth slowed from 3.2% to −0.4%.|Growth slowed from 3.2% to −1.9%.
de|{"netto": 1000, "mwst": 190}|Brutto sind es 1.190 Euro.|Brutto sind es 1.230 Euro.
de|Abfahrt 14:07, Ankunft 18:32|Die Reise dauert 4 Stunden und 25 Minuten.|Die Reise dauert 5 Stunden und 40 Minuten.
de|Frist: 14 Tage ab 3.11.2026|Die Frist läuft am 17.11.2026 ab.|Die Frist läuft am 24.11.2026 ab.
de|Rezept: 250 g Mehl, 3 Eier|Du brauchst 250 g Mehl.|Du brauchst 375 g Mehl.
de|4 Personen, 250 g Mehl|Für 8 Personen sind es 500 g Mehl.|Für 8 Personen sind es 650 g Mehl.
de|Aktenzeichen 4 C 112/25|Das Aktenzeichen lautet 4 C 112/25.|Das Aktenzeichen lautet 4 C 187/25.
de|Art. 17 Abs. 3 DSGVO|Nach Art. 17 Abs. 3 DSGVO geht das.|Nach Art. 22 Abs. 3 DSGVO geht das.
de|Kapazität 5000 mAh|Der Akku hat 5.000 mAh.|Der Akku hat 6.200 mAh.
de|Höhe ü. NN: 1.142 m|Der Brocken ist rund 1.140 Meter hoch.|Der Brocken ist rund 1.310 Meter hoch.
de|Umsatz Q1 1,2 Mio, Q2 1,5 Mio|Der Umsatz stieg um 25 % auf 1,5 Mio. €.|Der Umsatz stieg um 40 % auf 1,5 Mio. €.
de|{"stimmen": {"A": 412, "B": 388}}|A gewann mit 24 Stimmen Vorsprung (412 zu 388).|A gewann mit 37 Stimmen Vorsprung.
de|Heizung 1.850 EUR, 74 m2|Das sind genau 25 Euro je Quadratmeter.|Das sind genau 31 Euro je Quadratmeter.
de|Note 1,7|Sie hat die Note 1,7.|Sie hat die Note 2,3.
de|Puls 62-148|Der Puls lag zwischen 62 und 148.|Der Puls lag zwischen 62 und 171.
de|Zimmer 3.14|Treffpunkt ist Zimmer 3.14.|Treffpunkt ist Zimmer 4.27.
de|Volt 12, Ampere 5|Bei 12 V und 5 A sind es 60 W.|Bei 12 V und 5 A sind es 75 W.
de|Lieferzeit 3-5 Werktage|Die Lieferung dauert drei bis fünf Werktage.|Die Lieferung dauert 10 bis 14 Werktage.
de|Zeit: 2:04:11|Sie lief 2:04:11 Stunden.|Sie lief 2:09:37 Stunden.
sv|{"antal": 1280, "andel": 0.45}|576 av dem, alltså 45 procent, svarade ja.|640 av dem svarade ja, alltså 52 procent.
sv|avresa 09:12, ankomst 12:47|Resan tar 3 timmar och 35 minuter.|Resan tar 4 timmar och 20 minuter.
sv|omkrets 40 075 km|Jordens omkrets är ungefär 40 000 km.|Jordens omkrets är ungefär 46 000 km.
sv|a-kassa 80 % av 25 000|Du får 20 000 kr i månaden.|Du får 22 400 kr i månaden.
sv|byggt 1962, renoverat 2004|Huset renoverades 42 år senare.|Huset renoverades 37 år senare.
sv|medel 3,42 median 3,0|Medelvärdet är 3,42 och medianen 3.|Medelvärdet är 3,87.
sv|artikelnr 400.123.45|Artikelnumret är 400.123.45.|Artikelnumret är 400.287.91.
sv|elpris 89,5 öre/kWh|Elpriset är 89,5 öre per kWh.|Elpriset är 112,5 öre per kWh.
sv|4 § 2 st. lag 1982:80|Det står i 4 § lagen (1982:80).|Det står i 4 § lagen (1991:614).
sv|vikt före 92 kg, efter 84 kg|Han gick ner 8 kg, knappt 9 %.|Han gick ner 13 kg.
sv|12 ägg 39,90|Ett ägg kostar drygt 3,30 kr.|Ett ägg kostar drygt 4,70 kr.
sv|{"lat": 57.7089, "lon": 11.9746}|Koordinaterna är 57,7089 och 11,9746.|Koordinaterna är 57,7089 och 12,3418.
fr|départ 08:15, arrivée 11:02|Le trajet dure 2 h 47.|Le trajet dure 3 h 12.
fr|loyer 850, charges 120|Le loyer charges comprises est de 970 €.|Le loyer charges comprises est de 1 020 €.
fr|du 3 au 17 mai 2026|Le stage dure du 3 au 17 mai 2026, soit deux semaines.|Le stage dure du 3 au 24 mai 2026.
fr|{"distance_m": 8849}|L'Everest culmine à 8 849 m.|L'Everest culmine à 8 611 m.
fr|score 3-1, 54 % de possession|L'équipe a eu 54 % de possession.|L'équipe a eu 61 % de possession.
fr|prix: 1299,99; remise: 15%|Après remise, cela fait 1 104,99 €.|Après remise, cela fait 1 169,99 €.
fr|article 1240 du Code civil|L'article 1240 du Code civil s'applique.|L'article 1382 du Code civil s'applique.
fr|RER B, 37 min|Le trajet en RER B prend 37 minutes.|Le trajet en RER B prend 52 minutes.
fr|pression 1013 hPa|La pression est de 1 013 hPa.|La pression est de 1 027 hPa.
fr|budget 2025: 3,2 M€, 2026: 3,6 M€|Le budget augmente de 12,5 %.|Le budget augmente de 18,5 %.
fr|tarif réduit 7 €, plein 12 €|Deux pleins et un réduit font 31 €.|Deux pleins et un réduit font 38 €.
fr|contrat n° 2024-00871|C'est le contrat n° 2024-00871.|C'est le contrat n° 2024-00935.
fr|né en 1952|Il a eu 70 ans en 2022.|Il a eu 70 ans en 2027.
"""

EVERYDAY_PAIRS = [FigurePair(*line.split("|")) for line in _TABLE.strip().splitlines()]
