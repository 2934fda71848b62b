import pytest
from maps_rag.metrics.normalize import canonical, contains, find, normalize, tokens, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel\tTower!", "eiffel tower"),
        ("a U.S. state", "us state"),
        ("Spider-Man", "spiderman"),
        ("1914\u20131918", "19141918"),
        ("O\u2019Brien", "obrien"),
        ("O\u00b4Brien", "obrien"),
        ("\u201cHeroes\u201d", "heroes"),
        ("\u00abLe Monde\u00bb", "le monde"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("\uff21\uff22\uff23", "abc"),
        ("Beyonce\u0301", "beyonc\u00e9"),
        ("theatre", "theatre"),
        ("\U0001f1ea\U0001f1ec", "\U0001f1ea\U0001f1ec"),
        ("The A", ""),
        ("---", ""),
        ("\u2014", ""),
        ("", ""),
    ],
)
def test_normalises_by_hand_worked_cases(text, expected):
    assert normalize(text) == expected


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("Spider-Man: Homecoming", {"punctuation_to_space": True}, ["spider", "man", "homecoming"]),
        ("O'Brien", {"punctuation_to_space": True}, ["o", "brien"]),
        ("Beyonc\u00e9", {"strip_diacritics": True}, ["beyonce"]),
        ("Malm\u00f6", {"strip_diacritics": True}, ["malmo"]),
        ("\u00c0 Paris", {"strip_diacritics": True}, ["a", "paris"]),
        ("Jean-Fran\u00e7ois", {"strip_diacritics": True, "punctuation_to_space": True}, ["jean", "francois"]),
    ],
)
def test_options_change_only_what_they_name(text, options, expected):
    assert tokens(text, **options) == expected
    assert tokens(text) != expected


def test_canonical_keeps_punctuation_and_articles():
    assert canonical("  The \u201cA\u201d \u2013  B ") == 'the "a" - b'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Paris?</think>London", "London"),
        ("<think>a</think>Rome <THINK>b</THINK>", "Rome"),
        ("<thinking>Paris\n\n</thinking>\nLondon", "London"),
        ("Paris or so\n</think>\nLondon", "London"),
        ("London <think>or is it Par", "London"),
        ("<think>Paris, surely", ""),
        ("<think>a<think>b</think>c</think>Oslo", "Oslo"),
        ("I think so", "I think so"),
        ("<think> the <think> tag </think>Oslo", "Oslo"),
    ],
)
def test_visible_text_has_no_think_block(text, expected):
    assert visible(text) == expected


def test_find_gives_the_first_contiguous_run():
    assert find(["b", "a", "b", "c", "b", "c"], ["b", "c"]) == 2
    assert find(["a", "x", "b"], ["a", "b"]) == -1
    assert find(["a", "b", "a"], ["a"], 1) == 2
    assert find(["a"], []) == -1
    assert not contains(["a"], ["a", "b"])
