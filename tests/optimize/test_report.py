"""A report of run directories: what its tables say."""

from itertools import pairwise

import pytest
from maps_rag.optimize.reporting import report
from maps_rag.optimize.reporting.markdown import one_line
from maps_rag.optimize.reporting.paper import ABLATION, MAIN
from maps_rag.programs.errors import UserError
from markdown_it import MarkdownIt

from tests.optimize.run_dirs import choice, failed, line, write_run


def tables(markdown):
    """The tables of a report by their captions: a list of rows, each a dict by column."""
    found = {}
    for part in markdown.split("\n**")[1:]:
        caption, _, rest = part.partition("**\n\n")
        rows = [[cell.strip() for cell in entry.strip("|").split("|")] for entry in rest.split("\n\n")[0].splitlines()]
        found[caption] = [dict(zip(rows[0], cells, strict=True)) for cells in rows[2:]]
    return found


def table(markdown, start):
    """The one table whose caption begins so."""
    found = [rows for caption, rows in tables(markdown).items() if caption.startswith(start)]
    assert len(found) == 1, list(tables(markdown))
    return found[0]


def answered(method, rights, dataset="hotpotqa", **more):
    """Lines of one method: a question for each right (1) or wrong (0)."""
    return [line(method, dataset, f"q{place:03}", right=right, **more) for place, right in enumerate(rights)]


@pytest.fixture
def made(tmp_path):
    """Write the lines as a run and report it as Markdown."""
    return lambda lines, **options: report([write_run(tmp_path / "run", lines)], **options).markdown()


def test_scores_stand_by_set_with_n_intervals_and_a_macro_mean(made):
    [maps] = table(made([*answered("maps", [1, 1, 1, 0]), *answered("maps", [1, 0], "musique")]), "Cover-EM, %")
    assert maps["hotpotqa, n 4"].startswith("75.0 [")
    assert maps["musique, n 2"] == "50.0 [0.0, 100.0]"
    assert maps["macro mean"].startswith("62.5 [")


def test_a_method_that_lacks_a_set_has_no_macro_mean(made):
    lines = [*answered("maps", [1, 0]), *answered("maps", [1], "musique"), *answered("vanilla", [1, 0])]
    maps, vanilla = table(made(lines), "Cover-EM, %")
    assert maps["macro mean"].startswith("75.0")
    assert (vanilla["musique, n 1"], vanilla["macro mean"]) == ("-", "-")


def test_a_question_with_several_runs_counts_once_with_its_mean(made):
    lines = [line(name="q1", run=run, right=run == 0) for run in range(4)] + [line(name="q2", run=0)]
    [maps] = table(made(lines), "Cover-EM, %")
    assert maps["hotpotqa, n 2"].startswith("62.5 [")


def test_the_spread_between_runs_is_their_standard_deviation_in_points(made):
    rights = ([1, 1, 0, 0], [1, 1, 1, 0])
    lines = [entry for run, right in enumerate(rights) for entry in answered("maps", right, run=run)]
    [maps] = table(made(lines), "Cover-EM, %")
    assert maps["runs (spread)"] == "2 (17.7)"  # of 0.50 and 0.75: 0.25 / sqrt(2)


def test_failed_questions_count_as_wrong_and_are_listed_with_their_error(made):
    shown = made([line(name="q1"), failed(name="q2", error="LMError: no reply")])
    [maps] = table(shown, "Cover-EM, %")
    assert maps["hotpotqa, n 2"].startswith("50.0")
    [entry] = table(shown, "Failed questions, 1 in all")
    assert (entry["method"], entry["question"], entry["error"]) == ("maps", "q2", "LMError: no reply")
    assert table(shown, "Companions")[0]["substring"] == "50.0"
    assert table(shown, "Cost per question, hotpotqa")[0]["answered"] == "1"


def test_a_report_without_failures_says_so(made):
    assert "No question failed." in made([line()])


def test_the_reader_is_told_of_few_questions_and_of_intervals_that_overlap(made):
    shown = made([*answered("maps", [1, 1, 0, 1]), *answered("vanilla", [0, 1, 1, 0])])
    assert "Few questions: hotpotqa (n 4," in shown
    assert "hotpotqa: the highest score is that of maps; its interval overlaps with that of vanilla" in shown


def test_the_reader_is_not_told_so_where_it_is_not_so(made):
    shown = made([*answered("maps", [1] * 290 + [0] * 10), *answered("vanilla", [0] * 290 + [1] * 10)])
    assert "Few questions" not in shown
    assert "overlaps" not in shown


def test_the_reader_is_told_where_methods_had_other_questions(made):
    told = "not all methods were given the same questions"
    other = [line("vanilla", name="q9")]
    assert told in made([*answered("maps", [1, 0]), *other])


def test_methods_are_compared_with_maps_on_shared_questions_and_p_values_adjusted(made):
    # 8 discordant questions, all in favour of maps: McNemar's exact p is 2 / 2**8; twice that for two comparisons.
    lines = [*answered("maps", [1] * 10), *answered("vanilla", [0] * 8 + [1] * 2), *answered("direct", [1] * 9)]
    vanilla, direct = table(made(lines), "Differences")
    assert vanilla["methods"] == "maps vs vanilla"
    assert (vanilla["n"], vanilla["p"], vanilla["p (Holm)"], vanilla["differs"]) == ("10", "0.008", "0.016", "yes")
    assert vanilla["difference"].startswith("+80.0 [")
    assert (direct["n"], direct["difference"], direct["p"], direct["differs"]) == (
        "9",
        "+0.0 [+0.0, +0.0]",
        "1.000",
        "no",
    )


def test_methods_are_compared_with_another_or_all_with_all(tmp_path):
    lines = [entry for method in ("maps", "vanilla", "direct") for entry in answered(method, [1, 0])]
    run = write_run(tmp_path / "run", lines)
    pairs = [row["methods"] for row in table(report([run], against="direct").markdown(), "Differences")]
    assert pairs == ["direct vs maps", "direct vs vanilla"]
    assert len(table(report([run], against="all").markdown(), "Differences")) == 3
    with pytest.raises(UserError, match=r"no method 'mapz' in these runs\. There are: all, maps, vanilla, direct"):
        report([run], against="mapz")


def test_scores_that_are_means_of_runs_are_compared_by_the_bootstrap(made):
    lines = [
        line(method, name=f"q{n}", run=run, right=(n + run) % 2)
        for method in ("maps", "vanilla")
        for n in range(4)
        for run in (0, 1)
    ]
    shown = made(lines)
    assert "p: the paired bootstrap (several runs);" in shown
    assert table(shown, "Differences")[0]["difference"] == "+0.0 [+0.0, +0.0]"


def test_one_method_alone_is_compared_with_nothing(made):
    assert "Paired comparison" not in made([line()])


def test_the_ablation_shows_differences_to_maps(made):
    shown = made([*answered("maps", [1, 1, 1, 0]), *answered("maps-no-parallelism", [1, 0, 0, 0])])
    full, ablated = table(shown, "Ablation: Cover-EM, %")
    assert (full["variant"], full["hotpotqa"]) == ("MAPS", "75.0")
    assert ablated["variant"] == "no parallelism"
    assert ablated["hotpotqa"].startswith("25.0, -50.0 [")
    assert len(table(shown, "Paper: ablation")) == 4


def test_without_ablations_there_is_no_table_of_them(made):
    shown = made([*answered("maps", [1, 0]), *answered("vanilla", [1, 0])])
    assert "Ablation" not in shown
    assert "Paper: ablation" not in shown


def test_the_papers_numbers_stand_in_tables_of_their_own_with_model_n_and_metric(made):
    shown = made([*answered("maps", [1, 0], "2wikimultihopqa"), *answered("search-o1", [1, 0], "2wikimultihopqa")])
    caption = "Paper: Cover-EM, %, n = 1,000 a set, GPQA Diamond 198"
    rows = tables(shown)[caption]
    assert {row["model"] for row in rows} == {"Qwen3-32B", "Qwen3.6-35B-A3B"}
    assert [row["2Wiki"] for row in rows if row["method"] == "MAPS"] == ["59.4", "65.8"]
    ours = [rows for name, rows in tables(shown).items() if not name.startswith("Paper")]
    printed = {f"{score:.1f}" for *_, scores, _ in MAIN for score in scores} - {"50.0", "0.0", "100.0"}
    assert not printed & {cell for rows in ours for row in rows for cell in row.values()}


def test_sets_that_the_paper_does_not_have_get_no_table_of_it(made):
    assert "Paper:" not in made(answered("maps", [1, 0], "mini"))


def test_the_means_of_the_papers_table_fit_its_columns():
    for _, _, scores, mean in MAIN:
        assert mean == pytest.approx(sum(scores) / len(scores), abs=0.051)
    assert [mean for *_, mean in ABLATION] == [56.1, 51.9, 49.8, 50.1]


def test_companions_stand_beside_cover_em(made):
    [maps] = table(made([line(right=True), line(name="q2", right=False)]), "Companions of Cover-EM, hotpotqa")
    assert (maps["Cover-EM"], maps["EM"], maps["F1"], maps["answer words"]) == ("50.0", "0.0", "25.0", "4.00")


def test_multiple_choice_is_scored_by_accuracy_and_has_no_companions(made):
    shown = made([choice(name="c1"), choice(name="c2", right=False)])
    [maps] = table(shown, "Cover-EM, %")
    assert maps["gpqa_diamond (accuracy), n 2"].startswith("50.0")
    assert "Companions" not in shown


def test_scores_are_told_apart_by_type_and_hops(made):
    lines = [line(name="q1", type="bridge", hops=2), line(name="q2", right=False, type="comparison", hops=2)]
    shown = made(lines)
    rows = {row["type"]: row["score"][:5] for row in table(shown, "By type of question, hotpotqa")}
    assert rows == {"bridge": "100.0", "comparison": "0.0 ["}
    assert "By number of hops" not in shown


def test_costs_are_means_per_question_and_by_role(made):
    shown = made([line(name="q1", rounds=1, tokens=1000), line(name="q2", rounds=3, tokens=2000)])
    [maps] = table(shown, "Cost per question, hotpotqa")
    assert (maps["calls"], maps["requests"], maps["retries"], maps["retrievals"]) == ("8.00", "9.00", "1.00", "6.00")
    assert (maps["prompt tokens"], maps["completion tokens"], maps["seconds"]) == ("1,400", "100", "2.50")
    propose, answer = table(shown, "Cost per question by role")
    assert (propose["role"], propose["calls"], propose["prompt tokens"]) == ("propose", "3.00", "1,200")
    assert (answer["role"], answer["seconds"]) == ("answer", "1.50")


def test_methods_that_no_other_beats_at_no_more_cost_are_on_the_front(made):
    lines = [
        *answered("maps", [1, 1, 1, 0], tokens=3000),
        *answered("search-o1", [1, 1, 0, 0], tokens=4000),
        *answered("vanilla", [1, 0, 0, 0], tokens=500),
    ]
    rows = table(made(lines), "Accuracy against logical tokens per question, hotpotqa")
    assert [(row["method"], row["on the front"]) for row in rows] == [
        *[("vanilla", "yes"), ("maps", "yes"), ("search-o1", "no")],
    ]


def test_stopping_is_counted_in_rounds_and_in_the_papers_steps(made):
    rounds = [0, 1, 1, 1, 2, 3, 4, 9]
    lines = [
        line(name=f"q{n}", rounds=r, stop_reason="max_rounds" if r == 9 else "sufficient") for n, r in enumerate(rounds)
    ]
    shown = made(lines)
    [maps] = table(shown, "Questions that stop")
    assert [maps[name] for name in ("0 rounds (step 1)", "1 round (step 2)", "4 or more (step 5 or later)")] == [
        *("12.5", "37.5", "25.0"),
    ]
    assert (maps["mean rounds"], maps["mean steps"]) == ("2.62", "3.62")
    assert table(shown, "What ended the search")[0] == {"method": "maps", "max_rounds": "12.5", "sufficient": "87.5"}
    [paper] = [row for row in table(shown, "Paper: questions that stop") if row["method"] == "MAPS"]
    assert (paper["step 1"], paper["step 2"], paper["step 5 or later"]) == ("1.8", "62.7", "14.9")


def found(**more):
    """Evidence of a question of which half the gold was found, and of the answer all but the answer itself."""
    return {
        **{"gold_share": 0.5, "all_gold": False, "gold_share_by_round": [0.0, 0.5], "answer_in_passages": True},
        **{"answer_in_knowledge": True, "answer_in_state": False, "answer_given": False},
        **{"new_passages_per_direction": 1.5, "duplicate_sub_queries": 2, **more},
    }


def test_evidence_says_what_was_found_and_where_the_answer_was_lost(made):
    unkept = {"answer_in_knowledge": False, "answer_in_state": False}
    evidence = [
        found(answer_given=True),
        found(),
        found(**unkept),
        found(gold_share=1.0, all_gold=True, gold_share_by_round=[1.0], answer_in_passages=False, **unkept),
    ]
    shown = made([line(name=f"q{n}", evidence=item) for n, item in enumerate(evidence)])
    [lost] = table(shown, "Where the answer was lost")
    assert list(lost.values())[2:] == ["25.0"] * 4
    [means] = table(shown, "Evidence")
    assert (means["gold passages"], means["all gold"], means["repeated sub-queries"]) == ("62.5", "25.0", "2.00")
    [rounds] = table(shown, "Gold passages retrieved by the end of each round")
    assert (rounds["round 1"], rounds["round 2"]) == ("25.0", "62.5")


def test_a_method_without_knowledge_loses_the_answer_after_its_passages(made):
    evidence = found(answer_in_knowledge=None, answer_in_state=None)
    [lost] = table(made([line(evidence=evidence)]), "Where the answer was lost")
    assert lost["kept, not given"] == "100.0"


def test_runs_without_evidence_have_no_table_of_it(made):
    assert "Evidence" not in made([line()])


def test_mended_replies_are_counted_by_kind(made):
    lines = [line(name="q1", failures={"propose: reply cut off": 1}), line(name="q2")]
    assert table(made(lines), "Replies")[0]["propose: reply cut off"] == "50.0"


def test_what_was_run_names_model_sets_seed_and_settings(made):
    shown = made([line()])
    [run] = table(shown, "Runs")
    assert run["model"] == "local-small"
    assert "temperature=0.0" in run["model settings"]
    assert run["questions"] == "hotpotqa (n 1, seed 0, hash 1b)"
    assert table(shown, "Methods")[0]["settings"] == "passages=3"


def test_a_run_that_is_not_at_its_end_says_what_is_missing(tmp_path):
    sets = {"name": "hotpotqa", "hash": "1b", "n": 5, "seed": 0, "ids": list("abcde")}
    run = write_run(tmp_path / "run", [line(name="a"), line(name="b")], dataset=sets)
    assert "Not at its end: maps on hotpotqa: 2 of 5 questions." in report([run]).markdown()


HOSTILE = [
    *("a|b", "x\ny", "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "**b**", "`c`", "[l](javascript:1)"),
    *(
        "\x1b[31mred",
        "&lt;b&gt;",
        "a\\|b",
        "# heading",
        "1. item",
        "~~gone~~",
        "\u202egnirts",
        "\ud800",
        "_x_",
        "__x__",
    ),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_of_others_is_never_markup_in_the_tables(made, hostile):
    lines = [
        line(hostile, hostile, "q1", type=hostile, failures={hostile: 1}, stop_reason=hostile),
        line(hostile, hostile, "q2", type="other"),
        failed(hostile, hostile, hostile, error=hostile),
    ]
    shown = made(lines)
    assert not {"\x1b", "\u202e", "\ud800"} & set(shown)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(shown)
    assert {token.type for token in tokens} <= {
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "table_open", "table_close"),
        *("thead_open", "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close"),
        *("td_open", "td_close"),
    }
    parts = [part for token in tokens for part in token.children or ()]
    assert {part.type for part in parts} <= {"text", "text_special", "strong_open", "strong_close"}
    cells = [after.children for token, after in pairwise(tokens) if token.type in ("td_open", "th_open")]
    texts = ["".join(part.content for part in cell) for cell in cells]
    assert texts.count(one_line(hostile)) >= 9
    assert {part.type for cell in cells for part in cell} <= {"text", "text_special"}
