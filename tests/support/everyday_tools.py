"""Twenty everyday tools as a capable model writes them: request, interface, code and tests. Written by hand."""

from textwrap import dedent, indent
from typing import Any

from tests.support.tool_scripts import ToolScript


def make(
    name: str, models: str, signature: str, body: str, *tests: str, head: str = "", helpers: str = "", **more: Any
) -> ToolScript:
    """A script. `signature` is `In -> Out: docstring`."""
    types, _, docstring = signature.partition(": ")
    given, _, returned = types.partition(" -> ")
    start = "from pydantic import BaseModel, Field\n\n" + dedent(models).strip() + "\n\n"
    function = f'async def {name}(args: {given}) -> {returned}:\n    """{docstring}"""\n'
    code = (
        (dedent(head).strip() + "\n\n" if head else "")
        + start
        + (dedent(helpers).strip() + "\n\n" if helpers else "")
        + function
        + indent(dedent(body).strip(), "    ")
        + "\n"
    )
    return ToolScript(
        name=name,
        interface=start + function + "    ...\n",
        tests=tuple(dedent(test).strip() for test in tests),
        codes=(code,),
        **more,
    )


EVERYDAY: dict[str, tuple[str, ToolScript, dict[str, Any], dict[str, Any]]] = {}
"""By name: the request, the script, arguments of a call, and what its result contains."""


def add(request: str, tool: ToolScript, args: dict[str, Any], expected: dict[str, Any]) -> None:
    """Adds a tool."""
    EVERYDAY[tool.name] = (request, tool, args, expected)


add(
    "Convert fuel consumption between miles per US gallon and litres per 100 km.",
    make(
        "convert_fuel",
        """
        class FuelInput(BaseModel):
            value: float = Field(gt=0, description="the consumption")
            unit: str = Field(description="its unit: mpg or l/100km")

        class FuelOutput(BaseModel):
            value: float | None = None
            unit: str = ""
            error: str | None = None
        """,
        "FuelInput -> FuelOutput: Convert fuel consumption between mpg (US) and l/100km. Returns the value in the other "
        "unit, or an error.",
        """
        if args.value <= 0:
            return FuelOutput(error="the value must be positive")
        unit = args.unit.strip().lower().replace(" ", "")
        if unit == "mpg":
            return FuelOutput(value=FACTOR / args.value, unit="l/100km")
        if unit == "l/100km":
            return FuelOutput(value=FACTOR / args.value, unit="mpg")
        return FuelOutput(error="unknown unit: use mpg or l/100km")
        """,
        'r = await convert_fuel(FuelInput(value=23.5214583, unit="mpg"))\nassert abs(r.value - 10) < 1e-6\n'
        'assert r.unit == "l/100km"',
        'r = await convert_fuel(FuelInput(value=10, unit="L/100 km"))\nassert abs(r.value - 23.5214583) < 1e-4',
        'r = await convert_fuel(FuelInput(value=1, unit="furlong"))\nassert r.error is not None',
        helpers="FACTOR = 235.214583",
    ),
    {"value": 23.5214583, "unit": "mpg"},
    {"unit": "l/100km"},
)
add(
    "Check whether a card number is valid (Luhn).",
    make(
        "check_luhn",
        """
        class LuhnInput(BaseModel):
            number: str = Field(max_length=40)

        class LuhnOutput(BaseModel):
            valid: bool
        """,
        "LuhnInput -> LuhnOutput: Check the check digit of a card number by the Luhn algorithm. Spaces and dashes are "
        "ignored.",
        """
        digits = [int(c) for c in args.number if c.isdigit()]
        others = [c for c in args.number if not (c.isdigit() or c in " -")]
        if len(digits) < 2 or others:
            return LuhnOutput(valid=False)
        total = 0
        for position, digit in enumerate(reversed(digits)):
            if position % 2 == 1:
                digit = digit * 2 - 9 if digit > 4 else digit * 2
            total += digit
        return LuhnOutput(valid=total % 10 == 0)
        """,
        'assert (await check_luhn(LuhnInput(number="4539 1488 0343 6467"))).valid is True',
        'assert (await check_luhn(LuhnInput(number="8273-1232-7352-0569"))).valid is False',
        'assert (await check_luhn(LuhnInput(number="79927398713"))).valid',
        'assert not (await check_luhn(LuhnInput(number="7992739871x"))).valid',
    ),
    {"number": "79927398713"},
    {"valid": True},
)
add(
    "Parse our log lines: `2026-03-01|ERR|billing|text`.",
    make(
        "parse_log_lines",
        """
        class LogInput(BaseModel):
            text: str

        class LogLine(BaseModel):
            date: str
            level: str
            service: str
            message: str

        class LogOutput(BaseModel):
            lines: list[LogLine] = Field(default_factory=list)
            skipped: int = 0
        """,
        "LogInput -> LogOutput: Parse log lines of the form DATE|LEVEL|SERVICE|MESSAGE. A message may contain bars.",
        """
        lines = []
        skipped = 0
        for raw in args.text.splitlines():
            parts = raw.split("|", 3)
            if len(parts) == 4 and parts[1] in LEVELS:
                lines.append(LogLine(date=parts[0], level=parts[1], service=parts[2], message=parts[3].strip()))
            elif raw.strip():
                skipped += 1
        return LogOutput(lines=lines, skipped=skipped)
        """,
        'r = await parse_log_lines(LogInput(text="2026-03-01|ERR|billing|no | route\\n\\nnonsense"))\n'
        'assert [l.message for l in r.lines] == ["no | route"]\nassert r.skipped == 1',
        'r = await parse_log_lines(LogInput(text=""))\nassert r.lines == []',
        'r = await parse_log_lines(LogInput(text="2026-03-01|WARN|a|b"))\n'
        'assert r.lines == [LogLine(date="2026-03-01", level="WARN", service="a", message="b")]',
        helpers='LEVELS = ("DEBUG", "INFO", "WARN", "ERR")',
    ),
    {"text": "2026-03-01|ERR|billing|lost"},
    {"skipped": 0},
)
add(
    "When is a payment due? 30 days after the invoice, moved to Monday if that is a weekend.",
    make(
        "due_date",
        """
        class DueInput(BaseModel):
            invoice_date: str = Field(description="ISO date")
            days: int = Field(default=30, ge=0, le=365)

        class DueOutput(BaseModel):
            due: str = ""
            error: str | None = None
        """,
        "DueInput -> DueOutput: Compute the due date of an invoice; a weekend moves it to Monday.",
        """
        try:
            start = date.fromisoformat(args.invoice_date.strip())
        except ValueError:
            return DueOutput(error="the date must be written like 2026-03-01")
        due = start + timedelta(days=args.days)
        while due.weekday() >= 5:
            due = due + timedelta(days=1)
        return DueOutput(due=due.isoformat())
        """,
        'assert (await due_date(DueInput(invoice_date="2026-03-02"))).due == "2026-04-01"',
        'assert (await due_date(DueInput(invoice_date="2026-01-01", days=2))).due == "2026-01-05"',
        'assert (await due_date(DueInput(invoice_date="tomorrow"))).error is not None',
        head="from datetime import date, timedelta",
    ),
    {"invoice_date": "2026-03-02"},
    {"due": "2026-04-01"},
)
add(
    "Look up the stock of an article on our server.",
    make(
        "look_up_stock",
        """
        class StockInput(BaseModel):
            article: str = Field(max_length=20)

        class StockOutput(BaseModel):
            pieces: int | None = None
            error: str | None = None
        """,
        "StockInput -> StockOutput: Look up how many pieces of an article are in stock.",
        """
        if not args.article.isalnum():
            return StockOutput(error="an article number has only letters and digits")
        try:
            text = await http_get("http://HOST/stock/" + args.article)
            return StockOutput(pieces=int(json.loads(text)["pieces"]))
        except RuntimeError as error:
            return StockOutput(error=str(error))
        except (ValueError, KeyError):
            return StockOutput(error="the server's answer cannot be read")
        """,
        'record("http_get", "http://HOST/stock/A1", answer=\'{"pieces": 7}\')\n'
        'assert (await look_up_stock(StockInput(article="A1"))).pieces == 7',
        'record("http_get", "http://HOST/stock/A2", answer=RuntimeError("HTTP status 404"))\n'
        'r = await look_up_stock(StockInput(article="A2"))\nassert r.pieces is None and r.error is not None',
        'record("http_get", "http://HOST/stock/A3", answer="<html>")\n'
        'assert (await look_up_stock(StockInput(article="A3"))).error is not None',
        'assert (await look_up_stock(StockInput(article="../x"))).error is not None',
        head="import json",
        permissions={"hosts": ["HOST"]},
    ),
    {"article": "A1"},
    {"pieces": 7},
)
add(
    "Summarise a CSV of sales by region.",
    make(
        "sum_by_region",
        """
        class SalesInput(BaseModel):
            csv_text: str

        class SalesOutput(BaseModel):
            totals: dict[str, float] = Field(default_factory=dict)
            error: str | None = None
        """,
        "SalesInput -> SalesOutput: Add up the column `amount` of a CSV by the column `region`.",
        """
        reader = csv.DictReader(io.StringIO(args.csv_text))
        if not {"region", "amount"} <= set(reader.fieldnames or []):
            return SalesOutput(error="the columns region and amount are needed")
        totals = {}
        for row in reader:
            try:
                totals[row["region"]] = totals.get(row["region"], 0.0) + float(row["amount"])
            except (TypeError, ValueError):
                return SalesOutput(error=f"line {reader.line_num}: the amount is no number")
        return SalesOutput(totals=totals)
        """,
        'r = await sum_by_region(SalesInput(csv_text="region,amount\\nnorth,1.5\\nsouth,2\\nnorth,3"))\n'
        'assert r.totals == {"north": 4.5, "south": 2.0}',
        'assert (await sum_by_region(SalesInput(csv_text="a,b\\n1,2"))).error is not None',
        'assert (await sum_by_region(SalesInput(csv_text=\'region,amount\\n"a, b",1\'))).totals == {"a, b": 1.0}',
        head="import csv\nimport io",
    ),
    {"csv_text": "region,amount\nnorth,1.5\nnorth,3"},
    {"totals": {"north": 4.5}},
)
add(
    "Roman numerals to numbers.",
    make(
        "read_roman",
        """
        class RomanInput(BaseModel):
            numeral: str = Field(max_length=20)

        class RomanOutput(BaseModel):
            number: int | None = None
            error: str | None = None
        """,
        "RomanInput -> RomanOutput: Convert a Roman numeral (1 to 3999) to a number.",
        """
        text = args.numeral.strip().upper()
        if not text or any(c not in VALUES for c in text):
            return RomanOutput(error="use the letters I, V, X, L, C, D and M")
        total = 0
        for here, after in zip(text, text[1:] + " "):
            value = VALUES[here]
            total += -value if after in VALUES and VALUES[after] > value else value
        if write(total) != text:
            return RomanOutput(error="this is no well-formed numeral")
        return RomanOutput(number=total)
        """,
        'assert (await read_roman(RomanInput(numeral="MCMXCIV"))).number == 1994',
        'assert (await read_roman(RomanInput(numeral="iv"))).number == 4',
        'assert (await read_roman(RomanInput(numeral="IIII"))).error is not None',
        'assert (await read_roman(RomanInput(numeral="12"))).error is not None',
        helpers="""
        VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
        STEPS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
                 (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]

        def write(number: int) -> str:
            text = ""
            for value, letters in STEPS:
                while number >= value:
                    text += letters
                    number -= value
            return text
        """,
    ),
    {"numeral": "MMXXVI"},
    {"number": 2026},
)
add(
    "Check an IBAN.",
    make(
        "check_iban",
        """
        class IbanInput(BaseModel):
            iban: str = Field(max_length=50)

        class IbanOutput(BaseModel):
            valid: bool
            country: str = ""
        """,
        "IbanInput -> IbanOutput: Check the check digits of an IBAN (ISO 13616, mod 97).",
        """
        text = re.sub(r"\\s", "", args.iban).upper()
        if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}", text):
            return IbanOutput(valid=False)
        moved = text[4:] + text[:4]
        digits = "".join(str(int(c, 36)) for c in moved)
        return IbanOutput(valid=int(digits) % 97 == 1, country=text[:2])
        """,
        'r = await check_iban(IbanInput(iban="GB82 WEST 1234 5698 7654 32"))\nassert r.valid\nassert r.country == "GB"',
        'assert not (await check_iban(IbanInput(iban="GB82 WEST 1234 5698 7654 33"))).valid',
        'assert (await check_iban(IbanInput(iban="DE89370400440532013000"))).valid',
        'assert not (await check_iban(IbanInput(iban="hello"))).valid',
        head="import re",
    ),
    {"iban": "DE89370400440532013000"},
    {"valid": True, "country": "DE"},
)
add(
    "Make URL slugs from titles.",
    make(
        "make_slug",
        """
        class SlugInput(BaseModel):
            title: str

        class SlugOutput(BaseModel):
            slug: str
        """,
        "SlugInput -> SlugOutput: Turn a title into a URL slug: lower case, ASCII letters, digits and dashes.",
        """
        plain = unicodedata.normalize("NFKD", args.title)
        kept = "".join(c if c.isascii() and c.isalnum() else " " for c in plain if not unicodedata.combining(c))
        return SlugOutput(slug="-".join(kept.lower().split()))
        """,
        'assert (await make_slug(SlugInput(title="Größe & Café!"))).slug == "gro-e-cafe"',
        'assert (await make_slug(SlugInput(title="  Two   Words "))).slug == "two-words"',
        'assert (await make_slug(SlugInput(title="???"))).slug == ""',
        head="import unicodedata",
    ),
    {"title": "Hello, World"},
    {"slug": "hello-world"},
)
add(
    "The most frequent words of a text.",
    make(
        "count_words",
        """
        class WordsInput(BaseModel):
            text: str
            most: int = Field(default=3, ge=1, le=50)

        class WordCount(BaseModel):
            word: str
            count: int

        class WordsOutput(BaseModel):
            words: list[WordCount] = Field(default_factory=list)
        """,
        "WordsInput -> WordsOutput: Count the words of a text and return the most frequent ones, then by alphabet.",
        """
        counts = Counter(re.findall(r"[a-z']+", args.text.lower()))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return WordsOutput(words=[WordCount(word=w, count=n) for w, n in ranked[: args.most]])
        """,
        'r = await count_words(WordsInput(text="The cat and the dog and the cow", most=2))\n'
        'assert [(w.word, w.count) for w in r.words] == [("the", 3), ("and", 2)]',
        'assert (await count_words(WordsInput(text="... 12"))).words == []',
        'assert [w.word for w in (await count_words(WordsInput(text="b a"))).words] == ["a", "b"]',
        head="import re\nfrom collections import Counter",
    ),
    {"text": "a b a"},
    {"words": [{"word": "a", "count": 2}, {"word": "b", "count": 1}]},
)
add(
    "Round money the way our bookkeeping does: half up, two digits.",
    make(
        "round_money",
        """
        class MoneyInput(BaseModel):
            amount: str = Field(description="such as 2.675")

        class MoneyOutput(BaseModel):
            rounded: str = ""
            error: str | None = None
        """,
        "MoneyInput -> MoneyOutput: Round an amount to two digits, half up.",
        """
        try:
            amount = Decimal(args.amount.strip())
        except (InvalidOperation, ValueError):
            return MoneyOutput(error="this is no amount")
        if not amount.is_finite():
            return MoneyOutput(error="this is no amount")
        return MoneyOutput(rounded=str(amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)))
        """,
        'assert (await round_money(MoneyInput(amount="2.675"))).rounded == "2.68"',
        'assert (await round_money(MoneyInput(amount="-1.005"))).rounded == "-1.01"',
        'assert (await round_money(MoneyInput(amount="3"))).rounded == "3.00"',
        'assert (await round_money(MoneyInput(amount="NaN"))).error is not None',
        'assert (await round_money(MoneyInput(amount="x"))).error is not None',
        head="from decimal import ROUND_HALF_UP, Decimal, InvalidOperation",
    ),
    {"amount": "1.125"},
    {"rounded": "1.13"},
)
add(
    "Compare semantic versions.",
    make(
        "compare_versions",
        """
        from typing import Literal

        class VersionsInput(BaseModel):
            first: str
            second: str

        class VersionsOutput(BaseModel):
            order: Literal["older", "same", "newer", "unknown"]
        """,
        "VersionsInput -> VersionsOutput: Say whether the first version is older, the same or newer than the second.",
        """
        first, second = read(args.first), read(args.second)
        if first is None or second is None:
            return VersionsOutput(order="unknown")
        if first == second:
            return VersionsOutput(order="same")
        return VersionsOutput(order="older" if first < second else "newer")
        """,
        'assert (await compare_versions(VersionsInput(first="1.9.0", second="1.10.0"))).order == "older"',
        'assert (await compare_versions(VersionsInput(first="v2.0.0", second="2.0.0"))).order == "same"',
        'assert (await compare_versions(VersionsInput(first="1.0.0", second="1.0.0-rc1"))).order == "newer"',
        'assert (await compare_versions(VersionsInput(first="x", second="1.0.0"))).order == "unknown"',
        helpers="""
        def read(text: str):
            core, _, pre = text.strip().removeprefix("v").partition("-")
            parts = core.split(".")
            if len(parts) != 3 or not all(part.isdigit() for part in parts):
                return None
            return ([int(part) for part in parts], pre == "", pre)
        """,
    ),
    {"first": "1.9.0", "second": "1.10.0"},
    {"order": "older"},
)
add(
    "Cut a fixed-width record of our old system into fields.",
    make(
        "parse_record",
        """
        class RecordInput(BaseModel):
            record: str

        class RecordOutput(BaseModel):
            customer: str = ""
            amount_cents: int = 0
            paid: bool = False
            error: str | None = None
        """,
        "RecordInput -> RecordOutput: Parse a record of 20 characters: customer (8), amount in cents (11), paid (Y or "
        "N).",
        """
        if len(args.record) != 20:
            return RecordOutput(error=f"a record has 20 characters, this has {len(args.record)}")
        customer, amount, paid = args.record[:8].strip(), args.record[8:19].strip(), args.record[19]
        if not amount.isdigit() or paid not in "YN":
            return RecordOutput(error="the amount or the mark is wrong")
        return RecordOutput(customer=customer, amount_cents=int(amount), paid=paid == "Y")
        """,
        'r = await parse_record(RecordInput(record="ACME    " + "00000012345" + "Y"))\n'
        'assert (r.customer, r.amount_cents, r.paid) == ("ACME", 12345, True)',
        'assert (await parse_record(RecordInput(record="short"))).error is not None',
        'assert (await parse_record(RecordInput(record="ACME    " + "0000001234x" + "N"))).error is not None',
    ),
    {"record": "ACME    00000000100N"},
    {"customer": "ACME", "amount_cents": 100, "paid": False},
)
add(
    "Flatten nested settings written as JSON into dotted names.",
    make(
        "flatten_json",
        """
        class FlattenInput(BaseModel):
            text: str

        class FlattenOutput(BaseModel):
            values: dict[str, str] = Field(default_factory=dict)
            error: str | None = None
        """,
        "FlattenInput -> FlattenOutput: Flatten a JSON object into dotted names; values become text.",
        """
        try:
            data = json.loads(args.text)
        except ValueError as error:
            return FlattenOutput(error=str(error))
        if not isinstance(data, dict):
            return FlattenOutput(error="an object is expected")
        return FlattenOutput(values=dict(walk(data, "")))
        """,
        'r = await flatten_json(FlattenInput(text=\'{"a": {"b": 1, "c": [true, null]}, "d": "x"}\'))\n'
        'assert r.values == {"a.b": "1", "a.c.0": "true", "a.c.1": "null", "d": "x"}',
        'assert (await flatten_json(FlattenInput(text="[1]"))).error is not None',
        'assert (await flatten_json(FlattenInput(text="{"))).error is not None',
        head="import json",
        helpers="""
        def walk(value, path):
            if isinstance(value, dict):
                for key, item in value.items():
                    yield from walk(item, f"{path}.{key}" if path else key)
            elif isinstance(value, list):
                for number, item in enumerate(value):
                    yield from walk(item, f"{path}.{number}")
            else:
                yield path, value if isinstance(value, str) else json.dumps(value)
        """,
    ),
    {"text": '{"a": {"b": 1}}'},
    {"values": {"a.b": "1"}},
)
add(
    "Mean, median and spread of measurements, without outliers.",
    make(
        "summarise_measurements",
        """
        class MeasurementsInput(BaseModel):
            values: list[float] = Field(min_length=1, max_length=10000)

        class MeasurementsOutput(BaseModel):
            mean: float = 0.0
            median: float = 0.0
            spread: float = 0.0
            left_out: int = 0
            error: str | None = None
        """,
        "MeasurementsInput -> MeasurementsOutput: Summarise measurements; leaves out those further than 3 standard "
        "deviations from the mean.",
        """
        if not args.values:
            return MeasurementsOutput(error="there are no values")
        mean, deviation = statistics.fmean(args.values), statistics.pstdev(args.values)
        kept = [v for v in args.values if deviation == 0 or abs(v - mean) <= 3 * deviation]
        return MeasurementsOutput(
            mean=statistics.fmean(kept),
            median=statistics.median(kept),
            spread=statistics.pstdev(kept),
            left_out=len(args.values) - len(kept),
        )
        """,
        "r = await summarise_measurements(MeasurementsInput(values=[1, 2, 3]))\n"
        "assert (r.mean, r.median, r.left_out) == (2, 2, 0)",
        "r = await summarise_measurements(MeasurementsInput(values=[1.0] * 20 + [100.0]))\n"
        "assert r.left_out == 1\nassert r.mean == 1",
        "assert (await summarise_measurements(MeasurementsInput(values=[]))).error is not None",
        head="import statistics",
    ),
    {"values": [1, 2, 6]},
    {"mean": 3.0, "median": 2.0},
)
add(
    "Read the items of an invoice in XML.",
    make(
        "read_invoice",
        """
        class InvoiceInput(BaseModel):
            xml: str

        class Item(BaseModel):
            name: str
            cents: int

        class InvoiceOutput(BaseModel):
            items: list[Item] = Field(default_factory=list)
            total_cents: int = 0
            error: str | None = None
        """,
        "InvoiceInput -> InvoiceOutput: Read the items (name, price) of an invoice in XML, and add them up.",
        """
        try:
            root = fromstring(args.xml)
        except ParseError as error:
            return InvoiceOutput(error=f"this is no XML: {error}")
        items = []
        for node in root.iter("item"):
            try:
                cents = round(float(node.findtext("price", "")) * 100)
            except ValueError:
                return InvoiceOutput(error="a price is no number")
            items.append(Item(name=node.get("name", ""), cents=cents))
        return InvoiceOutput(items=items, total_cents=sum(item.cents for item in items))
        """,
        'r = await read_invoice(InvoiceInput(xml=\'<i><item name="a"><price>1.50</price></item>'
        '<item name="b"><price>2</price></item></i>\'))\n'
        'assert r.total_cents == 350\nassert [i.name for i in r.items] == ["a", "b"]',
        'assert (await read_invoice(InvoiceInput(xml="<i>"))).error is not None',
        "assert (await read_invoice(InvoiceInput(xml='<i><item><price>x</price></item></i>'))).error is not None",
        head="from xml.etree.ElementTree import ParseError, fromstring",
    ),
    {"xml": '<i><item name="a"><price>1.50</price></item></i>'},
    {"total_cents": 150},
)
add(
    "Check digit of EAN-13 barcodes.",
    make(
        "ean_check_digit",
        """
        class EanInput(BaseModel):
            digits: str = Field(description="the first 12 digits")

        class EanOutput(BaseModel):
            ean: str = ""
            error: str | None = None
        """,
        "EanInput -> EanOutput: Add the check digit to the first 12 digits of an EAN-13.",
        """
        if len(args.digits) != 12 or not args.digits.isdigit():
            return EanOutput(error="12 digits are needed")
        total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(args.digits))
        return EanOutput(ean=args.digits + str(-total % 10))
        """,
        'assert (await ean_check_digit(EanInput(digits="400638133393"))).ean == "4006381333931"',
        'assert (await ean_check_digit(EanInput(digits="978020137962"))).ean == "9780201379624"',
        'assert (await ean_check_digit(EanInput(digits="12"))).error is not None',
    ),
    {"digits": "400638133393"},
    {"ean": "4006381333931"},
)
add(
    "Mask phone numbers in a text but keep the last two digits.",
    make(
        "mask_numbers",
        """
        class MaskInput(BaseModel):
            text: str

        class MaskOutput(BaseModel):
            text: str
            masked: int
        """,
        "MaskInput -> MaskOutput: Mask numbers of at least seven digits, but for their last two digits.",
        """
        found = 0

        def mask(match):
            nonlocal found
            found += 1
            digits = match.group(0)
            return "*" * (len(digits) - 2) + digits[-2:]

        text = re.sub(r"[0-9]{7,}", mask, args.text)
        return MaskOutput(text=text, masked=found)
        """,
        'r = await mask_numbers(MaskInput(text="call 0401234567 or 112"))\n'
        'assert r.text == "call ********67 or 112"\nassert r.masked == 1',
        'assert (await mask_numbers(MaskInput(text="none"))).text == "none"',
        'assert (await mask_numbers(MaskInput(text="1234567 7654321"))).masked == 2',
        head="import re",
    ),
    {"text": "call 0401234567"},
    {"masked": 1},
)
add(
    "Work out a discounted price with our calculator tool.",
    make(
        "discounted_price",
        """
        class DiscountInput(BaseModel):
            price: float = Field(ge=0)
            percent: float = Field(ge=0, le=100)

        class DiscountOutput(BaseModel):
            price: float | None = None
            error: str | None = None
        """,
        "DiscountInput -> DiscountOutput: Compute a price after a discount in percent.",
        """
        if not (args.price >= 0 and 0 <= args.percent <= 100):
            return DiscountOutput(error="the price or the discount is out of range")
        try:
            result = await call_tool("calculator", {"expression": f"{args.price} * (100 - {args.percent}) / 100"})
        except RuntimeError as error:
            return DiscountOutput(error=str(error))
        return DiscountOutput(price=float(result["value"]))
        """,
        'record("call_tool", "calculator", {"expression": "80.0 * (100 - 25.0) / 100"}, answer={"value": 60})\n'
        "r = await discounted_price(DiscountInput(price=80.0, percent=25.0))\nassert r.price == 60.0",
        "assert (await discounted_price(DiscountInput(price=1.0, percent=101.0))).error is not None",
        'record("call_tool", "calculator", {"expression": "1.0 * (100 - 2.0) / 100"}, answer=RuntimeError("down"))\n'
        "assert (await discounted_price(DiscountInput(price=1.0, percent=2.0))).error is not None",
        permissions={"tools": ["calculator"]},
    ),
    {"price": 80, "percent": 25},
    {"price": 60.0},
)
add(
    "Read a setting from our notes: lines like `key = value`.",
    make(
        "read_setting",
        """
        class SettingInput(BaseModel):
            file: str
            key: str

        class SettingOutput(BaseModel):
            value: str | None = None
            error: str | None = None
        """,
        "SettingInput -> SettingOutput: Read the value of a key from a file of lines `key = value` in the folder notes.",
        """
        if "/" in args.file or args.file.startswith("."):
            return SettingOutput(error="name a file of the folder notes")
        try:
            text = await read_file("notes/" + args.file)
        except RuntimeError as error:
            return SettingOutput(error=str(error))
        for line in text.splitlines():
            key, mark, value = line.partition("=")
            if mark and key.strip() == args.key:
                return SettingOutput(value=value.strip())
        return SettingOutput(error="there is no such key")
        """,
        'record("read_file", "notes/a.txt", answer="x = 1\\ncolour = red = warm\\n")\n'
        'assert (await read_setting(SettingInput(file="a.txt", key="colour"))).value == "red = warm"',
        'record("read_file", "notes/a.txt", answer="x = 1")\n'
        'assert (await read_setting(SettingInput(file="a.txt", key="y"))).error is not None',
        'assert (await read_setting(SettingInput(file="../secret", key="y"))).error is not None',
        permissions={"folders": ["notes"]},
    ),
    {"file": "a.txt", "key": "colour"},
    {"value": "red"},
)
