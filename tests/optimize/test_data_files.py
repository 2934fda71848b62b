"""Rows come out of every file format one at a time, each with its place."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.optimize.data import json_array
from maps_rag.optimize.data.files import read_rows
from maps_rag.programs.errors import UserError

from tests.optimize.data_rows import write_lines, write_table

ROWS = [{"a": "x, y\n[{", "b": [1, {"c": 'é 漢 \\ "'}]}, {}, {"a": None}]


def values(path):
    return [value for _, value in read_rows(path)]


def failure(path):
    with pytest.raises(UserError) as caught:
        values(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_array_gives_its_objects(tmp_path, indent):
    path = tmp_path / "rows.json"
    path.write_text("\ufeff " + json.dumps(ROWS, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")
    assert values(path) == ROWS


def test_json_lines_may_have_blank_lines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\ufeff" + "\r\n\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    assert list(read_rows(path)) == [(f"{path}, line {line}", row) for line, row in zip((1, 3, 5), ROWS, strict=True)]


@pytest.mark.parametrize("name", ["rows.json.gz", "rows.jsonl.gz"])
def test_a_gzipped_file_is_read_alike(tmp_path, name):
    path = tmp_path / name
    text = json.dumps(ROWS) if name == "rows.json.gz" else "\n".join(map(json.dumps, ROWS))
    path.write_bytes(gzip.compress(text.encode()))
    assert values(path) == ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.tsv", "\t")])
def test_a_table_keeps_line_breaks_in_its_cells_and_names_the_first_line_of_a_row(tmp_path, name, delimiter):
    rows = [{"a": 'one\n"two"', "b": "x,y\tz"}, {"a": "three", "b": ""}]
    path = write_table(tmp_path / name, rows, delimiter)
    assert list(read_rows(path)) == [(f"{path}, line 2", rows[0]), (f"{path}, line 4", rows[1])]


def test_a_parquet_file_gives_plain_values(tmp_path):
    import pyarrow
    from pyarrow import parquet

    rows = [{"id": str(at), "nested": [{"title": "A", "sent": ["x", "y"]}]} for at in range(300)]
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = list(read_rows(path))
    assert [value for _, value in found] == rows
    assert found[299][0] == f"{path}, row 300"


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.dictionaries(
            st.text(max_size=3),
            st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=5),
            max_size=3,
        ),
        max_size=6,
    ),
    indent=st.sampled_from([None, 0, 2]),
    chunk=st.integers(1, 40),
    escape=st.booleans(),
)
def test_a_json_array_is_the_same_wherever_it_is_cut_into_chunks(tmp_path_factory, rows, indent, chunk, escape):
    path = tmp_path_factory.mktemp("array") / "rows.json"
    text = json.dumps(rows, indent=indent, ensure_ascii=escape)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "CHUNK", chunk)
        assert values(path) == rows


def test_an_array_is_read_only_as_far_as_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(json_array, "CHUNK", 64)
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"a": at} for at in range(100)])[:-1] + ", broken")
    rows = read_rows(path)
    assert [next(rows)[1] for _ in range(50)] == [{"a": at} for at in range(50)]
    with pytest.raises(UserError, match=r"row 101 \(line 1\)"):
        list(rows)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[\n{"a": 1},\n{"a": }\n]', ", row 2 (line 3): not a JSON object (Expecting value, line 3)"),
        ('[{"a": 1},\n{"a":\n "b]', ", row 2 (line 2): not a JSON object (Unterminated string starting at, line 3)"),
        ('[\n{"a": 1} {"a": 2}]', ", line 2, after row 1: not a JSON array (',' or ']' expected, not '{')"),
        ('[{"a": 1}', ", line 1, after row 1: not a JSON array (',' or ']' expected, not the end of the file)"),
        ("[]\nmore", ", line 2: the JSON array has ended, but more follows"),
    ],
)
def test_a_broken_array_names_row_and_line(tmp_path, text, place):
    path = tmp_path / "rows.json"
    path.write_text(text)
    assert failure(path) == place


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": 1\n')
    assert failure(path).startswith(", line 2: not a JSON object (")


@pytest.mark.parametrize("start", ["", "["])
def test_text_that_is_not_utf8_names_its_line(tmp_path, start):
    path = tmp_path / "rows.json"
    path.write_bytes(start.encode() + b'{"a": 1}' + (b"," if start else b"") + b'\n{"a": "\xff"}' + b"]" * bool(start))
    assert failure(path).startswith(", line 2: not UTF-8 (")


def test_a_table_row_with_too_few_cells_names_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n"1\n2"\n')
    assert failure(path) == ", line 3: 1 fields, but the header has 2"


def test_an_open_quote_is_no_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"2\n')
    assert "not the table that its suffix says" in failure(path)


@pytest.mark.parametrize(("name", "what"), [("t.json.gz", "gzip file is broken"), ("t.parquet", "not a Parquet file")])
def test_a_file_that_is_not_what_its_suffix_says_is_an_error_of_the_user(tmp_path, name, what):
    path = tmp_path / name
    path.write_bytes(random.Random(0).randbytes(200))
    assert what in failure(path)


def test_json_that_is_too_deep_is_an_error_of_the_user(tmp_path):
    deep = '{"a": ' + "[" * 100_000
    lines, array = tmp_path / "rows.jsonl", tmp_path / "rows.json"
    lines.write_text(deep)
    array.write_text("[" + deep)
    for path in (lines, array):
        assert "too deep" in failure(path)


def test_lines_are_read_one_at_a_time(tmp_path):
    path = write_lines(tmp_path / "rows.jsonl", ROWS)
    with path.open("a") as file:
        file.write("broken")
    assert [next(rows)[1] for rows in [read_rows(path)] for _ in ROWS] == ROWS
