import gzip
import json

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import Document, read_corpus
from maps_rag.programs.retrieval.corpora import split_contents

ROW = {"id": "a", "title": "T", "text": "x"}


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_reads_json_lines_of_title_and_text(tmp_path):
    path = written(tmp_path, "c.jsonl", json.dumps(ROW) + "\n\n" + '{"id": 7, "title": "", "text": "é"}')
    assert list(read_corpus(path)) == [Document("a", "T", "x"), Document("7", "", "é")]


def test_reads_gzipped_json_lines(tmp_path):
    path = written(tmp_path, "c.jsonl.gz", gzip.compress(json.dumps(ROW).encode()))
    assert list(read_corpus(path)) == [Document("a", "T", "x")]


def test_a_byte_order_mark_is_not_part_of_the_first_row(tmp_path):
    path = written(tmp_path, "c.jsonl", b"\xef\xbb\xbf" + json.dumps(ROW).encode())
    assert list(read_corpus(path)) == [Document("a", "T", "x")]


def test_reads_wiki18_contents(tmp_path):
    row = {"id": "12", "contents": '"""Heroes"" (song)"\nA song.\nBy Bowie.'}
    path = written(tmp_path, "wiki.jsonl", json.dumps(row))
    assert list(read_corpus(path)) == [Document("12", '"Heroes" (song)', "A song.\nBy Bowie.")]


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [("Plain\ntext", "Plain", "text"), ("no title", "", "no title"), ('"\nx', '"', "x"), ('""\nx', "", "x")],
)
def test_contents_without_a_quoted_title(contents, title, text):
    assert split_contents(contents) == (title, text)


@given(st.text().filter(lambda title: "\n" not in title), st.text())
def test_splitting_undoes_the_quoting_of_wiki18(title, text):
    quoted = title.replace('"', '""')
    assert split_contents(f'"{quoted}"\n{text}') == (title, text)


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_reads_dpr_passages(tmp_path, suffix):
    content = b'id\ttext\ttitle\n1\t"He said ""no"".\tTwice"\tA "b"\n2\tplain\tB\n'
    path = written(tmp_path, f"psgs{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    assert list(read_corpus(path)) == [Document("1", 'A "b"', 'He said "no".\tTwice'), Document("2", "B", "plain")]


def test_reads_a_saved_data_set(tmp_path):
    datasets.Dataset.from_list([ROW]).save_to_disk(str(tmp_path / "saved"))
    assert list(read_corpus(tmp_path / "saved")) == [Document("a", "T", "x")]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{broken", "not a JSON object"),
        ('"text"', "must be an object"),
        ('{"title": "T", "text": "x"}', "'id' is missing"),
        ('{"id": "b", "text": "x"}', "'title' is missing"),
        ('{"id": "b", "title": "T"}', "'text' is missing"),
        ('{"id": "b", "title": "T", "text": null}', "'text' is missing"),
        ('{"id": "b", "title": "T", "text": 3}', "'text' must be a string, not int"),
        ('{"id": true, "title": "T", "text": "x"}', "'id' must be a string or a whole number"),
        ('{"id": "b", "contents": ["x"]}', "'contents' must be a string"),
        (
            '{"id": "b", "title": "\\ud800x", "text": "x"}',
            r"'title' has half of a surrogate pair \(\\ud800 at character 1",
        ),
        ('{"id": "b\\udfff", "title": "T", "text": "x"}', "'id' has half of a surrogate pair"),
        ('{"id": "b", "contents": "x\\ud800"}', "'contents' has half of a surrogate pair"),
        ('{"id": %s, "title": "T", "text": "x"}' % ("1" * 5000), "a number has too many digits"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, named):
    path = written(tmp_path, "c.jsonl", json.dumps(ROW) + "\n" + line + "\n")
    with pytest.raises(UserError, match=named) as caught:
        list(read_corpus(path))
    assert f"{path}, line 2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path):
    path = written(tmp_path, "c.jsonl", json.dumps(ROW).encode() + b"\n" + b'{"id": "\xff"}\n')
    with pytest.raises(UserError, match=r"line 2: not UTF-8"):
        list(read_corpus(path))


def test_a_row_of_the_wrong_width_is_named_by_line(tmp_path):
    path = written(tmp_path, "c.tsv", "id\ttext\ttitle\n1\tx\tT\n2\tx\n")
    with pytest.raises(UserError, match=r"line 3: 2 fields, but the header has 3"):
        list(read_corpus(path))


def test_a_header_without_the_fields_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"line 1: the header must name id, text and title"):
        list(read_corpus(written(tmp_path, "c.tsv", "1\tx\tT\n")))


def test_a_cut_gzip_file_is_refused(tmp_path):
    whole = gzip.compress(b"\n".join(json.dumps(ROW | {"id": str(at)}).encode() for at in range(2000)))
    with pytest.raises(UserError, match="the gzip file is broken"):
        list(read_corpus(written(tmp_path, "c.jsonl.gz", whole[: len(whole) // 2])))


@pytest.mark.parametrize("name", ["missing.jsonl", "missing.tsv.gz", "/no/such/place", "a b"])
def test_a_corpus_that_is_not_there_is_refused(name):
    with pytest.raises(UserError, match="there is no corpus"):
        list(read_corpus(name))


def test_a_data_set_that_cannot_be_fetched_is_refused_in_one_line(monkeypatch):
    def unreachable(*args, **kwargs):
        raise ConnectionError("no route\nand a long story")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(UserError, match="corpus owner/name cannot be loaded: no route;") as caught:
        list(read_corpus("owner/name"))
    assert "\n" not in str(caught.value)


def test_a_data_set_that_breaks_off_is_refused_with_the_last_row(monkeypatch):
    def rows(*args, **kwargs):
        yield ROW
        raise ConnectionError("reset")

    monkeypatch.setattr(datasets, "load_dataset", rows)
    with pytest.raises(UserError, match="corpus owner/name cannot be read after row 1: reset"):
        list(read_corpus("owner/name"))
