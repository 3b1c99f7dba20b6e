"""check_page.py PAGES SHOTS: the pages that `tidemark report` wrote, used in a headless Chromium as a reader would.

PAGES is a folder with small.html (a plan with swaps and re-runs, with a comparison and a measurement), run.html (the record
of a training) and large.html (10^5 values and more). Screenshots go to SHOTS. Ends with an assertion when something is wrong.
"""
import os
import sys

from webdriver import Browser

ENTER, ESCAPE, RIGHT = "\ue007", "\ue00c", "\ue014"
# What a page may need until it is drawn, in seconds of processor time (a step of ResNet-152 takes 0.15), and a frame of
# all plots without a GPU.
START_S, LARGE_START_S, FRAME_S = 1, 4, 0.3


def map_box(b):
    return b.run("const r = map.getBoundingClientRect(); return {x: r.left, y: r.top, w: r.width, h: r.height}")


def middle_of(b, stay):
    """Viewport coordinates of a stay's middle; -1s if it is not in view."""
    return b.run("""const c = {plot: map.clientWidth - GUTTER - MARGIN, height: map.clientHeight,
                    x: v => GUTTER + (v - view.x0) / (view.x1 - view.x0) * (map.clientWidth - GUTTER - MARGIN)};
                    const box = stayBox(c, arguments[0]), r = map.getBoundingClientRect();
                    return [r.left + (box.left + box.right) / 2, r.top + (box.top + box.bottom) / 2]""", stay)


def pixel_at(b, x, y):
    return b.run("""const r = map.getBoundingClientRect(), k = map.width / map.clientWidth;
                    return [...map.getContext('2d').getImageData((arguments[0] - r.left) * k, (arguments[1] - r.top) * k, 1, 1).data]""",
                 x, y)


def is_silent(b):
    log = [entry for entry in b.console() if "willReadFrequently" not in entry["message"]]  # that is pixel_at's doing
    assert not log, log


def load(b, path, seconds=START_S):
    b.watch_cpu()
    b.open(path)
    b.settle()
    took = b.cpu_seconds()
    is_silent(b)
    assert took < seconds, f"{path} takes {took} s of processor time"
    assert b.run("return drawn.frames") >= 1
    assert b.run("return performance.getEntriesByType('resource').length") == 0, "the page fetched something"
    return took


def largest(b, what="true"):
    return b.run(f"""let best = -1; for (let i = 0; i < M.stays; i++)
                     if ({what} && (best < 0 || M.stay.bytes[i] * M.stay.span[i] > M.stay.bytes[best] * M.stay.span[best])) best = i;
                     return best""")


def check_hover(b):
    stay = largest(b)
    x, y = middle_of(b, stay)
    b.pointer(("move", x, y))
    tip = b.run("return $('tip').hidden ? '' : $('tip').innerText")
    for text in [b.run("return stayName(arguments[0])", stay), "MiB", "Shape", "Phase", "Decision", "Class"]:
        assert text in tip, (text, tip)
    b.pointer(("move", x, y), ("down",), ("up",))
    assert b.run("return picked.stay") == stay
    assert b.run("return $('details').innerText.includes(stayName(arguments[0]))", stay)
    assert b.run("return $('live').textContent.length") > 0, "nothing is announced"
    b.pointer(("move", 5, 5))
    assert b.run("return $('tip').hidden"), "the tip stays when the pointer leaves"


def check_labels(b):
    """Labels of lines and of the peak are there, and lie on nothing."""
    hidden = b.run("""const c = {plot: map.clientWidth - GUTTER - MARGIN, height: map.clientHeight,
                      x: v => GUTTER + (v - view.x0) / (view.x1 - view.x0) * (map.clientWidth - GUTTER - MARGIN)};
                      const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
                      const out = [];
                      for (let i = 0; i < M.stays; i++) if (written.map.some(w => meets(w, stayBox(c, i)))) out.push(stayName(i));
                      return out""")
    assert b.run("return written.map.length") > 0, "neither arena nor budget is named"
    assert not hidden, f"labels lie on {hidden}"
    assert b.run("return written.load !== null"), "the peak is not named"


def check_reasons(b):
    """Swaps and re-runs say why and what they cost."""
    swap = b.run("return M.choice.kind.indexOf(SWAP)")
    again = b.run("return M.choice.kind.indexOf(RECOMPUTE)")
    assert swap >= 0 and again >= 0
    assert "The transfers take" in b.run("return choiceReason(arguments[0])", swap)
    assert "again costs" in b.run("return choiceReason(arguments[0])", again)
    rows = b.run("return document.querySelectorAll('#decisions tbody tr').length")
    assert rows == min(100, b.run("return M.choices")), rows
    b.run("document.querySelector('#decisions th button').click()")
    names = b.run("return [...document.querySelectorAll('#decisions tbody tr td:first-child')].map(td => td.innerText)")
    assert names == sorted(names), "sorting by name"
    assert b.run("return document.querySelector('#decisions th').getAttribute('aria-sort')") == "ascending"


def check_zoom(b):
    whole = b.run("return view.x1 - view.x0")
    box = map_box(b)
    x, y = box["x"] + box["w"] / 2, box["y"] + box["h"] / 2
    b.run("map.focus()")
    b.wheel(x, y, -300)
    zoomed = b.run("return view.x1 - view.x0")
    assert zoomed < whole * 0.8, (zoomed, whole)
    before = b.run("return view.x0")
    b.pointer(("move", x, y), ("down",), ("move", x - 120, y), ("up",))
    assert b.run("return view.x0") > before, "dragging left moves the window right"
    before = b.run("return view.x0")
    b.run("map.focus()")
    b.keys(RIGHT)
    assert b.run("return view.x0") > before, "an arrow key pans"
    b.keys("++")
    assert b.run("return view.x1 - view.x0") < zoomed * 0.6
    before = b.run("return view.y1 - view.y0")
    b.keys("]")
    assert b.run("return view.y1 - view.y0") < before, "a bracket zooms in addresses"
    b.keys("n")
    assert b.run("return picked.stay") >= 0, "n chooses a value"
    b.keys("0")
    assert b.run("return view.x1 - view.x0") == whole
    b.keys(ESCAPE)
    assert b.run("return picked.stay") == -1


def check_search(b):
    stay = largest(b, "M.stay.tensor[i] >= 0 && M.tensor.name[M.stay.tensor[i]].length > 3")
    name = b.run("return stayName(arguments[0])", stay)
    b.run("document.activeElement.blur()")
    b.keys("/" + name.upper())
    found = b.run("return matches.length")
    assert found >= 1 and b.run("return $('found').textContent").startswith(f"{found:,} found")
    assert all(name in n for n in b.run("return matches.map(stayName)"))
    b.keys(ENTER)
    assert b.run("return filter.marks[picked.stay]") == 1
    b.keys(ESCAPE)
    assert b.run("return filter.marks") is None
    b.keys("/no value is called so")
    assert b.run("return $('found').textContent") == "0 found"
    b.keys(ESCAPE)
    b.run("document.activeElement.blur()")


def check_colours(b):
    """What is drawn has the colour of the legend, by class and by decision, on both axes, light and dark."""
    b.keys("0")
    for colour in ("class", "fate"):
        b.run("setColour(arguments[0])", colour)
        for axis in ("time", "issue"):
            b.run("setAxis(arguments[0])", axis)
            b.settle()
            stay = largest(b, "M.stay.tensor[i] >= 0")
            x, y = middle_of(b, stay)
            wanted = b.run("return rgb(palette()[kinds()[arguments[0]]])", stay)
            # Labels are text on top: look at the lower right of the rectangle as well.
            seen = [pixel_at(b, x + dx, y + dy)[:3] for dx in (0, 20) for dy in (-3, 0, 2)]
            assert wanted in seen, (colour, axis, wanted, seen)
    legend = b.run("return [...document.querySelectorAll('#legend i')].map(i => i.style.background).length")
    assert legend >= 3
    dark = b.run("return isDark()")
    b.keys("t")
    assert b.run("return isDark()") != dark
    b.keys("t")
    b.run("setColour('class')")


def check_extras(b):
    assert not b.run("return $('measured').hidden") and not b.run("return $('compared').hidden")
    assert b.run("return document.querySelectorAll('#frontier svg path').length") >= 3
    assert "measured: manual" in b.run("return $('measured-table').innerText")


def check_names(b):
    """Every control has a name, and everything that can be clicked can be reached."""
    nameless = b.run("""return [...document.querySelectorAll('button, input, select, canvas')].filter(e =>
        !(e.innerText || '').trim() && !e.getAttribute('aria-label') && !(e.labels && e.labels.length)).map(e => e.outerHTML.slice(0, 80))""")
    assert not nameless, nameless


def check_small(pages, shots):
    with Browser() as b:
        b.media("light")
        load(b, os.path.join(pages, "small.html"))
        b.screenshot(os.path.join(shots, "small-light.png"))
        check_names(b)
        check_labels(b)
        check_hover(b)
        check_reasons(b)
        check_zoom(b)
        check_search(b)
        check_colours(b)
        check_extras(b)
        b.run("pickAndShow(M.choice.before.find(s => s >= 0)); setAxis('time'); setColour('fate')")
        b.settle()
        b.screenshot(os.path.join(shots, "small-picked.png"))
        b.run("document.getElementById('decisions-title').scrollIntoView()")
        b.screenshot(os.path.join(shots, "small-tables.png"))
        b.media("dark")
        load(b, os.path.join(pages, "small.html"))
        assert b.run("return isDark()")
        b.screenshot(os.path.join(shots, "small-dark.png"))
        is_silent(b)
    with Browser(420, 900) as b:
        load(b, os.path.join(pages, "small.html"))
        assert b.run("return document.documentElement.scrollWidth <= innerWidth"), "a narrow page scrolls sideways"
        b.screenshot(os.path.join(shots, "small-narrow.png"))


def check_run(pages, shots):
    """A run's record: a third axis with measured times, every queue beside its prediction."""
    with Browser() as b:
        b.media("light")
        load(b, os.path.join(pages, "run.html"))
        assert not b.run("return $('axis-measured').hidden") and not b.run("return $('ran').hidden")
        b.keys("x")
        assert b.run("return view.axis") == "time"
        b.keys("x")
        assert b.run("return view.axis") == "measured"
        assert b.run("return axis().length") == b.run("return M.meta.ran.step_ns")
        b.screenshot(os.path.join(shots, "run-measured.png"))
        stay = largest(b, "M.stay.tensor[i] >= 0")
        x, y = middle_of(b, stay)
        assert b.run("const r = map.getBoundingClientRect(); return stayAt(arguments[0] - r.left, arguments[1] - r.top)", x, y) == stay
        assert b.run("return valueAt(axis().after, peakX())") == b.run("return M.meta.ran.peak_bytes")
        assert "Peak load" in b.run("return $('ran-table').innerText")
        assert b.run("return document.querySelectorAll('#ran-ops tbody tr').length") == 8
        inked = b.run("""const c = $('versus'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                         const colours = new Set(); for (let i = 0; i < d.length; i += 4) colours.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
                         return colours.size""")
        assert inked > 5, "nothing is drawn where plan and run are compared"
        b.run("document.getElementById('measured').scrollIntoView()")
        b.screenshot(os.path.join(shots, "run-compared.png"))
        is_silent(b)


def check_large(pages, shots):
    with Browser() as b:
        b.media("light")
        took = load(b, os.path.join(pages, "large.html"), LARGE_START_S)
        assert b.run("return M.stays") >= 100000
        b.screenshot(os.path.join(shots, "large-whole.png"))
        before, frames = b.cpu_seconds(), 8
        for _ in range(frames):
            b.run("zoomX(1 / 1.7, view.x0 + 0.4 * (view.x1 - view.x0)); redraw()")
            b.settle()
        frame = (b.cpu_seconds() - before) / frames
        assert frame < FRAME_S, f"a frame takes {frame} s of processor time"
        b.screenshot(os.path.join(shots, "large-zoomed.png"))
        check_search(b)
        is_silent(b)
        print(f"large page: {took:.2f} s of processor time until it is drawn, {frame:.3f} s per frame")


if __name__ == "__main__":
    check_small(sys.argv[1], sys.argv[2])
    check_run(sys.argv[1], sys.argv[2])
    check_large(sys.argv[1], sys.argv[2])
