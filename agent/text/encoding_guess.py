"""Guesses the encoding of a short text by how likely its letters are: statistics of longer texts know too little here.

Each encoding that fits is scored: letters that are frequent in their script, words in one script with capitals at their
beginning speak for it; signs within words, half-width kana and characters for private use against it.
"""

# ruff: noqa: RUF001 - letters and signs of all scripts are meant

import codecs
import re
import unicodedata
from functools import cache

CANDIDATES = (
    "cp1252", "mac_roman", "cp1250", "iso8859-2", "cp1251", "koi8-u", "cp866", "cp1253", "cp1255", "cp1256", "cp932",
    "euc-jp", "gb18030", "big5", "euc-kr",
)  # fmt: skip
"""In order of preference among equals."""

_FREQUENT = frozenset(
    "оеаинтсрвлкмдпуяыьгзбчй"
    "αειοντσςρπκλμυηθόάέίή"
    "אבהוילמנרשתםדקכעסחטןגצזפ"
    "اليمنوتربعدةسقكحفجهشصطخأ"
    "이다는의에을를가은한고하지로기인사리시도대수정해어부자일아나그전서것들과년보여주제상원니있었습며게면만장동까터월세약임차증금계"
    "的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然"
    "作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从月元租金合约期房屋每付款价"
    "這為來個們說國時會後對過發當與學進種將還無經約價圓契書"
    "本長政社議民連五発間対部東党市業内相四今回新場員九入選立開手米力問高代明実円関決動京全目表戦通外最言氏現理調体化田八六題首意"
    "性要制治度務強気七野協取統機平総加山思話世受区領県続正安設保改数記院女初北午指権界支第産結百派点教報済府活原先共得解名交資予"
    "賃貸料知告前払届"
)
_SIGN_KINDS = frozenset({"Sm", "Sk", "So", "No", "Po", "Lm", "Sc", "Cf"})
_WORD = re.compile(r"[^\W\d_]+")
_JOINED = re.compile(r"[^\W\d_]{2}(?:.[^\W\d_]{2}|—[aeiouy]\W)")
"""Two words and a dash between them. A word of one letter is a vowel."""
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "HANGUL", "HIRAGANA", "KATAKANA", "CJK", "HALFWIDTH")
_EAST_ASIAN = frozenset({"HIRAGANA", "KATAKANA", "CJK"})
_GOOD, _LIKELY, _FAIR, _RARE, _BAD, _WORST = 1.0, 0.9, 0.6, 0.2, -1.0, -2.0
_INVERTED = {"¿": "?", "¡": "!"}
_OPENING = {"‘": "‚", "“": "„"}
"""Marks that end a quotation only where another one began it."""
_SIGNS = frozenset("£€¥©®°§«»“”„‘’–—…•·±№¿¡。、，！？：；「」")
"""Signs that stand beside words and figures in many texts."""
_LEAST = 0.3
"""The lowest score of a text; below it nothing is known."""


def guess_short_encoding(data: bytes) -> str | None:
    """The likeliest encoding of bytes that are not UTF-8; None if none is likely."""
    scores = {name: _score(data, name) for name in CANDIDATES}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] >= _LEAST else None


def _score(data: bytes, encoding: str) -> float:
    """How likely a decoding is: the mean over its characters beyond ASCII, at most 1."""
    try:  # the bytes may end within a character
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return _WORST
    beyond = [index for index, sign in enumerate(text) if sign > "\x7f"]
    words = _WORD.findall(text)
    total = sum(_weigh(text, index) for index in beyond)
    total += sum(_weigh_word(word) for word in words if not word.isascii())
    latin = [sign for word in words for sign in word if _get_script(sign) == "LATIN"]
    accented = sum(sign > "\x7f" for sign in latin)
    if 2 * accented > len(latin):  # hardly any language has more letters with marks than without
        total -= (_GOOD - _RARE) * accented
    return total / max(len(beyond), 1)


def _weigh(text: str, index: int) -> float:
    sign = text[index]
    kind = unicodedata.category(sign)
    if kind in {"Cc", "Co", "Cn"}:
        return _WORST
    if not sign.isalpha():
        return _GOOD if _is_well_placed(text, index, kind) else _weigh_sign(text, index, kind)
    script = _get_script(sign)
    if script == "HALFWIDTH" or not script:
        return _BAD
    is_alone = not (text[index - 1 : index].isalpha() or text[index + 1 : index + 2].isalpha())
    if is_alone and (text[index + 1 : index + 2].isdigit() or (script == "LATIN" and sign.isupper())):
        return _RARE
    if is_alone and script == "LATIN":
        return _FAIR
    if script == "LATIN":
        return _GOOD if sign.islower() or not text[index - 1 : index].islower() else _BAD
    if script in {"HIRAGANA", "KATAKANA"} or sign.lower() in _FREQUENT:
        # A letter alone, as after an amount, may be a sign of another encoding: words say more.
        return _FAIR if is_alone and script not in _EAST_ASIAN | {"HANGUL"} else _GOOD
    return _RARE if script in {"CJK", "HANGUL"} else _FAIR


def _weigh_sign(text: str, index: int, kind: str) -> float:
    sign = text[index]
    if sign in _SIGNS and not text[index - 1 : index].isalpha():
        return _GOOD if _INVERTED.get(sign, "") in text[index:] and sign in _INVERTED else _LIKELY
    is_within = text[index - 1 : index].isalpha() or text[index + 1 : index + 2].isalpha()
    if "\u2500" <= sign <= "\u25ff":
        return _WORST
    return _BAD if is_within and kind in _SIGN_KINDS and _get_script(sign) not in _EAST_ASIAN else _RARE


def _is_well_placed(text: str, index: int, kind: str) -> bool:
    """Whether a quotation mark is beside a word, an apostrophe within one, or a dash between longer words or spaces."""
    sign, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if kind == "Pd":
        if before.isalpha() and after.isalpha():
            return _JOINED.fullmatch(text, max(index - 2, 0), index + 3) is not None
        return bool(before.strip()) == bool(after.strip())
    if sign in _OPENING and before.isalpha() and not after.isalpha():
        return text.find(_OPENING[sign], 0, index) >= 0
    return (kind in {"Pi", "Pf"} or sign in _OPENING.values()) and (
        sign == "’" or not (before.isalpha() and after.isalpha())
    )


def _weigh_word(word: str) -> float:
    """What speaks against a word: several scripts, small letters before capitals."""
    scripts = {_get_script(sign) for sign in word}
    if len(scripts - _EAST_ASIAN) > 1 or (scripts & _EAST_ASIAN and scripts - _EAST_ASIAN):
        return _WORST * len(word) / 2
    is_cased = word.islower() or word.isupper() or word.istitle() or not any(sign.isupper() for sign in word)
    return 0.0 if is_cased else _BAD * sum(sign.isupper() for sign in word)


@cache
def _get_script(sign: str) -> str:
    name = unicodedata.name(sign, "")
    return next((script for script in _SCRIPTS if name.startswith(script)), "")
