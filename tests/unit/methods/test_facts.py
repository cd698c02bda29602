"""The list of methods, which is read without importing them."""

from lupi.methods.facts import list_facts
from lupi.train.learners import learners


def test_the_list_says_what_the_classes_say() -> None:
    said = {facts.name: facts._asdict() for facts in list_facts()}
    assert list(said) == list(learners())
    for name, learner in learners().items():
        assert said[name] == {key: getattr(learner, key) for key in said[name]}
