"""The page of a report: what it holds, what it never does, and its filters in a real browser."""

import re
import string
from html.parser import HTMLParser
from itertools import count
from urllib.parse import urlencode

import pytest
from maps_rag.optimize.reporting import report

from tests.optimize.browser import dump_dom
from tests.optimize.run_dirs import choice, failed, line, trajectory, write_run


class Page(HTMLParser):
    """The tags and texts of a page, and its questions by (method, verdict, set), each with whether it is hidden."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.questions, self.gold = [], [], [], []
        self.feed(html)
        self.text = " ".join(self.texts)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append((tag, values))
        if tag == "details" and values.get("class") == "question":
            key = (values["data-method"], values["data-answer"], values["data-set"])
            self.questions.append((key, "hidden" in values))

    def handle_data(self, text):
        self.texts.append(text)


def questions(*lines, **more):
    """Trajectories of the lines that did not fail."""
    return [trajectory(entry, **more) for entry in lines if "error" not in entry]


@pytest.fixture
def page(tmp_path):
    """Write the lines as a run and return its page."""

    numbers = count()

    def write(lines, trajectories=None, about=None, **options):
        found = questions(*lines) if trajectories is None else trajectories
        run = write_run(tmp_path / f"run-{next(numbers)}", lines, found, **about or {})
        report([run], html=tmp_path / "page.html", **options)
        return (tmp_path / "page.html").read_text()

    return write


def test_a_question_shows_each_round_with_all_that_happened_and_gold_marked(page):
    entry = line(failures={"refine: reply empty": 2})
    shown = page([entry], questions(entry, supporting=["p1"]))
    text = Page(shown).text
    for part in ("Who was first?", "the year", "the first one", "first programmer", "Ada was first.", "Ada it is."):
        assert part in text
    assert "refine: reply empty x 2" in text
    for title, gold in (("Ada Lovelace", True), ("Charles Babbage", False)):
        [before] = re.findall(rf"<dd([^>]*)><details><summary>((?:(?!<dd).)*)<b>{title}</b>", shown)
        assert ('class="gold"' in before[0], "gold" in before[1]) == (gold, gold)


def test_gold_passages_that_a_set_gives_as_title_and_text_are_marked_too(page):
    entry = line()
    titles = (("Charles Babbage", "Babbage  built engines."), ("Ada Lovelace", "Other."))
    given = [{"title": title, "text": text} for title, text in titles]
    shown = page([entry], questions(entry, supporting=given))
    marked = r'class="gold"[^>]*><details><summary><span class="mark">gold</span> <b>(.*?)</b>'
    assert re.findall(marked, shown) == ["Charles Babbage"]


def test_the_page_stands_alone_and_is_whole_without_its_script(page):
    shown = page([line(), line("vanilla", right=False)])
    found = Page(shown)
    assert [tag for tag, _ in found.tags].count("script") == 1
    links = [value for _, attributes in found.tags for name, value in attributes.items() if name in ("src", "href")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", shown)
    assert [hidden for _, hidden in found.questions] == [False, False]
    assert ("form", {"id": "filters", "hidden": None}) in found.tags


def test_figures_name_every_method_in_text_and_tell_the_front_by_more_than_colour(page):
    shown = page([line(), line("vanilla", right=False, tokens=2000)])
    scatter, *_ = re.findall(r"<svg.*?</svg>", shown, re.DOTALL)
    assert ">maps 100.0 (front)</text>" in scatter
    assert ">vanilla 0.0</text>" in scatter
    assert re.findall(r'<circle[^>]*fill="([^"]*)"', scatter) == ["#0b4f8a", "#fff"]


OWN = "document.documentElement.dataset.owned=1"
PAYLOADS = [
    *(f"<script>{OWN}</script>", f"</script><script>{OWN}</script>"),
    *(f'"><img src=x onerror={OWN}>', f"'><svg onload={OWN}>", f'" autofocus onfocus="{OWN}'),
    *(
        "</style><b>bold</b>",
        "<!-- comment",
        "]]>",
        "{{ 7*7 }}{% raw %}",
        "&lt;i&gt;",
        "</details></section>",
        "</title>",
    ),
]


def spiked(payload):
    """A run in which every field that others write holds the payload, each with a letter of its own before it."""
    used = [f"{letter}{payload}" for letter in string.ascii_lowercase]
    names = iter(used)
    entry = line(next(names), next(names), next(names))
    entry |= {"answer": next(names), "gold": [next(names)], "stop_reason": next(names), "failures": {next(names): 1}}
    entry["cost"]["by_role"] = {next(names): {"calls": 1}}
    error = failed(entry["method"], entry["dataset"], next(names), error=next(names))
    rounds = [
        {
            **{"index": 1, "known": [next(names)], "missing": next(names), "directions": [next(names)]},
            "searches": [{"query": next(names), "ids": [], "scores": []}],
            "passages": [{"id": next(names), "title": next(names), "text": next(names), "score": 0.5}],
            "knowledge": [{"text": next(names), "passage_id": None}],
            **{"reasoning_state": next(names), "complete": True},
        }
    ]
    found = trajectory(entry, question=next(names), rounds=rounds, supporting=["p1"])
    about = {"model": next(names), "versions": {next(names): "1"}}
    return [entry, error], [found], about, used[: used.index(next(names))]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_others_wrote_is_text_in_every_field(page, payload):
    def read(payload):
        lines, found, about, used = spiked(payload)
        return Page(page(lines, found, about)), used

    plain, _ = read("")
    hostile, used = read(payload)
    assert [(tag, list(attributes)) for tag, attributes in hostile.tags] == [
        (tag, list(attributes)) for tag, attributes in plain.tags
    ]
    assert len(used) == 22
    assert [name for name in used if not any(name in text for text in hostile.texts)] == []


def test_what_cannot_stand_in_a_page_is_replaced(page):
    entry = line(answer="a\x00b\ud800c\x1bd")
    shown = page([entry])
    assert "a\ufffdb\ufffdc\ufffdd" in Page(shown).text


def test_texts_of_multiple_choice_sets_are_not_shown_whatever_the_files_hold(page):
    entry = choice(answer="B) the secret option", gold=["the secret option"])
    error = failed(dataset="gpqa_diamond", name="c2", error="LMError: the secret question was refused")
    shown = page([entry, error], questions(entry, question="the secret question", supporting=["the secret id"]))
    assert "secret" not in shown
    text = Page(shown).text
    for secret in ("Ada", "the year", "the first one", "first programmer"):
        assert secret not in text
    assert "directions: 1, sub-queries: 1, passages: 2, pieces of knowledge: 1" in text
    assert "LMError" in text


def test_rounds_without_text_are_counted(page):
    entry = choice()
    searches = [{"query": "", "ids": [], "scores": [0.5]}] * 3
    rounds = [{"index": 1, "searches": searches, "passages": [], "complete": True}]
    text = Page(page([entry], questions(entry, rounds=rounds))).text
    assert "sub-queries: 3" in text
    assert "B" in text


def many(n=40, methods=("maps", "vanilla")):
    return [line(method, name=f"q{place}", right=place % 2) for place in range(n) for method in methods]


def chosen(html):
    """The questions of a page as (method, verdict, id)."""
    shown = r'data-method="(\w+)" data-answer="(\w+)".*?<dt>question</dt>\s*<dd dir="auto">(\w+), run'
    return re.findall(shown, html, re.DOTALL)


def test_the_sample_is_capped_and_takes_as_many_right_as_wrong_of_each_method(page):
    found = Page(page(many(), sample=12)).questions
    assert len(found) == 12
    counts = {key: sum(other == key for other, _ in found) for key, _ in found}
    assert set(counts.values()) == {3}


def test_the_sample_is_the_same_whatever_the_order_of_the_journal_and_another_for_another_seed(page):
    drawn = ((many(), 0), (many()[::-1], 0), (many(), 1))
    forth, back, other = (chosen(page(lines, sample=12, seed=seed)) for lines, seed in drawn)
    assert len(forth) == 12
    assert sorted(forth) == sorted(back)
    assert sorted(forth) != sorted(other)


def test_the_sample_prefers_the_same_questions_for_all_methods(page):
    by_method = {}
    for method, _, name in chosen(page(many(), sample=12)):
        by_method.setdefault(method, set()).add(name)
    assert by_method["maps"] == by_method["vanilla"]


def test_a_sample_of_none_is_a_page_of_tables(page):
    shown = page(many(4), sample=0)
    assert Page(shown).questions == []
    assert "Cover-EM, %" in shown


def test_a_question_whose_trajectory_is_missing_says_so(page):
    assert "Its trajectory is not in the run directory." in Page(page([line()], [])).text


def test_of_several_trajectories_of_one_question_the_last_counts(page):
    entry = line()
    found = [trajectory(entry, question="before the kill"), trajectory(entry, question="after the kill")]
    text = Page(page([entry], found)).text
    assert "after the kill" in text
    assert "before the kill" not in text


def test_a_trajectory_is_found_whatever_the_order_of_its_fields(page):
    entry = line()
    content = trajectory(entry, question="turned around")
    assert "turned around" in page([entry], [dict(reversed(content.items()))])


SMALL = [line("maps"), line("maps", name="q2", right=False), line("vanilla", "musique", right=False)]


@pytest.fixture
def browse(page, tmp_path):
    """Open the page of some lines in a browser and return what is there after its script has run."""

    def open_page(lines, fragment="", trajectories=None, about=None):
        page(lines, trajectories, about)
        return Page(dump_dom(tmp_path / "page.html", tmp_path, fragment))

    return open_page


@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("", [("maps", "right", "hotpotqa"), ("maps", "wrong", "hotpotqa"), ("vanilla", "wrong", "musique")]),
        ("#method=maps", [("maps", "right", "hotpotqa"), ("maps", "wrong", "hotpotqa")]),
        ("#method=maps&answer=wrong", [("maps", "wrong", "hotpotqa")]),
        ("#set=musique", [("vanilla", "wrong", "musique")]),
        ("#set=musique&method=maps", []),
    ],
)
def test_the_filters_hide_what_was_not_asked_for(browse, fragment, shown):
    found = browse(SMALL, fragment)
    assert [key for key, hidden in found.questions if not hidden] == shown
    assert len(found.questions) == 3
    assert f"{len(shown)} of 3 shown" in found.text
    assert ("form", {"id": "filters"}) in found.tags


def test_an_unknown_choice_in_the_address_and_a_link_to_a_heading_hide_nothing(browse):
    for fragment in ("#method=mapz", "#part-1"):
        assert [hidden for _, hidden in browse(SMALL, fragment).questions] == [False] * 3


def test_hostile_text_runs_nothing_in_a_browser_and_can_be_filtered_by(browse):
    lines, found, about, _ = spiked("".join(PAYLOADS))
    fragment = "#" + urlencode({"method": lines[0]["method"]})
    shown = browse([*lines, line("other", right=False)], fragment, found, about)
    assert shown.tags[0] == ("html", {"lang": "en"})  # a payload that runs marks it
    assert [hidden for _, hidden in shown.questions] == [False, True]


def test_a_script_that_slipped_in_would_not_run(page, tmp_path):
    shown = page(SMALL)
    script = f"<script>{OWN}</script><img src=x onerror={OWN}>"
    (tmp_path / "page.html").write_text(shown.replace("<h1>", f"{script}<h1>", 1))
    found = Page(dump_dom(tmp_path / "page.html", tmp_path))
    assert found.tags[0] == ("html", {"lang": "en"})
    assert [tag for tag, _ in found.tags].count("script") == 2
    assert "3 of 3 shown" in found.text
