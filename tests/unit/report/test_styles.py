from summaries import arm

from lupi.report.figures.styles import NEUTRAL, PALETTE, arm_styles, colour


def test_styles_tell_arms_apart() -> None:
    arms = [arm("no-xstar", uses_xstar=False), arm("gaussian", uses_xstar=False)]
    arms += [arm("het"), arm("het/shuffled", control="shuffled")]
    styles = arm_styles(arms, "no-xstar")
    assert list(styles) == [a.name for a in arms]
    assert styles["no-xstar"].colour == NEUTRAL
    assert styles["het"].colour == PALETTE[0]
    assert styles["het/shuffled"].dash == "dash"
    assert len({style.symbol for style in styles.values()}) == len(arms)
    assert len({style.colour for style in styles.values()}) == len(arms)


def test_no_colour_comes_twice() -> None:
    arms = [arm("no-xstar", uses_xstar=False)]
    for i in range(15):
        controls = [arm(f"m{i}/{c}", control=c) for c in ("shuffled", "constant", "random")]
        arms += [arm(f"m{i}"), *controls]
    styles = arm_styles(arms, "no-xstar")
    assert len({style.colour for style in styles.values()}) == len(arms)
    assert len({colour(i) for i in range(60)}) == 60


def rgb(tone: str) -> tuple[int, ...]:
    return tuple(int(tone[i : i + 2], 16) for i in (1, 3, 5))


def test_a_control_has_the_hue_of_its_arm() -> None:
    controls = [arm("a/shuffled", control="shuffled"), arm("b/random", control="random")]
    styles = arm_styles([arm("no-xstar"), arm("a"), arm("b"), *controls], "no-xstar")
    for name, control in (("a", "a/shuffled"), ("b", "b/random")):
        own, lighter = rgb(styles[name].colour), rgb(styles[control].colour)
        assert all(low <= high for low, high in zip(own, lighter, strict=True))
        order = sorted(range(3), key=lambda i: own[i])
        assert order == sorted(range(3), key=lambda i: lighter[i])
        assert styles[control].dash != "solid"
