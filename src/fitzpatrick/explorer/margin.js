"use strict";
// Two classes and a hard label: every loss over the margin, and its derivative.

const FAMILIES = [
  { name: "logistic", alpha: 1, hue: "s0" },
  { name: "sparsemax", alpha: 2, hue: "s1" },
  { name: "entmax15", alpha: 1.5, hue: "s2" },
  { name: "perceptron", alpha: null, hue: "soft" }, // the same at every tightness
];
const MAX_MARGIN = 4; // the curves run from −4 to 4
const MARGIN_GRID = Array.from({ length: 321 }, (_, i) => MAX_MARGIN * (i / 160 - 1));
const AREA = { left: 58, right: 548, top: 12, bottom: 356 };
const DASHES = ["", "dotted", "dashed"]; // at c = 0, the slider's c, and c = 1

const marginX = (margin) =>
  AREA.left + ((margin + MAX_MARGIN) / (2 * MAX_MARGIN)) * (AREA.right - AREA.left);

/** The margin at a place of the plots, kept inside, with two digits. */
function marginAt(x) {
  const margin = ((x - AREA.left) / (AREA.right - AREA.left)) * 2 * MAX_MARGIN - MAX_MARGIN;
  return Math.round(Math.min(Math.max(margin, -MAX_MARGIN), MAX_MARGIN) * 100) / 100 || 0;
}

/** A loss at the label 1 of two classes, and its derivative in the margin. */
function atMargin({ alpha }, c, margin) {
  const [y, theta] = [[1, 0], [margin, 0]];
  const { value, gradient } = alpha === null ? perceptron(y, theta) : evaluate(alpha, y, theta, c);
  return { value, slope: gradient[0] };
}

const tightnesses = ({ alpha }, c) => (alpha === null ? [0] : [0, c, 1]);

function curveName({ family, c }) {
  if (family.alpha === null || c === 0) return family.name;
  return c === 1 ? `Fitzpatrick ${family.name}` : `${family.name}, c = ${c}`;
}

/** A plot of the "value" or the "slope" of all curves that are shown. */
function makeCurves({ id, part, low, high, ticks, digits, update }) {
  let drawn = [];
  const svg = $(id);
  const { left, right, top, bottom } = AREA;
  const axis = bottom + 8;
  const toY = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  const heightOf = ({ family, c }, margin) => toY(atMargin(family, c, margin)[part]);

  const lines = make("g", { "clip-path": `url(#${id}-area)` });
  const stem = make("line", { class: "stem", y1: top, y2: axis });
  const dots = make("g");
  const handle = makeHandle({
    svg,
    label: "Margin",
    keys: ON_A_LINE,
    step: marginX(0.1) - marginX(0),
    moveTo: ({ x }) => update({ margin: marginAt(x) }),
  });
  handle.element.setAttribute("aria-valuemin", -MAX_MARGIN);
  handle.element.setAttribute("aria-valuemax", MAX_MARGIN);
  const area = make("rect", { x: left, y: top, width: right - left, height: bottom - top });
  svg.append(
    make("clipPath", { id: `${id}-area` }, area),
    make("rect", { class: "plane", width: 560, height: 400 }),
    ...ticks.map((tick) => make("line", { class: "grid", x1: left, x2: right, y1: toY(tick), y2: toY(tick) })),
    ...ticks.map((tick) => makeText(fixed(tick, digits), left - 8, toY(tick) + 5, "soft end")),
    ...[-4, -2, 0, 2, 4].map((tick) => makeText(fixed(tick, 0), marginX(tick), axis + 26, "soft middle")),
    make("line", { class: "axis", x1: left, x2: right, y1: axis, y2: axis }),
    lines,
    stem,
    dots,
    handle.element
  );

  function highlight(nearest) {
    for (const { line } of drawn) line.classList.toggle("near", line === nearest?.line);
  }
  svg.addEventListener("pointermove", (event) => {
    const { x, y } = pointerPosition(svg, event);
    const margin = marginAt(x);
    const away = ({ curve }) => Math.abs(heightOf(curve, margin) - y);
    const near = left <= x && x <= right ? drawn.filter((one) => away(one) < 20) : [];
    const nearest = near.reduce((best, one) => (best && away(best) <= away(one) ? best : one), null);
    highlight(nearest);
    if (!nearest) return hideTip();
    const { value, slope } = atMargin(nearest.curve.family, nearest.curve.c, margin);
    const numbers = `loss ${fixed(value, 4)}, derivative ${fixed(slope, 4)}`;
    return showTip(
      `${curveName(nearest.curve)} at ${fixed(margin, 2)}: ${numbers}`,
      event.clientX,
      event.clientY
    );
  });
  svg.addEventListener("pointerleave", () => {
    highlight(null);
    hideTip();
  });

  return (state) => {
    const families = FAMILIES.filter(({ name }) => !state.hide.includes(name));
    drawn = families.flatMap((family) =>
      tightnesses(family, state.c).map((c, i) => {
        const curve = { family, c };
        const points = MARGIN_GRID.map((margin) => ({ x: marginX(margin), y: heightOf(curve, margin) }));
        const style = `line ${family.hue} ${DASHES[i]}`;
        return { curve, line: make("polyline", { class: style, points: polyline(points) }) };
      })
    );
    lines.replaceChildren(...drawn.map(({ line }) => line));
    const x = marginX(state.margin);
    const dot = ({ curve }) =>
      make("circle", { class: `fill ${curve.family.hue}`, cx: x, cy: heightOf(curve, state.margin), r: 4 });
    dots.replaceChildren(...drawn.map(dot));
    stem.setAttribute("x1", x);
    stem.setAttribute("x2", x);
    handle.place({ x, y: axis }, state.margin, `margin ${fixed(state.margin, 2)}`);
  };
}

/** The numbers at the margin, one row a family, with a check box that hides it. */
function makeTable({ id, part, update }) {
  const html = (name, ...children) => {
    const element = document.createElement(name);
    element.append(...children);
    return element;
  };
  const sample = (style) =>
    make(
      "svg",
      { viewBox: "0 0 36 12", "aria-hidden": "true" },
      make("line", { class: `line ${style}`, x1: 2, x2: 34, y1: 6, y2: 6 })
    );
  const corner = html("th");
  const labels = DASHES.map(() => html("span"));
  const heads = labels.map((label, i) => html("th", sample(`soft ${DASHES[i]}`), label));
  const rows = FAMILIES.map((family) => {
    const box = Object.assign(html("input"), { type: "checkbox", name: family.name });
    box.addEventListener("change", () =>
      update({ hide: rows.filter((row) => !row.box.checked).map((row) => row.family.name) })
    );
    const head = html("th", html("label", box, sample(family.hue), family.name));
    head.scope = "row";
    const cells = tightnesses(family, 0).map(() => html("td"));
    cells[0].colSpan = DASHES.length + 1 - cells.length;
    return { family, box, cells, element: html("tr", head, ...cells) };
  });
  $(id).append(
    html("thead", html("tr", corner, ...heads)),
    html("tbody", ...rows.map(({ element }) => element))
  );

  return (state) => {
    corner.textContent = `at ${fixed(state.margin, 2)}`;
    [0, state.c, 1].forEach((c, i) => (labels[i].textContent = `c = ${c}`));
    for (const { family, box, cells } of rows) {
      box.checked = !state.hide.includes(family.name);
      tightnesses(family, state.c).forEach((c, i) => {
        const number = atMargin(family, c, state.margin)[part];
        cells[i].textContent = fixed(number, 4);
        cells[i].dataset.value = number;
      });
    }
  };
}

/** Draw what does not change, and return what draws a state. */
function makeMarginView(update) {
  const slopes = [-1, -0.8, -0.6, -0.4, -0.2, 0];
  const parts = [
    makeCurves({ id: "curves", part: "value", low: 0, high: 5, ticks: [0, 1, 2, 3, 4, 5], digits: 0, update }),
    makeCurves({ id: "derivatives", part: "slope", low: -1.05, high: 0.05, ticks: slopes, digits: 1, update }),
    makeTable({ id: "values", part: "value", update }),
    makeTable({ id: "slopes", part: "slope", update }),
  ];
  return (state) => parts.forEach((draw) => draw(state));
}
