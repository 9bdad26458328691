"""Common given names of European languages.

They show that a capitalised word at the start of a sentence begins a name.
"""

_NAMES = """
aaron adam adrian agnes agnieszka ahmed aino aisha alan albert albin alejandro alessandro alexander alexandra
alexis alfred ali alice alicia alina alma amanda amelie amir amit amy ana anders andrea andreas andrew andré angela
angelika anita anja anke ann anna anne anneke anneli annette annika anouk antoine anton antonia antonio antti arianne
armin arne arthur arvid astrid august axel ayşe barbara bastian beate beatrice ben bengt benjamin bent bernard bernd
bernhard bert bertil betty bianca birgit birgitta bjarne björn bob boris bram brian brigitta brigitte britta bruno
bärbel börje camille carina carl carla carlo carlos carmen carolin caroline catherine cecilia charles charlotte chiara
chloé chris christa christian christiane christina christine christoph christophe christopher claire clara claude
claudia clemens cornelia céline dag dagmar daniel daniela david denis denise diana diego dieter dirk dmitri dominik
donald doris dorothea ebba eberhard edgar edith eduard edward eero eila elena eleonore eli elias elin elina elisa
elisabeth elisabetta elise elizabeth ella ellen elon elsa elvira emelie emil emilia emily emma emmanuel emre eric
erica erich erik erika erkki ernst esther eugen eva evelyn fabian fatima felix femke fernando filip finn florence
florian frances francesca francesco francis franck frank franz françois françoise fredrik freja friedrich fritz
gabriel gabriela gabriele gary geoffrey georg george georges gerald gerard gerd gerhard gertrud gilles giovanni gisela
giulia giuseppe grace greta grit guido gun gunilla gunnar gustav göran günter günther hakan hanna hannah hannes
hans harald harry hassan hedvig heidi heike heiko heinrich heinz helen helena helene helga helge helmut henri henrik
henry herbert hermann hilda hildegard holger horst hubert hugo ida ilse ines inga inge ingeborg ingrid ingvar inês
irene iris irma isabel isabelle isak ivan ivana jack jacob jacques jakob jakub james jan jana jane janet jasmin jason
javier jean jeanne jens jeremy jeroen jesper jessica jill jim joachim joanna jochen joe joel johan johanna johannes
john johnny jonas jonathan jordi jorge josef josefin joseph josé joão juan judith juha jukka jules julia julian julie
julien juliette jutta jörg jörn jürgen kai kaisa kajsa kalle karen karin karl karla karolina karsten katarina
katarzyna kate katharina katherine kathrin kati katja katrin kay keith kenneth kent kerstin kevin kim kirsi kirsten
kjeld kjell klara klas klaus knut konrad kristian kristin kristina kristoffer kurt laila lara lars laura laurence
laurent lea leif lena lennart leo leon leonie liam lidia lily lina linda linnea linus lisa lise liv lone lorenz
lorenzo lotta louis louise luc luca lucas lucia lucie lucy lucía ludovic ludwig luigi luis luise lukas luke lutz lydia
léa magdalena magnus maija maja malin manfred manon manuel manuela marc marcel marco marcus marek margaret margareta
margarete margit margot maria mariana marianne marie marieke marina mario marion marjatta marko markus marlene
marta martha martin martina mary mathias mathieu mathilde mats matteo matthew matthias matthieu matti mattias maud
maurice max maximilian maya megan mehmet melanie melissa mette mia michael michaela michel michelle miguel mika mikael
mikko minna mira miriam mohamed mohammed monica monika moritz morten nadia nadine nancy natalia natalie natasha
nathalie nathan nicholas nick nicolas nicole niklas nils nina noah noel nora norbert norman olaf ole oleg olga oliver
olivia olivier olle olof omar oscar oskar otto pablo pamela paolo pascal patricia patrick patrik paul paula pauline
pavel pedro pekka pelle peter petra petri petter philip philipp philippe pia pierre pieter pilar piotr pontus
priya päivi rachel rafael ragnar rainer raj ralf ralph rasmus raymond rebecca regina reinhard renate rené ricardo
richard rita robert roberto robin roger roland rolf romain roman ronald ronja rosa roy rudolf rui rune rupert
ruth ryan sabine sabrina sally salma sam samantha samuel sander sandra sanna sara sarah scott sean sebastian serge
sergei sergio sigrid silke silvia simon simone sindre sofia sofie sofía solveig sonja sophia sophie stefan stefanie
steffen stella sten stephan stephanie stephen steve steven stig stina stuart sture susan susanna susanne suzanne sven
svenja sylvia sylvie søren tanja tara tatjana ted teresa terry theo theodor theresa therese thierry thomas thorsten
tiago tiina tim timo tina tobias tom tomas tomasz tommy toni tony torbjörn tore torsten tove tuomas ulf ulla ulrich
ulrika ulrike ursula ute uwe valentin valerie vanessa vera veronica veronika victor victoria viggo viktor
viktoria vincent virginia virginie viveka volker walter waltraud wanda wei wendy werner wilfried wilhelm wilhelmina
will william willy wolf wolfgang wouter yannick yasmin youssef yuki yves yvette yvonne zeynep zoe åke åsa élise émile
éric étienne örjan øyvind
"""
GIVEN_NAMES = frozenset(_NAMES.split())
