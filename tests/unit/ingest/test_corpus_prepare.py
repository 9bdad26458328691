"""Tables to documents: every format, every way a table can be broken, and nothing of it lost in silence."""

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.errors import BadRequestError
from gateway.features.documents.engine.ingest.corpus import CorpusDocument, Faults, read_corpus
from gateway.features.documents.engine.ingest.corpus_json import JSON_BYTES
from gateway.features.documents.engine.ingest.corpus_lines import RECORD_CHARS
from gateway.features.documents.engine.ingest.corpus_mapping import CorpusMapping, load_mapping
from gateway.features.documents.engine.ingest.corpus_prepare import PrepareReport, prepare

MAPPING = CorpusMapping(
    source="jira",
    doc_id="jira:{key}",
    title="{key}: {summary}",
    text=("Summary: {summary}", "Priority: {priority}"),
    metadata={"ticket": "{key}", "priority": "{priority}", "kind": "ticket"},
)
LATEST = MAPPING.model_validate(
    {
        "source": "log",
        "doc_id": "incident:{number}",
        "text": ["State: {state}"],
        "dedup": {"key": "number", "latest": "sys_mod_count"},
    }
)


def prepared(
    folder: Path, data: bytes | str, *, mapping: CorpusMapping = MAPPING, name: str = "rows.csv"
) -> tuple[PrepareReport, list[CorpusDocument]]:
    table = folder / name
    table.write_bytes(data.encode() if isinstance(data, str) else data)
    out = folder / "corpus.jsonl"
    report = prepare(mapping, [table], out)
    return report, documents(out) if report.documents else []


def documents(corpus: Path) -> list[CorpusDocument]:
    faults = Faults()
    found = [document for _, document in read_corpus(corpus, faults)] if corpus.exists() else []
    assert faults.count == 0
    return found


def faults_of(report: PrepareReport) -> list[str]:
    return [str(fault) for fault in report.faults.kept]


def test_a_row_becomes_a_document(tmp_path: Path) -> None:
    _, (document,) = prepared(tmp_path, "key,summary,priority\nMED-1,Grey pictures,Major\n")
    assert document.model_dump() == {
        "doc_id": "jira:MED-1",
        "source": "jira",
        "text": "Summary: Grey pictures\nPriority: Major",
        "metadata": {"title": "MED-1: Grey pictures", "ticket": "MED-1", "priority": "Major", "kind": "ticket"},
    }
    assert list(json.loads((tmp_path / "corpus.jsonl").read_text())) == ["doc_id", "source", "text", "metadata"]


def test_what_is_empty_is_left_out(tmp_path: Path) -> None:
    mapping = MAPPING.model_copy(update={"empty": ("?",)})
    _, (document,) = prepared(tmp_path, "key,summary,priority\nMED-1,Grey pictures,?\n", mapping=mapping)
    assert document.text == "Summary: Grey pictures"
    assert "priority" not in document.metadata


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_delimiter_and_encoding_are_found_out(tmp_path: Path, delimiter: str, encoding: str) -> None:
    rows = [
        ["key", "summary", "priority"],
        *([f"A-{n}", f"Größe ändern, nicht „klein“ {n}", "Major"] for n in range(9)),
    ]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    report, found = prepared(tmp_path, text.getvalue().encode(encoding))
    assert len(found) == 9
    assert found[3].metadata["title"] == "A-3: Größe ändern, nicht „klein“ 3"
    assert report.faults.count == 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_ending(tmp_path: Path, end: str) -> None:
    text = end.join(["key,summary,priority", 'A-1,"two\nlines",Major', "", "A-2,b,Minor", ""])
    report, found = prepared(tmp_path, text)
    assert [document.doc_id for document in found] == ["jira:A-1", "jira:A-2"]
    assert found[0].text == "Summary: two\nlines\nPriority: Major"
    assert report.faults.count == 0


def test_ragged_rows_are_told_with_their_lines_and_the_others_taken(tmp_path: Path) -> None:
    text = 'key,summary,priority\nA-1,"x\ny",Major\nA-2,b\nA-3,c,Minor,more\nA-4,d,Minor,,\nA-5,e,Major\n'
    report, found = prepared(tmp_path, text)
    assert [document.doc_id for document in found] == ["jira:A-1", "jira:A-4", "jira:A-5"]
    assert faults_of(report) == [
        "rows.csv line 4: 2 cells where the header has 3",
        "rows.csv line 5: 4 cells where the header has 3",
    ]


@pytest.mark.parametrize(
    ("bad", "line"),
    [('A-2,"open,Minor', 3), ('A-2,"open', 3), ('"A-2,b,Minor', 3), ('A-2,"open,Minor\nA-9,"x",Minor', 3)],
)
def test_a_quotation_that_is_never_closed_takes_no_other_row_with_it(tmp_path: Path, bad: str, line: int) -> None:
    after = "\n".join(f'A-{number},"good, text",Major' for number in range(20, 60))
    report, found = prepared(tmp_path, f"key,summary,priority\nA-1,a,Major\n{bad}\n{after}\n")
    ids = {document.doc_id for document in found}
    assert {f"jira:A-{number}" for number in (1, *range(20, 60))} <= ids
    assert "jira:A-2" not in ids
    assert faults_of(report)[0].startswith(f"rows.csv line {line}: ")


def test_a_quotation_without_an_end_in_a_long_file_ends_within_reach(tmp_path: Path) -> None:
    filler = "\n".join(f"A-{number},{'plain ' * 60},Major" for number in range(10, 10_010))
    report, found = prepared(tmp_path, f'key,summary,priority\nA-1,"open,Major\n{filler}\n')
    assert len(filler) > RECORD_CHARS
    assert len(found) == 10_000
    assert faults_of(report) == ["rows.csv line 2: a quotation that is not closed within 2,000,000 characters"]


def test_nul_bytes_are_dropped(tmp_path: Path) -> None:
    _, (document,) = prepared(tmp_path, b"key,summary,priority\nA-1,gr\x00ey,Ma\x00jor\n")
    assert document.text == "Summary: grey\nPriority: Major"


def test_a_cell_of_ten_megabytes_costs_its_own_row(tmp_path: Path) -> None:
    report, found = prepared(tmp_path, f"key,summary,priority\nA-1,{'x' * 10_000_000},Major\nA-2,b,Minor\n")
    assert [document.doc_id for document in found] == ["jira:A-2"]
    assert faults_of(report) == ["rows.csv line 2: longer than 4,000,000 characters"]


def test_a_cell_that_is_too_long_for_a_document_is_told(tmp_path: Path) -> None:
    report, found = prepared(tmp_path, f"key,summary,priority\nA-1,{'x' * 1_500_000},Major\nA-2,b,Minor\n")
    assert [document.doc_id for document in found] == ["jira:A-2"]
    assert "line 2: text: it must have at most 1000000 characters" in faults_of(report)[0]


def test_formulas_are_text(tmp_path: Path) -> None:
    _, (document,) = prepared(tmp_path, "key,summary,priority\nA-1,=cmd|'/C calc'!A0,+1\n")
    assert document.text == "Summary: =cmd|'/C calc'!A0\nPriority: +1"


def test_a_table_of_one_column(tmp_path: Path) -> None:
    mapping = CorpusMapping(source="s", doc_id="{name}", text=("{name}",))
    report, found = prepared(tmp_path, "name\nfirst\nsecond, with a comma\n", mapping=mapping)
    assert [document.text for document in found] == ["first"]
    assert faults_of(report) == ["rows.csv line 3: 2 cells where the header has 1"]


def test_rows_of_another_encoding_are_mended_and_counted(tmp_path: Path) -> None:
    rows = ["key,summary,priority", *(f"A-{number},schön é ü,Major" for number in range(5))]
    data = "\n".join(rows).encode() + b"\nA-9,caf\xe9,Minor\n"
    report, found = prepared(tmp_path, data)
    assert found[-1].metadata["title"] == "A-9: café"
    assert report.mended == 1
    assert "1 rows hold bytes of another encoding, read as Windows-1252" in report.notes


def test_duplicate_ids_are_told_and_the_first_is_kept(tmp_path: Path) -> None:
    report, (document,) = prepared(tmp_path, "key,summary,priority\nA-1,first,Major\nA-1,second,Major\n")
    assert document.text.startswith("Summary: first")
    assert report.duplicates == 1
    assert faults_of(report) == ["rows.csv line 3: the id 'jira:A-1' is that of rows.csv line 2, which is kept"]


def test_a_row_without_an_id_or_text_is_told(tmp_path: Path) -> None:
    report, found = prepared(tmp_path, "key,summary,priority\n,a,Major\nA-2,,\n")
    assert not found
    assert faults_of(report) == [
        "rows.csv line 2: it has no id: jira:{key} is empty",
        "rows.csv line 3: text: is empty",
    ]


def test_of_several_versions_the_latest_counts_by_its_number(tmp_path: Path) -> None:
    text = "number,state,sys_mod_count\nI1,New,0\nI2,New,9\nI1,Closed,10\nI1,Active,9\nI2,Closed,9\n,Lost,1\n"
    report, found = prepared(tmp_path, text, mapping=LATEST)
    assert [(document.doc_id, document.text) for document in found] == [
        ("incident:I1", "State: Closed"),
        ("incident:I2", "State: Closed"),
    ]
    assert (report.rows, report.superseded, report.documents) == (6, 3, 2)
    assert faults_of(report) == ["rows.csv line 7: it has no id: incident:{number} is empty"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 20)), min_size=1, max_size=30))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_order_the_highest_version_stays(tmp_path: Path, rows: list[tuple[str, int]]) -> None:
    lines = [f"{name},{at},{count}" for at, (name, count) in enumerate(rows)]
    _, found = prepared(tmp_path, "\n".join(["number,state,sys_mod_count", *lines]), mapping=LATEST)
    expected: dict[str, tuple[int, str]] = {}
    for at, (name, count) in enumerate(rows):
        if name not in expected or count >= expected[name][0]:
            expected[name] = (count, f"State: {at}")
    assert {document.doc_id: document.text for document in found} == {
        f"incident:{name}": text for name, (_, text) in expected.items()
    }


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\ufeff"), max_size=40)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=20))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_writer_of_csv_writes_is_read(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(
        [["key", "summary", "priority"], *([str(at), one, two] for at, (one, two) in enumerate(rows))]
    )
    mapping = MAPPING.model_copy(update={"text": ("[{summary}][{priority}]",), "delimiter": ",", "encoding": "utf-8"})
    report, found = prepared(tmp_path, text.getvalue(), mapping=mapping)
    expected = {
        f"jira:{at}": f"[{one.strip()}][{two.strip()}]" for at, (one, two) in enumerate(rows) if (one + two).strip()
    }
    assert {document.doc_id: document.text for document in found} == expected
    assert len(found) + report.faults.count == len(rows)


@given(st.binary(max_size=2_000))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_below_the_header_are_rows_or_faults(tmp_path: Path, data: bytes) -> None:
    report, found = prepared(tmp_path, b"key,summary,priority\nA-1,a,Major\n" + data)
    assert any(document.doc_id == "jira:A-1" for document in found) or report.faults.count
    assert report.documents == len(found)


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        '{"key": "A-1", "summary": "s", "priority": null}',
        "no json",
        "[1]",
        '{"key": "A-2", "summary": ["a", "b"]}',
    ]
    report, found = prepared(tmp_path, "\n".join(lines), name="rows.jsonl")
    assert [document.text for document in found] == ["Summary: s", "Summary: a, b"]
    assert [fault.line for fault in report.faults.kept] == [2, 3]


def test_json_with_rows_within_and_nested_fields(tmp_path: Path) -> None:
    mapping = CorpusMapping(
        source="jira", doc_id="{key}", text=("{fields.summary} ({fields.priority.name})",), rows="issues"
    )
    data = {"issues": [{"key": "A-1", "fields": {"summary": "s", "priority": {"name": "Major"}}}, 7]}
    report, (document,) = prepared(tmp_path, json.dumps(data), mapping=mapping, name="rows.json")
    assert document.text == "s (Major)"
    assert faults_of(report) == ["rows.json line 2: no JSON object"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("rows.csv", "", "is empty"),
        ("rows.csv", "\n\n", "is empty"),
        ("rows.csv", "key,summary\nA-1,b\n", "has no column 'priority'; its columns are: key, summary"),
        ("rows.json", "{", "not valid JSON"),
        ("rows.json", '{"issues": [], "total": 3}', "may name one of its lists: issues"),
        ("rows.json", "[" * 100_000, "not valid JSON"),
    ],
)
def test_a_file_that_is_none_says_so_and_leaves_the_corpus_as_it_was(
    tmp_path: Path, name: str, data: str, said: str
) -> None:
    (tmp_path / "corpus.jsonl").write_text("as it was")
    with pytest.raises(BadRequestError) as raised:
        prepared(tmp_path, data, name=name)
    assert said in raised.value.message
    assert (tmp_path / "corpus.jsonl").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", name]


def test_a_json_file_that_is_too_large_to_be_read_whole_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "rows.json"
    with table.open("wb") as file:
        file.write(b"[")
        file.truncate(JSON_BYTES + 1)
    with pytest.raises(BadRequestError, match="must be in lines"):
        prepare(MAPPING, [table], tmp_path / "corpus.jsonl")


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("key,summary,priority\nA-1,a,Major\n")
    with pytest.raises(BadRequestError, match=r"nowhere\.csv: cannot be read: No such file"):
        prepare(MAPPING, [tmp_path / "nowhere.csv"], tmp_path / "corpus.jsonl")
    with pytest.raises(BadRequestError, match="cannot be written: No such file"):
        prepare(MAPPING, [tmp_path / "rows.csv"], tmp_path / "no" / "corpus.jsonl")
    with pytest.raises(BadRequestError, match="is both an input and the output"):
        prepare(MAPPING, [tmp_path / "rows.csv"], tmp_path / "rows.csv")


def test_without_any_document_nothing_is_written(tmp_path: Path) -> None:
    report, found = prepared(tmp_path, "key,summary,priority\nA-1\n")
    assert (report.documents, found, (tmp_path / "corpus.jsonl").exists()) == (0, [], False)


def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    def rows(count: int) -> Iterator[str]:
        yield "key,summary,priority\n"
        for number in range(count):
            yield f"A-{number},{'some words of a ticket ' * 8}{number},Major\n"

    def peak(count: int) -> int:
        table = tmp_path / f"{count}.csv"
        with table.open("w") as file:
            file.writelines(rows(count))
        tracemalloc.start()
        try:
            assert prepare(MAPPING, [table], tmp_path / "corpus.jsonl").documents == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(10_000) < 1.2 * peak(1_000) + 300_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: [", "no valid YAML"),
        ("- a\n- b", "`key: value` lines"),
        ("source: jira\ndoc_id: '{key}'", "text: it is missing"),
        ("source: jira\ndoc_id: '{key}'\ntext: ['{a']", "text: expected '}'"),
        ("source: jira\ndoc_id: '{key!r}'\ntext: [a]", "doc_id: '{key!r}': write {column}"),
        ("source: jira\ndoc_id: '{}'\ntext: [a]", "doc_id: '{}': write {column}"),
        ("source: jira\ndoc_id: '{key}'\ntext: [a]\nmetadata: {pages: '{p}'}", "metadata: pages: the index has"),
        ("source: jira\ndoc_id: '{key}'\ntext: [a]\ncolour: red", "colour: there is no such field"),
        ("source: &a [*a]\ndoc_id: '{key}'\ntext: [a]", "source: write a text"),
    ],
)
def test_a_mapping_that_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(text)
    with pytest.raises(BadRequestError) as raised:
        load_mapping(path)
    assert said in raised.value.message
    assert "mapping.yaml" in raised.value.message


def test_a_mapping_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(MAPPING.model_dump_json())
    assert load_mapping(path) == MAPPING


def test_bad_lines_of_a_corpus_are_told_with_their_numbers_and_the_others_read(tmp_path: Path) -> None:
    good = CorpusDocument(doc_id="a", source="s", text="words").to_json_line()
    lines = [
        good,
        "{",
        '{"doc_id": "b"}',
        "",
        '{"doc_id": "c", "source": "s", "text": "  "}',
        good.replace('"a"', '"d"'),
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode() + b"\n\xff\n" + b"[" * 200_000 + b"\n")
    faults = Faults()
    assert [(line, one.doc_id) for line, one in read_corpus(path, faults)] == [(1, "a"), (6, "d")]
    assert [fault.line for fault in faults.kept] == [2, 3, 5, 7, 8]
    assert "source: it is missing" in str(faults.kept[1])
