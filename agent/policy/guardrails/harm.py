"""Finds hate speech and malicious code by patterns, precise rather than complete.

A moderation service can be added behind the `Guardrail` protocol.
"""

import re
from typing import Final, NamedTuple

from agent.policy.guardrails.models import Finding, GuardedCategory, GuardrailsInput

_WHO: Final = (
    r"(?:(?:the |these |those |all |die |alle )?(?:jews?|muslims?|christians?|hindus"
    r"|immigrants?|migrants?|refugees?|foreigners?"
    r"|blacks|whites|asians|arabs|africans|mexicans|gypsies|roma"
    r"|gays?|lesbians?|homosexuals?|trans(?:gender)?(?: people)?|women"
    r"|disabled(?: people)?|juden|muslime|migranten|flüchtlinge|ausländer|schwule|behinderte|frauen))"
)
_VERMIN: Final = (
    r"(?:vermin|sub-?human|rats|cockroaches|parasites|animals|scum|filth|a (?:plague|disease|cancer)|ungeziefer|"
    r"untermenschen|parasiten|abschaum|dreck)"
)
_GROUPS: Final = (
    "jew|jude|muslim|christian|hindu|migrant|refugee|foreigner|flüchtling|ausländer|blacks|whites|asians|arabs|"
    "africans|mexicans|gypsies|roma|gay|lesbian|homosexual|schwule|trans|women|frauen|disabled|behinderte"
)


class _HarmPattern(NamedTuple):
    """A pattern, and words, separated by `|`, of which one must occur. Searching for these first is cheap."""

    category: GuardedCategory
    kind: str
    required_words: str
    pattern: str
    description: str


_PATTERNS: Final = (
    _HarmPattern("hate_speech", "violence", "kill|exterminat|gas|shoot|hang|burn|lynch|vernicht|töte|erschieß|vergas",
          rf"\b(?:kill|exterminate|gas|shoot|hang|burn|lynch|vernichtet|tötet|erschießt|vergast) {_WHO}\b",
          "calls for violence against a group of people"),
    _HarmPattern("hate_speech", "violence", _GROUPS,
          rf"\b{_WHO} (?:should|must|deserve to|need to|sollten|müssen) (?:all )?"
          r"(?:die|be (?:killed|shot|gassed|hanged|exterminated)|sterben|verrecken|vernichtet werden)\b",
          "calls for violence against a group of people"),
    _HarmPattern("hate_speech", "dehumanising",
          "vermin|human|rats|cockroach|parasit|animals|scum|filth|plague|disease|cancer|ungeziefer|untermensch|"
          "abschaum|dreck",
          rf"\b{_WHO} (?:are|sind) (?:all |alle |nothing but |nur )?{_VERMIN}\b",
          "denies a group of people that they are human"),
    _HarmPattern("hate_speech", "hatred", "hate|despise|hasse",
          rf"\b(?:i|we|ich|wir) (?:hate|despise|hasse|hassen) (?:all |alle ){_WHO}\b",
          "expresses hatred of a group of people"),
    _HarmPattern("malicious_code", "reverse_shell", "/dev/tcp|/dev/udp|nc |ncat |dup2|mkfifo",
          r"\b(?:ba|z|k)?sh -i\b[^\n]{0,80}/dev/(?:tcp|udp)/|/dev/tcp/[\w.-]{1,80}/\d{1,5}[^\n]{0,40}0?[<>]&1"
          r"|\bnc(?:at)? [^\n]{0,60}-[a-z]{0,4}e ?/?(?:bin/)?(?:ba)?sh|\bos\.dup2\([^\n]{0,60}fileno\(\)"
          r"|mkfifo /tmp/\w{1,20} ?;[^\n]{0,80}\bnc\b", "opens a shell to another machine"),
    _HarmPattern("malicious_code", "destruction", "rm|:()|dd|mkfs|format|vssadmin",
          r"\brm\s+(?:-{1,2}[\w-]{1,20}\s+){1,4}(?:/\*?|~/?\*?|\$HOME)(?:[\s;&|\"']|\Z)"
          r"|:\(\)\s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:|\bdd\s+if=/dev/(?:zero|u?random)\s+of=/dev/(?:sd|nvme|vd|hd)\w"
          r"|\bmkfs(?:\.\w{2,6})?\s+(?:-\w\s+){0,3}/dev/(?:sd|nvme|vd|hd)\w|\bformat\s+c:\s*/[qy]\b"
          r"|\bvssadmin(?:\.exe)?\s+delete\s+shadows", "destroys a machine's files"),
    _HarmPattern("malicious_code", "dropper", "iex|invoke-expression|powershell|base64|atob",
          r"\b(?:iex|invoke-expression)\b[^\n]{0,80}(?:downloadstring|net\.webclient|\biwr\b)"
          r"|\bpowershell(?:\.exe)?\b[^\n]{0,80} -e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{40,}"
          r"|\b(?:eval|assert|exec)\s?\(\s?(?:gzinflate\s?\(\s?)?(?:base64_decode|base64\.b64decode|atob)\s?\(",
          "fetches or unpacks code and runs it unseen"),
    _HarmPattern("malicious_code", "credential_theft", "mimikatz|sekurlsa|lsass",
          r"\b(?:invoke-)?mimikatz\b[^\n]{0,80}|sekurlsa::logonpasswords|\blsass\.dmp\b"
          r"|\bprocdump\b[^\n]{0,40}\blsass\b",
          "steals the credentials of a machine"),
    _HarmPattern("malicious_code", "test_virus", "x5o!p%@ap", r"X5O!P%@AP\[4\\PZX54\(P\^\)7CC\)7\}\$EICAR",
          "is the anti-virus test file"),
)  # fmt: skip
_COMPILED: Final = tuple(
    (form, tuple(form.required_words.split("|")), re.compile(form.pattern, re.IGNORECASE)) for form in _PATTERNS
)


class HarmDetector:
    """Finds hate speech and malicious code."""

    categories: frozenset[GuardedCategory] = frozenset({"hate_speech", "malicious_code"})

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """A finding for each match of a pattern."""
        text = request.content
        low = text.lower()
        return [
            Finding(
                category=form.category, kind=form.kind, start=match.start(), end=match.end(),
                detail=f"this part {form.description}",
            )
            for form, needs, pattern in _COMPILED
            if any(map(low.__contains__, needs))
            for match in pattern.finditer(text)
        ]  # fmt: skip
