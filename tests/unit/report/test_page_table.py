from summaries import arm, cell, summary

from lupi.report.page.table import rows


def test_the_table_has_no_row_for_an_arm_that_was_not_planned_at_a_size() -> None:
    judged = summary(
        arm("het-dropout", cell(100, 0.6, "helps"), cell(200, None, "not run")), sizes=(100, 200)
    )
    arms = {size: [row.arm for row in found] for size, found in rows(judged).items()}
    assert arms == {100: ["no-xstar", "het-dropout"], 200: ["no-xstar"]}
