"""The list of methods, which is read without importing them."""

from lupi.methods.facts import MethodFacts, list_facts
from lupi.train.learners import learners


def test_every_method_model_and_plugin_is_listed_in_order() -> None:
    assert [facts.name for facts in list_facts()] == list(learners())


def test_facts_are_those_of_the_classes() -> None:
    for facts in list_facts():
        learner = learners()[facts.name]
        assert facts == MethodFacts(
            name=learner.name,
            summary=learner.summary,
            uses_xstar=learner.uses_xstar,
            sees_xstar_at_test=learner.sees_xstar_at_test,
            kinds=learner.kinds,
            extends_student=getattr(learner, "extends_student", False),
        )


def test_facts_as_they_stand_in_the_files() -> None:
    found = {facts.name: facts for facts in list_facts()}
    assert found["oracle"].sees_xstar_at_test
    assert not found["no-xstar"].uses_xstar
    assert found["gocnn"].kinds == ("region",)
    assert found["imagination"].kinds == ("vector",)  # of a plug-in
    assert found["svm-plus"].uses_xstar
