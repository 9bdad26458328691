"""Languages told apart on short requests; an English one is never taken for another."""

import pytest

from agent.text.language import LanguageDetector


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hej, vad är klockan i Stockholm?", "sv"),
        ("Hämta https://example.org och sammanfatta", "sv"),
        ("Jämför de två dokumenten", "sv"),
        ("Kom ihåg att min hund heter Fido", "sv"),
        ("sammanfatta notes.txt", "sv"),
        ("Sök i mina filer efter faktura", "sv"),
        ("Vem är statsminister?", "sv"),
        ("Sammanfatta filen rapport.txt", "sv"),
        ("Skriv en dikt", "sv"),
        ("Hej!", "sv"),
        ("Lista filerna", "sv"),
        ("Vad är 17,5 * 240?", "sv"),
        ("Opsummér filen rapport.txt for mig", "da"),
        ("Rechne 5 mal 7", "de"),
        ("Resume el archivo informe.txt", "es"),
        ("Scrivi una poesia", "it"),
        ("Wie spät ist es in Berlin?", "de"),
        ("Kündigungsfrist Mieter Birke", "de"),
        ("Préavis du locataire Birch", "fr"),
        ("Vem är Carl von Linné?", "sv"),
        ("Vad kostar hyran?", "sv"),
        ("Semesterdagar kvar", "sv"),
        ("Zahnarzttermin buchen", "de"),
        ("Vielen Dank", "de"),
        ("Envoyer la facture", "fr"),
        ("Plazo de preaviso", "es"),
        ("Enviar la factura", "es"),
        ("Oblicz podatek", "pl"),
        ("Quelle heure est-il à Paris ?", "fr"),
        ("¿Qué hora es en Madrid?", "es"),
        ("Hoe laat is het in Amsterdam?", "nl"),
        ("Hvad er klokken i København?", "da"),
        ("Hva er klokken i Oslo?", "no"),
        ("Paljonko kello on Helsingissä?", "fi"),
        ("Который час в Москве?", "ru"),
        ("東京は今何時ですか", "ja"),
        ("كم الساعة الآن؟", "ar"),
    ],
)
async def test_a_request_in_another_language(detector: LanguageDetector, text: str, language: str) -> None:
    assert await detector.detect(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hi",
        "17*240",
        "list files",
        "weather Malmö tomorrow",
        "best pizza in Napoli",
        "plan a trip to Gothenburg",
        "Who is Ångström?",
        "Translate 'god morgon' to English",
        'Translate "Hej på dig" to French',
        "Resume the report",
        "resume my cv",
        "la la land reviews",
        "die hard movies",
        "convert km miles",
        'search my files for "räkning"',
        "fetch https://sv.wikipedia.org/wiki/Räksmörgås",
        "TODO list for kitchen renovation",
        "Explain quantum entanglement",
        "Renaissance painters",
        "Capital of Moldova",
        "Notice period tenant Birch",
        "Rio de Janeiro population",
        "Ludwig van Beethoven symphonies",
        "Se\u00f1or Garc\u00eda invoice",
        "\u00c9lectricit\u00e9 de France shares",
        "Soci\u00e9t\u00e9 G\u00e9n\u00e9rale chairman",
        "Los Angeles tram map",
        "naive r\u00e9sum\u00e9 screening",
        "call Bj\u00f6rn",
        "fianc\u00e9 visa USA",
        "car insurance quote",
        "Restaurants near Cluj",
        "SELECT * FROM users WHERE id = 1",
        "create invoice for Müller GmbH",
        "```\nvad är det här för något\n``` explain",
        "x" * 100_000,
        "\ud800",
    ],
)
async def test_english_and_what_says_nothing(detector: LanguageDetector, text: str) -> None:
    assert await detector.detect(text) == "en"
