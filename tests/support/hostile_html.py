"""Texts that try to become something that acts when they are shown in a page."""

ATTACKS = (
    """<img src=x onerror="alert('img')">""",
    "<script>alert('script')</script>",
    "<scr<script>ipt>alert(1)</script>",
    "[press](javascript:alert('link'))",
    "[press](JaVaScRiPt&#58;alert(1))",
    "[data](data:text/html,<script>alert(1)</script>)",
    '<a href="jav&#x09;ascript:alert(1)">x</a>',
    "<svg onload=alert('svg')></svg>",
    """<iframe srcdoc="<script>alert('frame')</script>"></iframe>""",
    "<details open ontoggle=alert(1)><summary>s</summary></details>",
    '<b style="background:url(javascript:alert(1))" onmouseover="alert(1)" id="main" class="banner">b</b>',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '![x](x"onerror="alert(1))',
    "\\href{javascript:alert(1)}{x} \\unicode{<img src=x onerror=alert(1)>} \\text{<script>alert(1)</script>}",
    "<form action=javascript:alert(1)><button formaction=javascript:alert(1)>go</button></form>",
    "<base href=//evil.example><meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "```<img src=x onerror=alert(1)>\n</code></pre><script>alert(1)</script>\n```",
)
"""Ways to run a script, to leave the page, or to look like a part of it."""
