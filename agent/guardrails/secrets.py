"""Credentials: those that look like one, and every one this gateway was configured with, in any common encoding.

Used on prompts, answers, traces, logs and errors: `Secrets.redact` for a text, `redact_tree` for JSON, `stream` for
what comes in pieces.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from agent.guardrails.models import Finding, Guarded, GuardrailsInput
from agent.guardrails.spans import Span, mapped, replaced
from agent.guardrails.spellings import Reading, forms, readings, squeezed
from agent.guardrails.stream import MOST, Held, last_word

Look = Literal["known", "forms", "all"]
"""What is looked for: the configured values; those and what has a provider's form; also what is called a password."""


class Form(NamedTuple):
    """What one provider's credentials look like, from its documentation. `starts` are the letters they begin with."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]


def _form(kind: str, starts: str, pattern: str) -> Form:
    return Form(kind, tuple(starts.split()), re.compile(pattern))


_END = r"(?![\w-])"
FORMS: Final[tuple[Form, ...]] = (
    _form("ANTHROPIC_KEY", "sk-ant-", rf"sk-ant-[\w-]{{20,200}}{_END}"),
    _form("OPENAI_KEY", "sk-", rf"sk-(?:proj-|svcacct-|admin-|None-|or-v1-|lf-)?[A-Za-z0-9_-]{{20,220}}{_END}"),
    _form("AWS_ACCESS_KEY", "AKIA ASIA AGPA AIDA AROA ABIA ACCA", r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA"
    r"|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _form("GITHUB_TOKEN", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[pousr]_[A-Za-z0-9]{36,255}"
    r"|github_pat_\w{50,255})(?!\w)"),
    _form("GITLAB_TOKEN", "glpat- gldt- glrt- glptt- glcbt- glsoat-", rf"gl[a-z]{{2,5}}-[\w.-]{{20,300}}{_END}"),
    _form("SLACK_TOKEN", "xoxb- xoxp- xoxa- xoxo- xoxs- xoxr- xoxe xapp-", rf"(?:xox[abposr]"
    rf"|xoxe(?:\.xox[bp])?|xapp)-[\w-]{{10,250}}{_END}"),
    _form("SLACK_WEBHOOK", "https://hooks.slack.com/", r"https://hooks\.slack\.com/(?:services|workflows"
    r"|triggers)/[\w/+-]{20,120}"),
    _form("GOOGLE_KEY", "AIza", rf"AIza[\w-]{{35}}{_END}"),
    _form("GOOGLE_OAUTH", "GOCSPX- ya29.", rf"(?:GOCSPX-[\w-]{{20,40}}|ya29\.[\w-]{{20,400}}){_END}"),
    _form("STRIPE_KEY", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"(?:(?:sk|rk)_(?:live|test)_"
    r"|whsec_)[A-Za-z0-9+/=]{16,250}(?!\w)"),
    _form("HUGGINGFACE_TOKEN", "hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z0-9]{30,60}(?!\w)"),
    _form("GROQ_KEY", "gsk_", r"gsk_[A-Za-z0-9]{40,80}(?!\w)"),
    _form("XAI_KEY", "xai-", r"xai-[A-Za-z0-9]{60,120}(?!\w)"),
    _form("PERPLEXITY_KEY", "pplx-", r"pplx-[A-Za-z0-9]{32,80}(?!\w)"),
    _form("REPLICATE_TOKEN", "r8_", r"r8_[A-Za-z0-9]{30,60}(?!\w)"),
    _form("NPM_TOKEN", "npm_", r"npm_[A-Za-z0-9]{36}(?!\w)"),
    _form("PYPI_TOKEN", "pypi-", rf"pypi-[\w-]{{50,300}}{_END}"),
    _form("SENDGRID_KEY", "SG.", rf"SG\.[\w-]{{16,32}}\.[\w-]{{30,64}}{_END}"),
    _form("TELEGRAM_TOKEN", "bot", r"(?<=bot)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _form("TWILIO_KEY", "SK", r"SK[0-9a-f]{32}(?!\w)"),
    _form("DIGITALOCEAN_TOKEN", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{64}(?!\w)"),
    _form("SHOPIFY_TOKEN", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)"),
    _form("DATABRICKS_TOKEN", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?!\w)"),
    _form("VAULT_TOKEN", "hvs. hvb.", rf"hv[sb]\.[\w-]{{20,300}}{_END}"),
    _form("STEPGATE_KEY", "sg_", r"sg_[A-Za-z0-9_-]{20,120}(?![\w-])"),
    _form("JWT", "eyJ", rf"eyJ[\w-]{{8,4000}}\.eyJ[\w-]{{4,8000}}\.[\w-]{{10,2000}}{_END}"),
    _form("DOCKER_TOKEN", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_[\w-]{{20,60}}{_END}"),
    _form("PRIVATE_KEY", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
          r"(?:[^-]|-(?!----END)){0,16000}(?:-----END[A-Z0-9 ]{1,50}-----)?"),
)  # fmt: skip
_STARTS: Final = re.compile(
    "|".join(sorted((re.escape(s) for form in FORMS for s in form.starts), key=len, reverse=True))
)
_BY_START: Final = {
    start: [form for form in FORMS if any(start.startswith(other) for other in form.starts)]
    for form in FORMS
    for start in form.starts
}
_CONNECTION: Final = re.compile(
    r"(?<=://)(?P<user>[^\s:/@\"'<>]{0,128}):(?P<secret>[^\s/@\"'<>]{1,256})(?=@[^\s@/]{1,255})"
)
_BEARER: Final = re.compile(
    r"\b(?:Bearer|Basic|Token|token)[ \t]{1,3}(?P<secret>(?=[\w+/=.~-]{0,60}\d)[\w+/=.~-]{20,4000})", re.IGNORECASE
)
_NAMED: Final = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|api[_-]?key|access[_-]?(?:key|token)"
    r"|auth[_-]?token"
    r"|client[_-]?secret|private[_-]?key|account[_-]?key|connection[_-]?string)"
    r"[\"']?[ \t]{0,4}(?::|=>?|:=)[ \t]{0,4}[\"']?"
    r"(?P<secret>(?=[^\s\"'<>,;]{0,80}[\d!#$%&*+/=?@^_~.-])[^\s\"'<>,;]{8,400})",
    re.IGNORECASE,
)  # fmt: skip
"""A name that says it is a secret, and a value that is no plain word."""
_SAID: Final = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pwd|passwort|kennwort|lösenord(?:et)?|mot de passe|contraseña|wachtwoord)"
    r"[ \t]{1,3}(?:is|was|ist|war|lautet|är|var|es|est)[ \t:]{1,3}[\"'`]?"
    r"(?!\w{0,12}(?:sha-?\d|md5|base64|bcrypt|argon2|pbkdf2|utf-?8|aes))"
    r"(?P<secret>(?=[^\s\"'`<>,;]{0,60}\d)(?=[^\s\"'`<>,;]{0,60}[A-Za-z])[^\s\"'`<>,;]{6,100})",
    re.IGNORECASE,
)  # fmt: skip
"""Told in a sentence: with a digit and a letter, which a word that describes a password has not."""
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
"""A command or a header, not yet at its end, in which a credential may follow."""
_MARKED: Final = tuple(
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
"""Credentials with their sign not at the beginning, and that sign."""
_EXAMPLES: Final = re.compile(
    r"\$\{|\{\{|<|\*{3}|x{4}|\.\.\.|your[_-]|example|changeme|os\.environ|getenv|process\.env|settings\."
    r"|config\.|^(?:self|this|cls|form|request|req|args|options|user|ctx)\.[a-z_.]+|^[a-z_.]+\([^)]*\)?$",
    re.IGNORECASE,
)
_OPEN_KEY: Final = re.compile(
    r"-----BEGIN(?:[^-]|-(?!----END)){0,16000}(?:-----END[A-Z0-9 ]{0,50}-{0,5}\S{0,20000})?\Z"
)
_NAME: Final = re.compile(
    r"(?:(?:pass\w{0,6}|pwd|secret|key|token|string|bearer|basic)[\"']?[ \t]{0,4}(?::|=>?|:=)?[ \t]{0,4}[\"']?"
    r"|(?:pass\w{0,6}|pwd|kennwort|lösenord(?:et)?|mot de passe|contraseña|wachtwoord)[ \t]{1,3}"
    r"(?:(?:is|was|ist|war|lautet|är|var|es|est)[ \t:]{0,3}[\"'`]?)?)\Z",
    re.IGNORECASE,
)
"""The end of a text after which a value may follow that is to be taken out with its name in sight."""
_CHAIN: Final = 16
"""Names in a row, and keys without an end, that are followed in a stream."""
AROUND: Final = 2_000
"""Characters around a cut in which a secret may stand that it would part."""
_BACK: Final = 64
"""Characters in which such a name and what follows it fit."""


class Secrets:
    """Finds credentials. Built once with every configured secret; as a detector it reports them."""

    categories: frozenset[Guarded] = frozenset({"secret"})

    def __init__(self, configured: Iterable[str] = (), look: Look = "all") -> None:
        self._look = look
        written = {form for value in configured for form in forms(value)}
        self._loose = sorted({small for form in written if (small := squeezed(form))}, key=len, reverse=True)
        self._known = sorted((form for form in written if not squeezed(form)), key=len, reverse=True)
        self._spaced = [known for known in self._known if any(char.isspace() for char in known)]
        self._beginnings = _beginnings(self._known)
        self._loose_beginnings = _beginnings(self._loose)
        self._longest = max(map(len, self._known), default=0)
        self._longest_loose = max(map(len, self._loose), default=0)

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """Findings; spans may overlap."""
        return [
            Finding(category="secret", kind=span.kind, start=span.start, end=span.end, detail=span.why)
            for span in self.spans(request.content)
        ]

    def spans(self, text: str) -> Iterator[Span]:
        """Where the credentials of a text are."""
        for known in self._known:
            at = text.find(known)
            while at >= 0:
                yield Span(at, at + len(known), "a secret of this gateway", "CONFIGURED_SECRET")
                at = text.find(known, at + len(known))
        yield from self._spelt(text)
        if self._look != "known":
            yield from _of_providers(text)
        if self._look == "all":
            yield from _named(text)

    def _spelt(self, text: str) -> Iterator[Span]:
        """Where configured secrets stand in whatever spelling."""
        for reading in readings(text) if self._loose else ():
            for small in self._loose:
                at = reading.text.find(small)
                while at >= 0:
                    yield Span(*reading.span(at, at + len(small)), "a secret of this gateway", "CONFIGURED_SECRET")
                    at = reading.text.find(small, at + len(small))

    def suspects(self, text: str) -> bool:
        """Whether `text` may hold something, also in a form that JSON has escaped: cheaper than to look."""
        if any(known in text for known in self._known) or next(self._spelt(text), None) is not None:
            return True
        if self._look != "forms":
            return self._look == "all"
        return _STARTS.search(text) is not None or any(marker in text for marker, _, _ in _MARKED)

    def redact(self, text: str) -> str:
        """`text` without credentials: `[removed: AWS_ACCESS_KEY]` in their place."""
        return replaced(text, [(span.start, span.end, f"[removed: {span.kind}]") for span in self.spans(text)])

    def redact_tree(self, value: JsonValue) -> JsonValue:
        """A JSON tree without credentials in its texts and names. A text under a telling name (`password`) goes too."""

        def change(text: str, under: str) -> str:
            return "[removed: PASSWORD]" if text and under and _SECRET_NAME.match(under) else self.redact(text)

        return mapped(value, change)

    def stream(self) -> Held:
        """Redacts a text that comes in pieces; holds back the last word, or a secret that is not yet complete."""
        return Held(self.redact, self._complete)

    def _complete(self, text: str) -> int:
        """How much of `text` no further characters can change."""
        tail = text[-self._longest :] if self._longest else ""
        known = next((at for at in range(len(tail)) if tail[at:] in self._beginnings), len(tail))
        cut = min(len(text) - len(tail) + known, self._open_key(text))
        if cut and self._loose:
            cut = min(cut, self._begun(text))
        for _ in range(_CHAIN):
            uncut = self._uncut(text, cut)
            if uncut == cut and cut and self._loose:
                uncut = self._whole(text, cut)
            if uncut == cut:
                break
            cut = uncut
        return cut

    def _uncut(self, text: str, cut: int) -> int:
        """A place before `cut` that cuts no word, nor a name from its value, nor a secret of several words."""
        cut = last_word(text[:cut])
        named = _NAME.search(text[max(0, cut - _BACK) : cut])
        if named is not None:
            cut = last_word(text[: max(0, cut - _BACK) + named.start()])
        line = _OPEN_LINE.search(text, max(0, cut - _BACK), cut)
        cut = line.start() if line is not None else cut
        for known in self._spaced:
            at = text.find(known, max(0, cut - len(known) + 1), cut + len(known) - 1)
            if 0 <= at < cut:
                cut = at
        begun = text.rfind("-----BEGIN", max(0, cut - MOST), cut)
        key = FORMS[-1].pattern.match(text, begun) if begun >= 0 else None
        return begun if key is not None and key.end() > cut else cut

    def _whole(self, text: str, cut: int) -> int:
        """A place not after `cut` that parts no secret in some spelling."""
        around = max(0, cut - AROUND)
        spans = self._spelt(text[around : cut + AROUND])
        return min((around + one.start for one in spans if one.start < cut - around < one.end), default=cut)

    def _begun(self, text: str) -> int:
        """Where a secret in some spelling may have begun that goes on in the last word, which is held back anyway."""
        last = last_word(text)
        around = max(0, last - AROUND)
        said = text[around:last]
        return around + min((self._tail(reading, len(said)) for reading in readings(said)), default=len(said))

    def _tail(self, reading: Reading, end: int) -> int:
        said = reading.text
        for at in range(max(0, len(said) - self._longest_loose), len(said)):
            if said[at:] in self._loose_beginnings:
                return reading.span(at, at + 1)[0]
        return end

    def _open_key(self, text: str) -> int:
        """Where a private key begins that has no end yet."""
        begun = text.find("-----BEGIN", max(0, len(text) - MOST))
        for _ in range(_CHAIN):
            if begun < 0:
                break
            if _OPEN_KEY.match(text, begun):
                return begun
            begun = text.find("-----BEGIN", begun + 1)
        return len(text)


def _of_providers(text: str) -> Iterator[Span]:
    """What looks as one provider's credentials do."""
    at = 0
    while (start := _STARTS.search(text, at)) is not None:
        at = start.start() + 1
        if start.start() and (text[start.start() - 1].isalnum() or text[start.start() - 1] == "_"):
            continue
        for form in _BY_START[start[0]]:
            place = start.end() if form.kind == "TELEGRAM_TOKEN" else start.start()
            match = form.pattern.match(text, place)
            if match is not None:
                yield Span(match.start(), match.end(), "looks like a credential", form.kind)
                at = max(at, match.end())
                break
    for marker, kind, pattern in _MARKED:
        for match in pattern.finditer(text) if marker in text else ():
            yield Span(match.start(), match.end(), "looks like a credential", kind)


def _named(text: str) -> Iterator[Span]:
    """What is given as a credential, whatever it looks like."""
    low = text.lower()
    for kind, needs, pattern in _GIVEN:
        for match in pattern.finditer(text) if any(word in low for word in needs) else ():
            if not _EXAMPLES.search(match["secret"]):
                yield Span(*match.span("secret"), "is given as a credential", kind)


_GIVEN: Final = (
    ("PASSWORD", ("://",), _CONNECTION),
    ("BEARER_TOKEN", ("bearer", "basic", "token"), _BEARER),
    ("PASSWORD", ("pass", "pwd", "secret", "key", "token", "string"), _NAMED),
    ("PASSWORD", ("pass", "pwd", "wort", "lösenord", "contraseña"), _SAID),
    ("PASSWORD", (" -p", "\t-p"), _OPTION),
    ("SESSION_COOKIE", ("cookie",), _COOKIE),
)
"""Words of which one must stand in the text, in small letters: looking for those is cheap, and mostly there is none."""
_SECRET_NAME: Final = re.compile(
    r"(?:.*[_-])?(?:pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|access[_-]?token|auth(?:orization)?|client[_-]?secret"
    r"|private[_-]?key|refresh[_-]?token|cookie|set-cookie)\Z",
    re.IGNORECASE,
)  # fmt: skip


def _beginnings(known: Iterable[str]) -> frozenset[str]:
    """Everything but the whole that one of them may begin with."""
    return frozenset(one[:end] for one in known for end in range(1, len(one)))
