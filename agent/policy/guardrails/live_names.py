"""Names that make an address live for browsers and renderers: tags, attributes, domains."""

import re
from typing import Final

LOADING_TAG: Final = re.compile(
    r"</?\s*(?:img|image|picture|pre|textarea|iframe|frame|frameset|embed|object|applet|video|audio|source|track|link|script"
    r"|style|svg|use|"
    r"base|meta|form|input|button|portal|math|template|noscript)\b",
    re.IGNORECASE,
)  # fmt: skip
LOADING_ATTRIBUTES: Final = frozenset({"src", "poster", "background", "xlink:href", "lowsrc", "dynsrc"})
"""Attributes with the address of something that loads by itself."""
LINKING_ATTRIBUTES: Final = frozenset({"href", "action", "formaction", "ping", "cite", "longdesc"})
"""Attributes with an address that takes a click; `href` of a stylesheet and of pictures in SVG loads."""
EMBEDDING_ATTRIBUTES: Final = frozenset(
    {"srcset", "imagesrcset", "style", "srcdoc", "content", "data", "to", "from", "by", "values"}
)
"""Attributes that hold addresses of what loads among other things, and whose names programs use for other things."""
SCRIPTING_ATTRIBUTE: Final = re.compile(r"on[a-z]{1,20}")
LOADING_ATTRIBUTE: Final = re.compile(
    rf"[\s\"'/](?:{'|'.join(LOADING_ATTRIBUTES)}|srcset|style|data|action|formaction|ping|on\w{{1,20}})\s*=",
    re.IGNORECASE,
)
"""What in a tag loads, runs or sends something."""
TOP_LEVEL_DOMAIN: Final = re.compile(
    r"(?:biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum|name|shop|рф|xn--[a-z0-9-]{1,59}"
    r"|a[cdefgilmnoqrstuwxz]|b[abdefghijmnorstvwyz]|c[acdfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrstu]|f[ijkmor]"
    r"|g[abdefghilmnpqrstuwy]|h[kmnrtu]|i[delmnoqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|m[acdeghklmnopqrstuvwxyz]"
    r"|n[acefgilopruz]|om|p[aefghklmnrstwy]|qa|r[eosuw]|s[abcdeghijklmnortuvxyz]|t[cdfghjklmnortvwz]|u[agksyz]"
    r"|v[aceginu]|w[fs]|y[et]|z[amw])(?![a-z0-9])",
    re.IGNORECASE,
)
"""The domains that linkify-it, the library of markdown-it, links without a scheme."""
