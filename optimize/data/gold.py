"""The gold passages of the multi-hop sets, out of the paragraphs that come with a question."""

from __future__ import annotations

from typing import Any

from maps_rag.optimize.data.fields import Row

Passages = list[dict[str, str]]


def facts_and_context(row: Row, joiner: str) -> tuple[Passages, list[str]]:
    """Return the paragraphs that hold a supporting fact, in the order of the context, and the titles of missing ones.

    :param joiner: what stands between two sentences of a paragraph.
    """
    facts = row.pairs("supporting_facts", "title", "sent_id") if row.has("supporting_facts") else []
    context = [
        (title, _sentences(row, sentences))
        for title, sentences in (row.pairs("context", "title", "sentences", "content") if row.has("context") else [])
    ]
    found: set[int] = set()
    missing: list[str] = []
    for title, sentence in facts:
        if isinstance(sentence, bool) or not isinstance(sentence, int):
            row.fail("supporting_facts", "must be a list of pairs of title and the number of a sentence")
        same = [at for at, (name, sentences) in enumerate(context) if name == title and any(sentences)]
        if not same:
            missing.append(title)
            continue
        # A title can occur twice, and some numbers are too high in the official files.
        found.add(next((at for at in same if sentence < len(context[at][1])), same[0]))
    passages = [{"title": context[at][0], "text": joiner.join(context[at][1]).strip()} for at in sorted(found)]
    return passages, list(dict.fromkeys(missing))


def musique_gold(row: Row) -> tuple[Passages, int]:
    """Return the supporting paragraphs of a MuSiQue row, official or FlashRAG's, and the number of hops."""
    steps = row.rows("question_decomposition") if row.has("question_decomposition") else []
    if row.has("paragraphs"):
        marked = [paragraph for paragraph in row.rows("paragraphs") if _is_supporting(paragraph)]
    else:
        marked = [step.inner("support_paragraph") for step in steps if step.has("support_paragraph")]
    passages = [{"title": gold.text("title"), "text": gold.text("paragraph_text")} for gold in marked]
    unique = [passage for at, passage in enumerate(passages) if passage not in passages[:at]]
    hops = len(steps) or len(unique)
    if not hops:
        row.fail("paragraphs", "has none that is supporting")
    return unique, hops


def _sentences(row: Row, value: Any) -> list[str]:
    sentences = [value] if isinstance(value, str) else value
    if not isinstance(sentences, list | tuple) or not all(isinstance(sentence, str) for sentence in sentences):
        row.fail("context", "must give the sentences of a paragraph as a list of texts")
    return list(sentences)


def _is_supporting(paragraph: Row) -> bool:
    value = paragraph.values.get("is_supporting")
    if not isinstance(value, bool):
        paragraph.fail("is_supporting", "must be true or false")
    return value
