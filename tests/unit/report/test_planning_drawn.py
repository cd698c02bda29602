from lupi.report.figures.line_chart import draw_plan
from lupi.verdict.planning import Power, SeedPlan, SizePlan


def test_a_line_for_each_size_and_the_power_wanted() -> None:
    curve = (Power(4, 0.1, 0.0, 0.3), Power(8, 0.9, 0.5, 1.0))
    sizes = tuple(
        SizePlan("mine<1>", size, size, 3, 0.02, 0.9, (0.5, 1.0), 8, (6, 12), 7, curve)
        for size in (75, 150)
    )
    plan = SeedPlan("demo", "accuracy", 0.05, 0.8, 8, 8, (6, 12), sizes, 10, 5, 1.0, 5.0)
    drawing = draw_plan(plan)
    for words in (
        "mine&lt;1&gt;, n = 75",
        "mine&lt;1&gt;, n = 150",
        "80 %",
        "power to detect +5.0",
    ):
        assert words in drawing
