"""Texts in the encodings that mails and pages declare, which mean the larger ones of browsers and mail programs."""

import codecs
import re

_PREFIX = re.compile("^(?:x-|cs)+")
_ISO_8859 = re.compile(r"^iso[-_]?8859[-_]?(\d+)(?:-?[ei])?$")
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
"""The encodings that contain those which are declared."""
_NAMES = {
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "windows-949": "cp949",
    "dos-874": "cp874",
    "mac": "mac-roman",
    "mac-ukrainian": "mac-cyrillic",
    "koi": "koi8-r",
    "koi8": "koi8-r",
    "koi8-ru": "koi8-u",
    "gb_2312": "gb18030",
    "gb_2312-80": "gb18030",
    "iso-ir-149": "cp949",
    "ksc_5601": "cp949",
    "ks_c_5601-1989": "cp949",
    "ksc56011987": "cp949",
    "euckr": "cp949",
    "eucpkdfmtjapanese": "euc-jp",
    "cn-big5": "big5hkscs",
    "isolatin9": "iso8859-15",
    "sun_eu_greek": "iso8859-7",
    "visual": "iso8859-8",
    "logical": "iso8859-8",
    "unicode": "utf-16-le",
}
"""What Python calls encodings by other names, without `x-` and `cs` before them."""
_SWITCH = re.compile(rb"\x1b(\$[@B]|\$\([@BD]|\([BIJ])")


def decode_text(data: bytes, label: str) -> str:
    """The text in the encoding of a label. Raises LookupError for an unknown one, ValueError for other bytes."""
    label = label.strip().lower()
    plain = _PREFIX.sub("", label)
    for name in (label, plain, _ISO_8859.sub(r"iso8859-\1", plain), _NAMES.get(plain, label)):
        try:
            codec = codecs.lookup(name).name
            break
        except LookupError:
            continue
    else:
        raise LookupError(label)
    return decode_switched(data) if codec == "iso2022_jp" else data.decode(_WIDER.get(codec, codec))


def decode_switched(data: bytes) -> str:
    """The text of ISO-2022-JP, whose escape sequences say in which set the following bytes are."""
    first, *parts = _SWITCH.split(data.replace(b"\x0e", b"\x1b(I").replace(b"\x0f", b"\x1b(B"))
    texts = [first.decode("ascii")]
    for switch, part in zip(parts[::2], parts[1::2], strict=True):
        if switch == b"(I":
            texts.append(bytes(byte | 0x80 if byte > 0x20 else byte for byte in part).decode("cp932"))
        elif switch.startswith(b"$"):
            texts += [_decode_double(part[place : place + 2], switch) for place in range(0, len(part), 2)]
        else:
            texts.append(part.decode("ascii"))
    return "".join(texts)


def _decode_double(pair: bytes, switch: bytes) -> str:
    """A character of two bytes: as the standard has it, else as Windows has it in Shift_JIS."""
    high = bytes(byte | 0x80 for byte in pair)
    try:
        return (b"\x8f" + high if switch.endswith(b"D") else high).decode("euc_jp")
    except ValueError:
        first, second = pair
        lead = (first + 1) // 2 + (0x70 if first < 0x5F else 0xB0)
        odd = 0x20 if second > 0x5F else 0x1F
        trail = second + (odd if first % 2 else 0x7E)
        return bytes([lead, trail]).decode("cp932")
