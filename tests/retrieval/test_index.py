import json
import shutil

import numpy as np
import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import E5Retriever, Index, build_index, verify_index


def changed_manifest(index, **changes):
    path = index / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refusal(index, encoder, match):
    with pytest.raises(UserError, match=match) as caught:
        E5Retriever(index, encoder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 10, 100, -1])
def test_a_truncated_index_file_is_refused(index, stub, keep):
    path = index / "index.faiss"
    path.write_bytes(path.read_bytes()[:keep])
    refusal(index, stub, r"index\.faiss is cut off: \d+ bytes, the manifest says \d+; build the index again")


@pytest.mark.parametrize("keep", [0, 10, 100, -1])
def test_a_truncated_index_file_with_its_size_in_the_manifest_is_refused(index, stub, keep):
    path = index / "index.faiss"
    path.write_bytes(path.read_bytes()[:keep])
    files = json.loads((index / "manifest.json").read_text())["files"]
    files["index.faiss"]["size"] = path.stat().st_size
    changed_manifest(index, files=files)
    refusal(index, stub, "build the index again")


def test_a_file_of_the_right_size_that_is_no_index_is_refused(index, stub):
    path = index / "index.faiss"
    path.write_bytes(b"\0" * path.stat().st_size)
    refusal(index, stub, "is not a FAISS index")


def test_truncated_passages_are_refused(index, stub):
    path = index / "passages" / "data-00000.arrow"
    path.write_bytes(path.read_bytes()[:-50])
    refusal(index, stub, r"data-00000\.arrow is cut off")


def test_a_missing_file_is_refused(index, stub):
    (index / "index.faiss").unlink()
    refusal(index, stub, r"index\.faiss is missing")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"count": 31}, "has vectors 30, the manifest says 31"),
        ({"dimension": 16}, "has dimension 32, the manifest says 16"),
        ({"encoder": "other"}, "was built with the encoder 'other', but 'stub' was given"),
        ({"prefixes": {"query": "", "passage": ""}}, "was built with the prefixes"),
        ({"format_version": 99}, "format version 99, this release reads 1"),
        ({"files": {}}, "does not name index.faiss"),
        ({"files": "none"}, "is damaged"),
        ({"surprise": 1}, "is damaged"),
        ({"libraries": None}, "is damaged .*libraries must be dict, not NoneType.*; build the index again"),
        ({"libraries": ["faiss"]}, "libraries must be dict, not list"),
        ({"libraries": {"torch": 2}}, "torch must be str, not int"),
        ({"metric": None}, "metric must be str, not NoneType"),
        ({"encoder": 3}, "encoder must be str, not int"),
        ({"count": 30.0}, "count must be int, not float"),
        ({"dimension": "32"}, "dimension must be int, not str"),
        ({"format_version": True}, "format_version must be int, not bool"),
        ({"prefixes": {"query": None, "passage": ""}}, "query must be str, not NoneType"),
        ({"prefixes": ["query: ", "passage: "]}, "prefixes must be dict, not list"),
        ({"files": {"index.faiss": {"size": 1.5, "sha256": ""}}}, "size must be int, not float"),
        ({"files": {"index.faiss": None}}, "is damaged"),
    ],
)
def test_a_manifest_that_does_not_match_is_refused(index, stub, changes, match):
    changed_manifest(index, **changes)
    refusal(index, stub, match)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "\x00", "[" * 100_000, '{"a": %s}' % ("1" * 5000)])
def test_a_manifest_that_is_not_one_is_refused(index, stub, content):
    (index / "manifest.json").write_text(content)
    refusal(index, stub, r"manifest\.json")


def test_the_files_of_another_index_are_refused(tmp_path, index, stub, documents, make_stub):
    build_index(documents[:20], tmp_path / "other", make_stub())
    shutil.copy(tmp_path / "other" / "index.faiss", index / "index.faiss")
    refusal(index, stub, "build the index again")


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_directory_that_is_no_index_is_refused(tmp_path, stub, place):
    refusal(tmp_path / place, stub, r"is not an index: .* maps-rag index build")


def test_an_encoder_of_another_name_is_refused(index, make_stub):
    refusal(index, make_stub("other"), "was built with the encoder 'stub', but 'other' was given")


def test_verifying_finds_a_changed_byte_that_opening_does_not(index, stub):
    path = index / "index.faiss"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    E5Retriever(index, stub)
    with pytest.raises(UserError, match=r"index\.faiss has changed since the index was built"):
        verify_index(index)


def test_verifying_reports_all_bytes(index):
    seen = []
    manifest = verify_index(index, progress=lambda done, total: seen.append((done, total)))
    total = sum(record.size for record in manifest.files.values())
    assert seen[-1] == (total, total)


def test_fewer_passages_than_k_are_all_found(index, stub):
    opened = Index(index)
    scores, rows = opened.search(stub.encode_queries(["a"]), 50)
    assert sorted(rows[0].tolist()) == list(range(30))
    assert np.all(np.diff(scores[0]) <= 0)


def test_the_fingerprint_follows_the_content(tmp_path, documents, make_stub):
    made = [
        build_index(documents[:count], tmp_path / name, make_stub()).fingerprint
        for name, count in (("a", 30), ("b", 30), ("c", 29))
    ]
    assert made[0] == made[1] != made[2]
    assert Index(tmp_path / "a").manifest.fingerprint == made[0]


def test_a_lock_that_an_earlier_release_left_in_an_index_is_harmless(index, stub):
    (index / "lock").touch()
    assert len(E5Retriever(index, stub)) == verify_index(index).count == 30
