"""Stems by language: which forms meet, which language is detected, and what a query is searched by."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from agent.text.snowball import SNOWBALL_LANGUAGES, stem_snowball
from agent.text.stop_words import BY_LANGUAGE, detect_part_languages, detect_question_language
from agent.text.terms import expand_query_terms, extract_query_terms, extract_terms, make_language_marker

SWEDISH = "Hotellkostnaden ersätts inte om kvittot saknas."
GERMAN = "Die Kosten werden nicht erstattet, wenn der Beleg fehlt."
ENGLISH = "The costs are not refunded where the receipt is missing."


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("sv", "kostnad kostnaden kostnader kostnaderna"),
        ("sv", "faktura fakturan fakturor fakturorna"),
        ("sv", "lösenord lösenordet lösenorden"),
        ("sv", "kvitto kvittot kvitton"),
        ("sv", "dator datorn datorer datorerna"),
        ("sv", "rum rummet rummen"),
        ("de", "rechnung rechnungen"),
        ("de", "gerät geräts geräte geräten"),
        ("de", "vertrag vertrags verträge verträgen"),
        ("de", "zuschuss zuschüsse zuschuesse"),
        ("fi", "talo talon talossa talot"),
        ("fr", "approuvée approuvés approuver"),
        ("es", "factura facturas"),
        ("nl", "rekening rekeningen"),
    ],
)
def test_forms_of_a_word_have_one_term(language: str, forms: str) -> None:
    assert len({tuple(extract_terms(form, language)) for form in forms.split()}) == 1


def test_a_release_of_the_library_that_stems_otherwise_is_noticed() -> None:
    """An index keeps stems. When this fails, collections need `stepgate collections reindex`: say so in the changelog,
    and change the words here."""
    told = {
        "da": "regningerne regning", "de": "kündigungsfristen kundigungsfrist", "es": "facturaciones factur",
        "fi": "laskuissa lasku", "fr": "approuvées approuv", "it": "fatturazioni fattur", "nl": "rekeningen rekeen",
        "no": "regningene regning", "pt": "faturamentos fatur", "sv": "hotellkostnaderna hotellkostn",
    }  # fmt: skip
    assert {language: extract_terms(words.split()[0], language) for language, words in told.items()} == {
        language: [f"{language}·{words.split()[1]}"] for language, words in told.items()
    }


def test_the_languages_with_stems_are_those_with_small_words() -> None:
    assert set(SNOWBALL_LANGUAGES) == set(BY_LANGUAGE)


def test_small_words_codes_and_other_scripts_are_the_same_in_every_language() -> None:
    assert extract_terms("var rum B217 مدير 2024 東京都", "sv") == [
        "var",
        "sv·rum",
        "b217",
        *extract_terms("مدير 2024 東京都"),
    ]
    # "Varor" (goods) is no form of "var" (where), although its stem is.
    assert extract_terms("varor", "sv") == ["sv·var"]


def test_without_a_language_terms_are_those_of_before() -> None:
    assert extract_terms("Policies of the hotels") == ["polici", "of", "the", "hotel"]
    assert extract_terms(SWEDISH)[0] == "hotellkostnaden"


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([SWEDISH, GERMAN, ENGLISH], ["sv", "de", "en"]),
        ([SWEDISH, "Blanketter: 14"], ["sv", "sv"]),
        (["Total 14 000", "B217"], ["", ""]),
        (["J. van der Berg, 2019"], [""]),
        ([], []),
    ],
)
def test_the_small_words_tell_the_language_of_each_part(texts: list[str], told: list[str]) -> None:
    assert detect_part_languages(texts) == told


def test_danish_and_norwegian_need_not_be_told_apart() -> None:
    assert detect_part_languages(["Regningen skal være her, og det er ikke mye."])[0] in ("da", "no")


@pytest.mark.parametrize(
    ("text", "told"),
    [("Var läggs batterier?", "sv"), ("Var blev det af?", "da"), ("Var batterier", ""), ("Får man parkera än?", "sv")],
)
def test_letters_tell_languages_apart_that_share_their_small_words(text: str, told: str) -> None:
    assert detect_question_language(text) == told


def test_a_query_is_searched_by_its_terms_in_every_language_there_is() -> None:
    assert expand_query_terms("hotellkostnader", []) == {"hotellkostnad": ("hotellkostnad",)}
    assert expand_query_terms("hotellkostnader", ["sv", "de"]) == {
        "hotellkostnad": ("hotellkostnad", "sv·hotellkostn", "de·hotellkostnad")
    }
    assert expand_query_terms("HÔTEL b217", ["fr"]) == {"hotel": ("hotel", "fr·hotel"), "b217": ("b217",)}


def test_two_forms_in_a_query_are_one_term() -> None:
    forms = expand_query_terms("hotellkostnaden hotellkostnader", ["sv"])
    assert forms == {"hotellkostnaden": ("hotellkostnaden", "sv·hotellkostn", "hotellkostnad")}
    assert len(extract_query_terms("hotellkostnaden hotellkostnader")) == 2


def test_no_word_is_taken_for_a_mark_or_a_stem() -> None:
    assert make_language_marker("sv") not in extract_terms("sv· sv·kostnad SV sv")
    assert extract_terms("sv·kostnad") == ["sv", "kostnad"]


def test_threads_do_not_mix_words_up() -> None:
    words = [f"{stem}{ending}" for stem in ("faktur", "resor", "kostnad", "biljett") for ending in ("en", "er", "erna")]
    alone = [stem_snowball("sv", word) for word in words]
    stem_snowball.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda word: stem_snowball.__wrapped__("sv", word), words * 200))
    assert together == alone * 200
