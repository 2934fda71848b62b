"""One made-up row of each layout, and files of them."""

import csv
import json

SENTENCES = {"A": ["A is old.", " It is red."], "B": ["B is new."], "C": ["C is far.", " C is cold."]}


def hotpot(name="h1", **more):
    """A row of HotpotQA's official file."""
    row = {"_id": name, "question": "Is A red?", "answer": "yes", "type": "bridge", "level": "hard"}
    facts = [["C", 0], ["A", 1], ["C", 1]]
    return row | {"supporting_facts": facts, "context": [[key, value] for key, value in SENTENCES.items()]} | more


def hotpot_columns(**more):
    """A row as the hub gives it: objects of lists."""
    facts = {"title": ["C", "A", "C"], "sent_id": [0, 1, 1]}
    context = {"title": list(SENTENCES), "sentences": list(SENTENCES.values())}
    return hotpot(supporting_facts=facts, context=context) | more


def two_wiki(name="w1", **more):
    """A row of 2WikiMultihopQA's official file: its sentences bring no space along."""
    context = [[key, [sentence.strip() for sentence in value]] for key, value in SENTENCES.items()]
    row = hotpot(name, context=context, type="compositional", evidences=[["A", "colour", "red"]])
    del row["level"]
    return row | more


def musique(name="3hop1__1_2_3", **more):
    """A row of MuSiQue's official file."""
    marked = [("A", True), ("B", False), ("C", True), ("D", True)]
    return {
        **{"id": name, "question": "Who is D?", "answer": "Dee", "answer_aliases": ["Dee D", "Dee"]},
        "paragraphs": [
            {"idx": at, "title": title, "paragraph_text": f"About {title}.", "is_supporting": gold}
            for at, (title, gold) in enumerate(marked)
        ],
        "question_decomposition": [
            {"id": at, "question": "?", "answer": "!", "paragraph_support_idx": at} for at in (0, 2, 3)
        ],
        "answerable": True,
        **more,
    }


def popqa(name=7, **more):
    """A row of PopQA's official table."""
    return {
        **{"id": name, "subj": "Ada", "prop": "occupation", "obj": "poet", "s_wiki_title": "Ada (poet)"},
        **{"question": "What is Ada?", "possible_answers": '["poet", "a poet"]', **more},
    }


def gpqa(name="recA", **more):
    """A row of GPQA's table, of our own making."""
    return {
        **{"Record ID": name, "Question": "How many?\n", "Correct Answer": "one", "Incorrect Answer 1": "two"},
        **{"Incorrect Answer 2": "three", "Incorrect Answer 3": "four", "High-level domain": "Physics", **more},
    }


def flashrag(name="test_1", metadata=None, **more):
    """A row of FlashRAG's files."""
    row = {"id": name, "question": "Who is it?", "golden_answers": ["Ada", "Ada L."], **more}
    return row if metadata is None else row | {"metadata": metadata}


def ours(name="o1", **more):
    """A row of our JSON lines."""
    return {"id": name, "question": "Who is it?", "answers": ["Ada"], **more}


def write_lines(path, rows):
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_table(path, rows, delimiter=","):
    """Write a table with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path
