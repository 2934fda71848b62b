import dspy
import pytest
from maps_rag.metrics import choice_accuracy, choice_letter

GASES = ["Oxygen", "Nitrogen", "Argon", "Carbon dioxide"]


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        ("$\\boxed{B}$", "B"),
        ("\\boxed{\\text{B}}", "B"),
        ("A", "A"),
        ("a", "A"),
        ("<think>A or C?</think>B", "B"),
        ("B) Nitrogen", "B"),
        ("B. Nitrogen", "B"),
        ("B: it is the most common", "B"),
        ("B - the most common", "B"),
        ("(B) because it is common", "B"),
        ("Option B", "B"),
        ("The answer is B.", "B"),
        ("the answer is (b)", "B"),
        ("Answer: B", "B"),
        ("**Answer:** B", "B"),
        ("The correct answer is option B, since it is common.", "B"),
        ("The best choice would be (B)", "B"),
        ("I would pick B", "B"),
        ("It is B.", "B"),
        ("(A) is wrong, (B) is right", "B"),
        ("Option B is correct", "B"),
        ("The answer is B, not A", "B"),
        ("Air is mostly one gas.\nB", "B"),
        ("A) Oxygen\nB) Nitrogen\nC) Argon\nD) Carbon dioxide\nAnswer: B", "B"),
        ("nitrogen", "B"),
        ("It is nitrogen gas.", "B"),
        ("The most common one is (B).", "B"),
        ("A gas that plants use, carbon dioxide", "D"),
        ("B, because it is common", "B"),
        ("I'm not sure but the answer is B", "B"),
        ("The answer isn't A; it is B.", "B"),
        ("Neither A nor C; the answer is B", "B"),
        ('{"answer": "B"}', "B"),
        ("The answer is A because plants make it", "A"),
    ],
)
def test_letter_is_read_from(answer, letter):
    assert choice_letter(answer, GASES) == letter


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "?",
        "E",
        "I do not know",
        "A or B",
        "The answer is A or B",
        "The answer is A, or maybe C.",
        "Answer: A. Answer: B.",
        "Either (A) or (B)",
        "Oxygen or nitrogen",
        "The answer is a gas",
        "A gas",
        "The answer is A gas",
        "A, B and C",
        "It is not true that the answer is B",
        pytest.param("A, B, " * 2000, id="a long repetition"),
        "The answer is not B",
        "I don't think the answer is B",
        "(A) is wrong",
        "It is not (B)",
        "<think>The answer is B</think>",
        "Bromine",
    ],
)
def test_no_letter_is_guessed_from(answer):
    assert choice_letter(answer, GASES) is None


def test_longer_option_is_not_its_part():
    options = ["increase", "no increase", "a decrease", "neither"]
    assert choice_letter("There is no increase.", options) == "B"
    assert choice_letter("There is increase, not no increase.", options) is None


def test_option_repeated_for_pages_counts_once():
    assert choice_letter("argon is a gas " * 2000, GASES) == "C"


def test_sign_tells_options_apart():
    options = ["10^4 eV", "10^-4 eV", "-5 eV", "5 eV"]
    assert choice_letter("about 10^-4 eV", options) == "B"
    assert choice_letter("about \u22125 eV", options) == "C"
    assert choice_letter("about 5 eV", options) == "D"


def test_leading_point_tells_options_apart():
    assert choice_letter("about .5 mol", [".5 mol", "5 mol"]) == "A"


def test_equal_options_are_not_guessed():
    assert choice_letter("oxygen", ["Oxygen", "oxygen", "Argon"]) is None


def test_species_name_is_no_label():
    options = ["E. coli", "A. thaliana", "B. subtilis", "C. elegans"]
    assert choice_letter("C. elegans", options) == "D"
    assert choice_letter("C. elegans, since it is a worm", options) == "D"
    assert choice_letter("The answer is C. elegans", options) == "D"
    assert choice_letter("The answer is D. C. elegans", options) == "D"
    assert choice_letter("B", options) == "B"


def test_whole_answer_letter_beats_an_option_of_that_text():
    assert choice_letter("B", ["B", "A"]) == "B"


def test_letters_come_from_the_options():
    assert choice_letter("C", ["x", "y"]) is None
    assert choice_letter("The answer is (F)", list("uvwxyz")) == "F"
    assert choice_letter("q", {"P": "one", "Q": "two"}) == "Q"
    assert choice_letter("A", []) is None


def test_option_without_words_matches_nothing():
    assert choice_letter("It rises", ["", "...", "falls", "rises"]) == "D"


@pytest.mark.parametrize(("answer", "score"), [("B", 1.0), ("A", 0.0), ("either", 0.0), (None, 0.0)])
def test_accuracy_is_of_the_letter(answer, score):
    gold = dspy.Example(choices=GASES, answer="B")
    assert choice_accuracy(gold, dspy.Prediction(answer=answer)) == score


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("(A) or " * 20_000, "A"),
        ("word " * 20_000 + "So the answer is (B).", "B"),
        ("The answer is (B). " + "word " * 20_000, "B"),
        ("the answer is " * 20_000 + "(", None),
    ],
)
def test_an_answer_of_many_pages_is_read_at_its_ends(answer, letter):
    assert choice_letter(answer, ["one", "two"]) == letter
