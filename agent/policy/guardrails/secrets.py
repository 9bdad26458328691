"""Finds and redacts credentials: known formats, and every secret this gateway is configured with, in common encodings.

Used on prompts, answers, traces, logs and errors: `SecretScanner.redact` for a text, `redact_tree` for JSON,
`create_stream` for text in pieces.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from agent.policy.guardrails.models import Finding, GuardedCategory, GuardrailsInput
from agent.policy.guardrails.secret_encodings import (
    NormalizedText,
    iter_normalized_texts,
    list_encodings,
    squeeze_encoding,
)
from agent.policy.guardrails.spans import Span, map_json_texts, replace_spans
from agent.policy.guardrails.stream import MAX_HELD_CHARS, BufferedFilter, find_last_word

SecretScope = Literal["known", "forms", "all"]
"""`known`: configured values. `forms`: also formats of providers. `all`: also values that the text calls a password."""


class CredentialFormat(NamedTuple):
    """The format of one provider's credentials, from its documentation. `prefixes` are the literals they begin with."""

    kind: str
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


def _make_format(kind: str, starts: str, pattern: str) -> CredentialFormat:
    return CredentialFormat(kind, tuple(starts.split()), re.compile(pattern))


_END = r"(?![\w-])"
CREDENTIAL_FORMATS: Final[tuple[CredentialFormat, ...]] = (
    _make_format("ANTHROPIC_KEY", "sk-ant-", rf"sk-ant-[\w-]{{20,200}}{_END}"),
    _make_format("OPENAI_KEY", "sk-", rf"sk-(?:proj-|svcacct-|admin-|None-|or-v1-|lf-)?[A-Za-z0-9_-]{{20,220}}{_END}"),
    _make_format("AWS_ACCESS_KEY", "AKIA ASIA AGPA AIDA AROA ABIA ACCA", r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA"
    r"|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _make_format("GITHUB_TOKEN", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[pousr]_[A-Za-z0-9]{36,255}"
    r"|github_pat_\w{50,255})(?!\w)"),
    _make_format("GITLAB_TOKEN", "glpat- gldt- glrt- glptt- glcbt- glsoat-", rf"gl[a-z]{{2,5}}-[\w.-]{{20,300}}{_END}"),
    _make_format("SLACK_TOKEN", "xoxb- xoxp- xoxa- xoxo- xoxs- xoxr- xoxe xapp-", rf"(?:xox[abposr]"
    rf"|xoxe(?:\.xox[bp])?|xapp)-[\w-]{{10,250}}{_END}"),
    _make_format("SLACK_WEBHOOK", "https://hooks.slack.com/", r"https://hooks\.slack\.com/(?:services|workflows"
    r"|triggers)/[\w/+-]{20,120}"),
    _make_format("GOOGLE_KEY", "AIza", rf"AIza[\w-]{{35}}{_END}"),
    _make_format("GOOGLE_OAUTH", "GOCSPX- ya29.", rf"(?:GOCSPX-[\w-]{{20,40}}|ya29\.[\w-]{{20,400}}){_END}"),
    _make_format("STRIPE_KEY", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"(?:(?:sk|rk)_(?:live|test)_"
    r"|whsec_)[A-Za-z0-9+/=]{16,250}(?!\w)"),
    _make_format("HUGGINGFACE_TOKEN", "hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z0-9]{30,60}(?!\w)"),
    _make_format("GROQ_KEY", "gsk_", r"gsk_[A-Za-z0-9]{40,80}(?!\w)"),
    _make_format("XAI_KEY", "xai-", r"xai-[A-Za-z0-9]{60,120}(?!\w)"),
    _make_format("PERPLEXITY_KEY", "pplx-", r"pplx-[A-Za-z0-9]{32,80}(?!\w)"),
    _make_format("REPLICATE_TOKEN", "r8_", r"r8_[A-Za-z0-9]{30,60}(?!\w)"),
    _make_format("NPM_TOKEN", "npm_", r"npm_[A-Za-z0-9]{36}(?!\w)"),
    _make_format("PYPI_TOKEN", "pypi-", rf"pypi-[\w-]{{50,300}}{_END}"),
    _make_format("SENDGRID_KEY", "SG.", rf"SG\.[\w-]{{16,32}}\.[\w-]{{30,64}}{_END}"),
    _make_format("TELEGRAM_TOKEN", "bot", r"(?<=bot)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _make_format("TWILIO_KEY", "SK", r"SK[0-9a-f]{32}(?!\w)"),
    _make_format("DIGITALOCEAN_TOKEN", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}(?!\w)"),
    _make_format("SHOPIFY_TOKEN", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)"),
    _make_format("DATABRICKS_TOKEN", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?!\w)"),
    _make_format("VAULT_TOKEN", "hvs. hvb.", rf"hv[sb]\.[\w-]{{20,300}}{_END}"),
    _make_format("STEPGATE_KEY", "sg_", r"sg_[A-Za-z0-9_-]{20,120}(?![\w-])"),
    _make_format("JWT", "eyJ", rf"eyJ[\w-]{{8,4000}}\.eyJ[\w-]{{4,8000}}\.[\w-]{{10,2000}}{_END}"),
    _make_format("DOCKER_TOKEN", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_[\w-]{{20,60}}{_END}"),
    _make_format("PRIVATE_KEY", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
          r"(?:[^-]|-(?!----END)){0,16000}(?:-----END[A-Z0-9 ]{1,50}-----)?"),
)  # fmt: skip
_PREFIXES: Final = sorted((start for form in CREDENTIAL_FORMATS for start in form.prefixes), key=len, reverse=True)
_PREFIX: Final = re.compile(
    "|".join(
        f"{re.escape(letter)}(?:{'|'.join(re.escape(start[1:]) for start in _PREFIXES if start[0] == letter)})"
        for letter in sorted({start[0] for start in _PREFIXES})
    )
)
"""Any prefix, the longest first, grouped by first letters: in one list, all would be tried at most characters."""
_FORMATS_BY_PREFIX: Final = {
    start: [form for form in CREDENTIAL_FORMATS if any(start.startswith(other) for other in form.prefixes)]
    for form in CREDENTIAL_FORMATS
    for start in form.prefixes
}
_CONNECTION: Final = re.compile(
    r"(?<=://)(?P<user>[^\s:/@\"'<>]{0,128}):(?P<secret>[^\s/@\"'<>]{1,256})(?=@[^\s@/]{1,255})"
)
_BEARER: Final = re.compile(
    r"\b(?:Bearer|Basic|Token|token)[ \t]{1,3}(?P<secret>(?=[\w+/=.~-]{0,60}\d)[\w+/=.~-]{20,4000})", re.IGNORECASE
)
_NAMED_VALUE: Final = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|api[_-]?key|access[_-]?(?:key|token)"
    r"|auth[_-]?token"
    r"|client[_-]?secret|private[_-]?key|account[_-]?key|connection[_-]?string)"
    r"[\"']?[ \t]{0,4}(?::|=>?|:=)[ \t]{0,4}[\"']?"
    r"(?P<secret>(?=[^\s\"'<>,;]{0,80}[\d!#$%&*+/=?@^_~.-])[^\s\"'<>,;]{8,400})",
    re.IGNORECASE,
)  # fmt: skip
"""A name for a secret, and a value that is not a plain word."""
_STATED_PASSWORD: Final = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pwd|passwort|kennwort|lösenord(?:et)?|mot de passe|contraseña|wachtwoord)"
    r"[ \t]{1,3}(?:is|was|ist|war|lautet|är|var|es|est)[ \t:]{1,3}[\"'`]?"
    r"(?!\w{0,12}(?:sha-?\d|md5|base64|bcrypt|argon2|pbkdf2|utf-?8|aes))"
    r"(?P<secret>(?=[^\s\"'`<>,;]{0,60}\d)(?=[^\s\"'`<>,;]{0,60}[A-Za-z])[^\s\"'`<>,;]{6,100})",
    re.IGNORECASE,
)  # fmt: skip
"""A password in a sentence: with a digit and a letter, unlike words that describe a password."""
_OPTION: Final = re.compile(
    r"\b(?:(?:mysql|mariadb)[\w-]{0,12}[ \t][^\n|;&]{0,30}?(?<=[ \t])-p|sshpass[ \t]{1,3}-p[ \t]?)(?P<quote>[\"']?)"
    r"(?!\d{1,5}\b)"
    r"(?P<secret>(?=[^\s\"']{0,60}[\d!#%&*+=?@^~])[^\s\"']{6,100})(?P=quote)"
)
_COOKIE: Final = re.compile(
    r"\b(?:Set-)?Cookie[\"']?[ \t]{0,3}:[^\n]{0,40}?(?<![\w.-])[\w.-]{0,20}(?:sess|token|auth|sid\b|jwt)[\w.-]{0,20}="
    r"(?P<secret>(?=[^\s;,\"']{0,60}\d)[^\s;,\"'<>]{8,4096})",
    re.IGNORECASE,
)
_OPEN_LINE: Final = re.compile(
    r"\b(?:(?:mysql|mariadb)[^\n|;&]{0,48}|sshpass[^\n|;&]{0,12}|(?:set-)?cookie[\"']?[ \t]{0,3}:[^\n]{0,48})\Z",
    re.IGNORECASE,
)
"""An incomplete command or header in which a credential may follow."""
_OPEN_LINE_SIGNS: Final = ("mysql", "mar", "sshpass", "cook")
"""Every such line contains one of these, whatever its case."""
_INFIX_CREDENTIALS: Final = tuple(
    (marker, kind, re.compile(pattern))
    for marker, kind, pattern in (
        ("Q~", "AZURE_SECRET", r"(?<![\w~.-])[A-Za-z0-9]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
        ("AZDO", "AZURE_TOKEN", r"(?<!\w)[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?!\w)"),
        ("JQQJ99", "AZURE_KEY", r"(?<!\w)[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?!\w)"),
        ("sig=", "AZURE_SIGNATURE", r"(?<=[?&]sig=)[A-Za-z0-9%+/]{43,60}(?:%3[dD]|=)"),
        ('"auth"', "DOCKER_LOGIN", r'(?<="auth": ")[A-Za-z0-9+/]{12,400}={0,2}(?=")'
         r'|(?<="auth":")[A-Za-z0-9+/]{12,400}={0,2}(?=")'),
    )
)  # fmt: skip
"""Credentials whose marker is not at the beginning, and the marker."""
_PLACEHOLDER_VALUE: Final = re.compile(
    r"\$\{|\{\{|<|\*{3}|x{4}|\.\.\.|your[_-]|example|changeme|os\.environ|getenv|process\.env|settings\."
    r"|config\.|^(?:self|this|cls|form|request|req|args|options|user|ctx)\.[a-z_.]+|^[a-z_.]+\([^)]*\)?$",
    re.IGNORECASE,
)
_OPEN_KEY: Final = re.compile(
    r"-----BEGIN(?:[^-]|-(?!----END)){0,16000}(?:-----END[A-Z0-9 ]{0,50}-{0,5}\S{0,20000})?\Z"
)
_TRAILING_NAME: Final = re.compile(
    r"(?:(?:pass\w{0,6}|pwd|secret|key|token|string|bearer|basic)[\"']?[ \t]{0,4}(?::|=>?|:=)?[ \t]{0,4}[\"']?"
    r"|(?:pass\w{0,6}|pwd|kennwort|lösenord(?:et)?|mot de passe|contraseña|wachtwoord)[ \t]{1,3}"
    r"(?:(?:is|was|ist|war|lautet|är|var|es|est)[ \t:]{0,3}[\"'`]?)?)\Z",
    re.IGNORECASE,
)
"""A name at the end of a text after which its value may follow; both must be seen together."""
_TRAILING_NAME_SIGNS: Final = (
    "pass", "pwd", "secret", "key", "token", "str", "bearer", "bas", "kennwort", "lösenord", "contraseña", "wachtwoord"
)  # fmt: skip
"""Every such name contains one of these, whatever its case."""
_MAX_ROUNDS: Final = 16
"""Consecutive names, or keys without an end, that are followed in a stream."""
CONTEXT_CHARS: Final = 2_000
"""Characters around a cut that are searched for a secret it would split."""
_LOOKBACK_CHARS: Final = 64
"""Maximum length of such a name with what follows it."""


class SecretScanner:
    """Finds credentials. Built once with all configured secrets; it is also a detector."""

    categories: frozenset[GuardedCategory] = frozenset({"secret"})

    def __init__(self, configured: Iterable[str] = (), look: SecretScope = "all") -> None:
        self._scope = look
        encodings = {form for value in configured for form in list_encodings(value)}
        self._squeezed_encodings = sorted(
            {small for form in encodings if (small := squeeze_encoding(form))}, key=len, reverse=True
        )
        self._exact_encodings = sorted(
            (form for form in encodings if not squeeze_encoding(form)), key=len, reverse=True
        )
        self._encodings_with_spaces = [
            encoding for encoding in self._exact_encodings if any(char.isspace() for char in encoding)
        ]
        self._exact_prefixes = _list_proper_prefixes(self._exact_encodings)
        self._squeezed_prefixes = _list_proper_prefixes(self._squeezed_encodings)
        self._longest = max(map(len, self._exact_encodings), default=0)
        self._longest_loose = max(map(len, self._squeezed_encodings), default=0)

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """Findings; spans may overlap."""
        return [
            Finding(category="secret", kind=span.kind, start=span.start, end=span.end, detail=span.reason)
            for span in self.find_spans(request.content)
        ]

    def find_spans(self, text: str) -> Iterator[Span]:
        """Yields the spans of credentials."""
        for encoding in self._exact_encodings:
            at = text.find(encoding)
            while at >= 0:
                yield Span(at, at + len(encoding), "a secret of this gateway", "CONFIGURED_SECRET")
                at = text.find(encoding, at + len(encoding))
        yield from self._find_encoded_secrets(text)
        if self._scope != "known":
            yield from _find_provider_credentials(text)
        if self._scope == "all":
            yield from _find_named_credentials(text)

    def _find_encoded_secrets(self, text: str) -> Iterator[Span]:
        """Yields the spans of configured secrets in any encoding."""
        for reading in iter_normalized_texts(text) if self._squeezed_encodings else ():
            for small in self._squeezed_encodings:
                at = reading.text.find(small)
                while at >= 0:
                    yield Span(
                        *reading.to_original_span(at, at + len(small)), "a secret of this gateway", "CONFIGURED_SECRET"
                    )
                    at = reading.text.find(small, at + len(small))

    def may_contain_secret(self, text: str) -> bool:
        """Whether a text may contain a secret, JSON-escaped or not. Cheaper than `find_spans`."""
        if (
            any(encoding in text for encoding in self._exact_encodings)
            or next(self._find_encoded_secrets(text), None) is not None
        ):
            return True
        if self._scope != "forms":
            return self._scope == "all"
        return _PREFIX.search(text) is not None or any(marker in text for marker, _, _ in _INFIX_CREDENTIALS)

    def redact(self, text: str) -> str:
        """The text with `[removed: AWS_ACCESS_KEY]` for each credential."""
        spans = [(span.start, span.end, f"[removed: {span.kind}]") for span in self.find_spans(text)]
        return replace_spans(text, spans) if spans else text

    def redact_tree(self, value: JsonValue) -> JsonValue:
        """A JSON tree with redacted texts and names. The value of a name such as `password` is removed too."""

        def change(text: str, under: str) -> str:
            return "[removed: PASSWORD]" if text and under and _SECRET_NAME.match(under) else self.redact(text)

        return map_json_texts(value, change)

    def create_stream(self) -> BufferedFilter:
        """A filter for a text in pieces; it holds back the last word and incomplete secrets."""
        return BufferedFilter(self.redact, self._find_stable_length)

    def _find_stable_length(self, text: str) -> int:
        """Measures how much of the text further characters cannot change."""
        tail = text[-self._longest :] if self._longest else ""
        encoding = next((at for at in range(len(tail)) if tail[at:] in self._exact_prefixes), len(tail))
        cut = min(len(text) - len(tail) + encoding, self._find_open_private_key(text))
        if cut and self._squeezed_encodings:
            cut = min(cut, self._find_partial_secret(text))
        for _ in range(_MAX_ROUNDS):
            uncut = find_last_word(text[:cut])
            if uncut == cut:
                uncut = self._move_before_values(text, cut)
            if uncut == cut and cut and self._squeezed_encodings:
                uncut = self._move_before_secrets(text, cut)
            if uncut == cut:
                break
            cut = uncut
        return cut

    def _move_before_values(self, text: str, cut: int) -> int:
        """A position at or before `cut` that splits no named value or secret of several words."""
        around = text[max(0, cut - _LOOKBACK_CHARS) : cut]
        if _contains_any(around, _TRAILING_NAME_SIGNS) and (named := _TRAILING_NAME.search(around)) is not None:
            cut = find_last_word(text[: cut - len(around) + named.start()])
        around = text[max(0, cut - _LOOKBACK_CHARS) : cut]
        line = _OPEN_LINE.search(text, cut - len(around), cut) if _contains_any(around, _OPEN_LINE_SIGNS) else None
        cut = line.start() if line is not None else cut
        for encoding in self._encodings_with_spaces:
            at = text.find(encoding, max(0, cut - len(encoding) + 1), cut + len(encoding) - 1)
            if 0 <= at < cut:
                cut = at
        start = text.rfind("-----BEGIN", max(0, cut - MAX_HELD_CHARS), cut)
        key = CREDENTIAL_FORMATS[-1].pattern.match(text, start) if start >= 0 else None
        return start if key is not None and key.end() > cut else cut

    def _move_before_secrets(self, text: str, cut: int) -> int:
        """A position at or before `cut` that splits no encoded secret."""
        around = max(0, cut - CONTEXT_CHARS)
        spans = self._find_encoded_secrets(text[around : cut + CONTEXT_CHARS])
        return min((around + one.start for one in spans if one.start < cut - around < one.end), default=cut)

    def _find_partial_secret(self, text: str) -> int:
        """Finds where an encoded secret may begin that continues in the last word, which is held back anyway."""
        last = find_last_word(text)
        around = max(0, last - CONTEXT_CHARS)
        before = text[around:last]
        return around + min(
            (self._find_partial_suffix(reading, len(before)) for reading in iter_normalized_texts(before)),
            default=len(before),
        )

    def _find_partial_suffix(self, reading: NormalizedText, end: int) -> int:
        before = reading.text
        for at in range(max(0, len(before) - self._longest_loose), len(before)):
            if before[at:] in self._squeezed_prefixes:
                return reading.to_original_span(at, at + 1)[0]
        return end

    def _find_open_private_key(self, text: str) -> int:
        """Finds where a private key begins that has no end yet."""
        start = text.find("-----BEGIN", max(0, len(text) - MAX_HELD_CHARS))
        for _ in range(_MAX_ROUNDS):
            if start < 0:
                break
            if _OPEN_KEY.match(text, start):
                return start
            start = text.find("-----BEGIN", start + 1)
        return len(text)


def _find_provider_credentials(text: str) -> Iterator[Span]:
    """Yields spans that have the format of a provider."""
    at = 0
    while (start := _PREFIX.search(text, at)) is not None:
        at = start.start() + 1
        if start.start() and (text[start.start() - 1].isalnum() or text[start.start() - 1] == "_"):
            continue
        for form in _FORMATS_BY_PREFIX[start[0]]:
            place = start.end() if form.kind == "TELEGRAM_TOKEN" else start.start()
            match = form.pattern.match(text, place)
            if match is not None:
                yield Span(match.start(), match.end(), "looks like a credential", form.kind)
                at = max(at, match.end())
                break
    for marker, kind, pattern in _INFIX_CREDENTIALS:
        for match in pattern.finditer(text) if marker in text else ():
            yield Span(match.start(), match.end(), "looks like a credential", kind)


def _find_named_credentials(text: str) -> Iterator[Span]:
    """Yields values that the text names as a credential, in any format."""
    low = text.lower()
    for kind, needs, pattern in _NAMED_CREDENTIALS:
        for match in pattern.finditer(text) if any(map(low.__contains__, needs)) else ():
            if not _PLACEHOLDER_VALUE.search(match["secret"]):
                yield Span(*match.span("secret"), "is given as a credential", kind)


_NAMED_CREDENTIALS: Final = (
    ("PASSWORD", ("://",), _CONNECTION),
    ("BEARER_TOKEN", ("bearer", "basic", "token"), _BEARER),
    ("PASSWORD", ("pass", "pwd", "secret", "key", "token", "string"), _NAMED_VALUE),
    ("PASSWORD", ("pass", "pwd", "kennwort", "lösenord", "contraseña", "wachtwoord"), _STATED_PASSWORD),
    ("PASSWORD", (" -p", "\t-p"), _OPTION),
    ("SESSION_COOKIE", ("cookie",), _COOKIE),
)
"""Kind, literals of which one must occur in the lower-case text (searched first, because it is cheap), pattern."""
_SECRET_NAME: Final = re.compile(
    r"(?:.*[_-])?(?:pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|access[_-]?token|auth(?:orization)?|client[_-]?secret"
    r"|private[_-]?key|refresh[_-]?token|cookie|set-cookie)\Z",
    re.IGNORECASE,
)  # fmt: skip


def _contains_any(text: str, signs: Iterable[str]) -> bool:
    return any(map(text.casefold().__contains__, signs))


def _list_proper_prefixes(encoding: Iterable[str]) -> frozenset[str]:
    """Every proper prefix of the values."""
    return frozenset(one[:end] for one in encoding for end in range(1, len(one)))
