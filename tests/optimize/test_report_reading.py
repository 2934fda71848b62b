"""How a report reads run directories: which lines count, what belongs together, what is refused, how much it keeps."""

import json
import subprocess
import sys
import tracemalloc

import pytest
from maps_rag import optimize
from maps_rag.optimize.reporting import report
from maps_rag.programs.errors import UserError

from tests.optimize.run_dirs import failed, line, manifest, trajectory, write_lines, write_run
from tests.optimize.test_report import answered, table


def scores(*runs):
    """The rows of the table of scores, by method."""
    return {row["method"]: row for row in table(report(runs).markdown(), "Cover-EM, %")}


def test_the_last_line_about_a_question_counts(tmp_path):
    lines = [failed(name="q1"), line(name="q2", right=False), line(name="q1", right=True)]
    run = write_run(tmp_path / "run", lines)
    assert scores(run)["maps"]["hotpotqa, n 2"].startswith("50.0")
    assert "No question failed." in report([run]).markdown()


@pytest.mark.parametrize("end", ['{"method": "maps", "dataset": "hot', "\x00\x00", "[1]\n", '"text"\n', "\xff\n"])
def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path, end):
    run = write_run(tmp_path / "run", [line()], [trajectory(line())])
    for name in ("journal.jsonl", "trajectories.jsonl"):
        with (run / name).open("ab") as file:
            file.write(end.encode("latin-1"))
    assert scores(run)["maps"]["hotpotqa, n 1"].startswith("100.0")
    assert "Who was first?" in report([run]).html()


def test_runs_of_other_sets_stand_in_one_table(tmp_path):
    one = write_run(tmp_path / "one", answered("maps", [1, 0]))
    two = write_run(tmp_path / "two", answered("maps", [1, 1], "musique"))
    [maps] = scores(one, two).values()
    assert (maps["hotpotqa, n 2"][:4], maps["musique, n 2"][:5]) == ("50.0", "100.0")


def test_a_run_of_the_same_settings_goes_on_with_another_ones_questions(tmp_path):
    one = write_run(tmp_path / "one", [line(name="q1")])
    two = write_run(tmp_path / "two", [line(name="q2", right=False)])
    assert scores(one, two)["maps"]["hotpotqa, n 2"].startswith("50.0")


def test_a_directory_that_is_given_twice_counts_once(tmp_path):
    run = write_run(tmp_path / "run", [line()])
    assert list(scores(run, tmp_path / "x" / ".." / "run")) == ["maps"]


def test_methods_of_one_name_are_told_apart_by_their_model(tmp_path):
    one = write_run(tmp_path / "one", [line(), line("vanilla")], model="small")
    two = write_run(tmp_path / "two", [line(right=False)], model="large")
    assert set(scores(one, two)) == {"maps (small)", "maps (large)", "vanilla"}
    html = report([one, two]).html()
    assert 'data-method="maps (large)" data-answer="wrong"' in html


def test_methods_of_one_name_and_model_are_told_apart_by_their_directory(tmp_path):
    settings = {"maps": {"program": "MAPS", "settings": {"passages": 5}, "prompts": "0a", "trained": False}}
    one = write_run(tmp_path / "k3", [line()])
    two = write_run(tmp_path / "k5", [line(right=False)], methods=settings)
    assert set(scores(one, two)) == {"maps (k3)", "maps (k5)"}


def test_the_trajectories_of_two_directories_are_not_mixed_up(tmp_path):
    runs = []
    for model in ("small", "large"):
        entry = line(answer=f"from {model}")
        found = [trajectory(entry, question=f"asked of {model}")]
        runs.append(write_run(tmp_path / model, [entry], found, model=model))
    html = report(runs).html()
    for model in ("small", "large"):
        entry = html.split(f'data-method="maps ({model})"', 1)[1].split("<details class=", 1)[0]
        assert f"asked of {model}" in entry
        assert f"from {model}" in entry


def refused(*runs, **options):
    with pytest.raises(UserError) as caught:
        report(runs, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_no_directory_is_refused():
    assert "No run directory was given" in refused()


def test_what_is_no_run_directory_is_refused_by_name(tmp_path):
    assert f"{tmp_path} is no run directory: it has no manifest.json" in refused(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"format": 2}'])
def test_a_manifest_that_is_none_of_ours_is_refused(tmp_path, content):
    run = write_run(tmp_path / "run", [line()])
    (run / "manifest.json").write_text(content)
    assert str(run / "manifest.json") in refused(run)


def test_a_run_that_has_not_begun_is_refused(tmp_path):
    run = write_run(tmp_path / "run", [line()])
    (run / "journal.jsonl").write_text("")
    assert "No question has ended yet" in refused(run)
    (run / "journal.jsonl").unlink()
    assert "has no journal.jsonl" in refused(run)


def test_scores_of_two_versions_of_the_metrics_are_refused(tmp_path):
    one = write_run(tmp_path / "one", [line()])
    two = write_run(tmp_path / "two", [line(name="q2")], metric_version="cover-em/2")
    message = refused(one, two)
    assert "cover-em/1" in message
    assert "cover-em/2" in message


def test_the_same_question_in_two_directories_of_the_same_settings_is_refused(tmp_path):
    one, two = (write_run(tmp_path / name, [line()]) for name in ("one", "two"))
    message = refused(one, two)
    assert f"{two / 'journal.jsonl'}:1: maps on hotpotqa, question q1, run 0, is in {one} too" in message


@pytest.mark.parametrize("field", ["method", "dataset", "id", "run", "scores"])
def test_a_line_without_a_field_is_refused_with_file_line_and_field(tmp_path, field):
    run = write_run(tmp_path / "run", [line()])
    entry = line(name="q2")
    del entry[field]
    write_lines(run / "journal.jsonl", [line(), entry])
    message = refused(run)
    assert f"{run / 'journal.jsonl'}:2" in message
    assert f"'{field}'" in message


def test_a_negative_sample_is_refused(tmp_path):
    assert "sample must be at least 0, but is -1" in refused(write_run(tmp_path / "run", [line()]), sample=-1)


def test_files_are_written_whole_and_into_new_folders(tmp_path):
    run = write_run(tmp_path / "run", [line()])
    made = report([run], markdown=tmp_path / "new" / "table.md", html=tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "table.md").read_text() == made.markdown()
    assert (tmp_path / "new" / "page.html").read_text() == made.html()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["page.html", "table.md"]


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    run = write_run(tmp_path / "run", [line()])
    assert f"{tmp_path} cannot be written" in refused(run, markdown=tmp_path)


def test_tables_alone_do_not_read_the_trajectories(tmp_path):
    run = write_run(tmp_path / "run", [line()])
    (run / "trajectories.jsonl").unlink()
    (run / "trajectories.jsonl").mkdir()
    assert "Cover-EM, %" in report([run]).markdown()


def test_memory_does_not_grow_with_the_trajectories(tmp_path):
    def peak(name, size):
        lines = [line(name=f"q{place}") for place in range(size)]
        run = write_run(tmp_path / name, lines)
        with (run / "trajectories.jsonl").open("w") as file:
            for entry in lines:
                content = trajectory(entry)
                content["trajectory"]["rounds"][0]["passages"][0]["text"] = "word " * 50_000
                file.write(json.dumps(content) + "\n")
        tracemalloc.start()
        try:
            report([run], html=tmp_path / "page.html", sample=2)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak("warm", 4)
    few, many = peak("few", 10), peak("many", 100)
    assert many < few + 2_000_000  # ninety more are 22 MB
    assert (tmp_path / "page.html").stat().st_size < 200_000


def test_the_report_is_public_and_loaded_only_when_it_is_used():
    assert optimize.report is report
    code = "import sys, maps_rag.optimize.mini; print([name for name in sys.modules if 'reporting' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'reports'"):
        optimize.reports  # noqa: B018


def test_the_helper_writes_a_manifest_as_the_runner_does():
    one = manifest([line()])
    assert one["dataset"]["ids"] == ["q1"]
    assert [record["name"] for record in manifest([line(), line(dataset="musique")])["dataset"]] == [
        "hotpotqa",
        "musique",
    ]
