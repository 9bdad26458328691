"""Texts in the encodings that people's old files are in."""

# ruff: noqa: RUF001 - letters of all scripts are meant

import pytest

from agent.text.encoding_guess import guess_short_encoding
from agent.text.encodings import decode

TEXTS = {
    "cp1252": [
        "Größe: naïve café \u2013 señor, £40. Die Straße ist gesperrt.",
        "L'été dernier, nous avons visité un château près de la forêt.",
        "Die Mädchen hörten schöne Geräusche überall.",
        "El niño comió muchísimas piñas mañana.",
        "Færøerne og Ålesund er smukke steder på øen.",
    ],
    "cp1250": [
        "Zażółć gęślą jaźń. To jest przykładowy tekst po polsku, który ma kilka zdań.",
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Dnes je hezký den a půjdeme ven.",
    ],
    "cp1251": ["Съешь ещё этих мягких французских булок, да выпей чаю. Это русский текст."],
    "cp1253": ["Αυτό είναι ένα ελληνικό κείμενο με αρκετές λέξεις για δοκιμή."],
    "shift_jis": ["これはシフトJISの試験文書です。会議は三月五日に開かれます。"],
    "gb18030": ["这是一个中文测试文件，会议将于三月五日举行。请大家准时参加。"],
    "big5": ["這是一個中文測試文件，會議將於三月五日舉行。"],
    "euc_kr": ["이것은 한국어 테스트 문서입니다. 회의는 삼월 오일에 열립니다."],
    "utf-8": ["日本語 and English"],
    "utf-8-sig": ["日本語 and English"],
    "utf-16": ["日本語 and English"],
    "utf-32": ["日本語 and English"],
}


@pytest.mark.parametrize(("encoding", "text"), [(encoding, text) for encoding in TEXTS for text in TEXTS[encoding]])
def test_a_text_is_decoded(encoding: str, text: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert bool(decoded.uncertainties) == (not encoding.startswith("utf"))


SHORT_TEXTS = {
    "koi8-r": ["Аренда: 1240 рублей", "Срок уведомления три месяца.", "Привет, мир"],
    "cp1251": ["Аренда: 1240 рублей", "Договор аренды", "ДОГОВОР", "да"],
    "cp866": ["Цена 1240 руб."],
    "euc-jp": ["家賃は1240円です", "契約書", "東京"],
    "cp932": ["解約通知は三か月前です。", "カタカナ"],
    "iso2022_jp": ["家賃は1240円です"],
    "gb18030": ["租金每月1240元", "合同"],
    "big5": ["租金每月1240元"],
    "euc-kr": ["월세는 1240원입니다", "계약서"],
    "iso8859-2": ["Wynajem mieszkania żółć", "Příliš žluťoučký kůň"],
    "cp1253": ["Το ενοίκιο είναι 1240"],
    "cp1255": ["שכר הדירה 1240"],
    "cp1256": ["الإيجار 1240"],
    "cp1252": [
        "Größe: 5 €",
        "naïve café",
        "El Niño: ¿cuánto?",
        "Price £5",
        "25 °C",
        "Ægir Þór",
        "© 2026 Müller",
        "“Ja” – så",
    ],
}


MAC_TEXTS = [
    "Größe – Straße “Ärger” über 5 € für Müller, die Prüfung",
    'Country,Population\nCôte d’Ivoire,5\n"O""Brien",6\nZürich,7\n',
    "Dirección;Teléfono;Código\nPeñíscola;5;año\n",
    "Perché è così? La città è più bella.",
    "São Paulo; Coração; informações",
    "Oceanië;5\nBrazilië;7\n",
]
WINDOWS_TEXTS = [
    "It’s fine, don’t “stop”…",
    "• item one\n• item two — dash\n",
    "The log is a graph—a time line—each step’s input (see above)—one asks",
    "„Ja“, sagte Jörg – für 20 €.",
    "Français — été: l’école; ‚nein‘",
]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [*(("mac_roman", text) for text in MAC_TEXTS), *(("cp1252", text) for text in WINDOWS_TEXTS)],
)
def test_signs_of_windows_are_told_from_letters_of_macintosh(encoding: str, text: str, count: int) -> None:
    assert decode(f"{text}\n".encode(encoding) * count).text == f"{text}\n" * count


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in SHORT_TEXTS.items() for text in texts])
def test_the_letters_of_a_short_text_tell_its_encoding(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_a_switch_of_iso_2022_jp_in_a_utf_8_log_is_a_stray() -> None:
    assert decode("pump \x1b(J: 5 °C, Öl".encode()) == ("pump \x1b(J: 5 °C, Öl", "utf-8", (), 0)


@pytest.mark.parametrize(("encoding", "text"), [("cp932", "解約通知は三か月前です。"), ("gb18030", "租金每月1240元")])
def test_bytes_that_end_within_a_character_are_guessed_too(encoding: str, text: str) -> None:
    assert guess_short_encoding(text.encode(encoding) + "約".encode(encoding)[:1]) == encoding


def test_lost_characters_are_counted() -> None:
    assert decode(b"\xff\xfea\x00b").uncertainties == ("1 characters are not utf-16 and were lost",)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told_by_its_zeros(encoding: str) -> None:
    assert decode("Name;Größe\nMalmö;5\n".encode(encoding)).text == "Name;Größe\nMalmö;5\n"
    assert decode(b"a\0b\0").text == "ab"
    assert decode(b"words\0\0\0").encoding == "utf-8"


def test_a_few_bytes_that_are_no_utf_8_do_not_change_the_others() -> None:
    decoded = decode("Größe, Länge, Höhe, Über\n".encode() + "5 €".encode("cp1252"))
    assert decoded.text == "Größe, Länge, Höhe, Über\n5 €"
    assert decoded.uncertainties == ("1 characters are not utf-8 and were read as cp1252",)


def test_a_text_of_another_encoding_is_not_taken_for_damaged_utf_8() -> None:
    assert decode("Größe und Länge".encode("cp1252")).text == "Größe und Länge"
    assert decode("Größe".encode() + "Länge, Höhe, Übergröße".encode("cp1252")).encoding != "utf-8"
