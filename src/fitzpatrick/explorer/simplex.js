"use strict";
// Three classes: the plane of scores, the simplex of targets, and the numbers.
//
// In both plots the classes point up, to the lower left and to the lower right: a vector v is drawn
// at Σ v_k d_k, for three directions d_k.

const DIRECTIONS = [90, 210, 330].map((degrees) => {
  const angle = (degrees * Math.PI) / 180;
  return { x: Math.cos(angle), y: -Math.sin(angle) };
});
const SCORE_FRAME = { left: 4, right: 416, top: 4, bottom: 376 };
const SCORE_UNIT = 41; // length of a θ of norm one
const SCORE_PLANE = { x: 210, y: 190, scale: SCORE_UNIT * Math.sqrt(2 / 3) };
const TARGET_PLANE = { x: 210, y: 244, scale: 218 }; // the scale is the way from center to corner
const LEVELS = [0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 4, 5, 6, 7, 8];
// The losses that are compared, and how they are drawn.
const ENDS = [["0", "s0"], ["1", "s1"], ["c", "ink"]];
// Tightnesses at which the way of y* from the link to the target is drawn.
const WAY = [0, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 64];

/** Where a vector is drawn, relative to an origin. */
function toPoint(values, { x, y, scale }) {
  const along = (axis) => scale * sum(values.map((value, k) => value * DIRECTIONS[k][axis]));
  return { x: x + along("x"), y: y + along("y") };
}

/** The vector with Σ v_k = 0 that is drawn there. */
function toVector(point, { x, y, scale }) {
  const [dx, dy] = [(point.x - x) / scale, (point.y - y) / scale];
  return DIRECTIONS.map((direction) => (2 / 3) * (direction.x * dx + direction.y * dy));
}

const toTarget = (point) => toVector(point, TARGET_PLANE).map((value) => value + 1 / 3);

function isInFrame(theta) {
  const { x, y } = toPoint(theta, SCORE_PLANE);
  const { left, right, top, bottom } = SCORE_FRAME;
  return left <= x && x <= right && top <= y && y <= bottom;
}

const roundTo3 = (value) => Math.round(value * 1000) / 1000 || 0;

/** The scores at a point of their plot, kept inside; three digits that sum to zero. */
function scoresAt({ x, y }) {
  const { left, right, top, bottom } = SCORE_FRAME;
  const inside = {
    x: Math.min(Math.max(x, left + 12), right - 12),
    y: Math.min(Math.max(y, top + 12), bottom - 12),
  };
  const [first, second] = toVector(inside, SCORE_PLANE).map(roundTo3);
  return [first, second, roundTo3(-first - second)];
}

/** The target nearest to a point; three digits that sum to one, the largest takes the rest. */
function targetAt(point) {
  const y = link(2, toTarget(point)); // the projection onto the simplex
  const largest = y.indexOf(Math.max(...y));
  const rounded = y.map(roundTo3);
  rounded[largest] = roundTo3(1 - sum(rounded.filter((_, k) => k !== largest)));
  return rounded;
}

/** Points of the plane, the scores there, and the triangles between them. */
function makeScoreMesh(n) {
  const { left, right, top, bottom } = SCORE_FRAME;
  const points = [];
  const triangles = [];
  for (let i = 0; i <= n; i++)
    for (let j = 0; j <= n; j++) {
      points.push({ x: left + ((right - left) * j) / n, y: top + ((bottom - top) * i) / n });
      if (i === n || j === n) continue;
      const [a, b] = [i * (n + 1) + j, (i + 1) * (n + 1) + j];
      triangles.push([a, a + 1, b], [a + 1, b, b + 1]);
    }
  return { points, triangles, rows: points.map((point) => toVector(point, SCORE_PLANE)) };
}

/** Points of the simplex, the targets there, and the triangles between them. */
function makeTargetMesh(n) {
  const rows = [];
  const triangles = [];
  const index = (i, j) => (i * (2 * n + 3 - i)) / 2 + j;
  for (let i = 0; i <= n; i++)
    for (let j = 0; j <= n - i; j++) {
      rows.push([i / n, j / n, (n - i - j) / n]);
      if (i + j < n) triangles.push([index(i, j), index(i + 1, j), index(i, j + 1)]);
      if (i + j < n - 1) triangles.push([index(i + 1, j), index(i, j + 1), index(i + 1, j + 1)]);
    }
  return { points: rows.map((y) => toPoint(y, TARGET_PLANE)), triangles, rows };
}

/** Thin lines at round levels of L_c, with their numbers; bold ones where a loss has one value. */
function makeLevelLines(mesh, roots, value, isFree) {
  const draw = (pieces, style) => make("path", { class: style, d: pieces.map(path).join("") });
  const lines = [];
  const labels = [];
  for (const level of LEVELS) {
    const pieces = levelSet(mesh, roots.c, level);
    lines.push(draw(pieces, "level"));
    const top = pieces
      .map(([end]) => end)
      .filter(isFree)
      .reduce((best, end) => (best && best.y < end.y ? best : end), null);
    if (top && labels.every((label) => distance(label, top) > 18)) labels.push({ ...top, level });
  }
  for (const [end, style] of ENDS)
    lines.push(draw(levelSet(mesh, roots[end], value), `current ${style}`));
  const numbers = labels.map(({ x, y, level }) => makeText(level, x, y + 4, "level-label on-lines"));
  return [...lines, ...numbers];
}

const inWords = (values) => `(${values.map((value) => fixed(value, 2)).join(", ")})`;
const tightnessOf = (end, state) => (end === "c" ? state.c : Number(end));
const forEnds = (compute) => Object.fromEntries(ENDS.map(([end]) => [end, compute(end)]));

/**
 * One of the two plots: level sets over a mesh, marks, and a handle.
 *
 *   id                 of the drawing
 *   part               of the state, "theta" or "y", that the handle moves; the other one is held
 *   plane, mesh        where vectors are drawn, and the points at which losses are computed
 *   below, names       shapes below the lines and above them; clip is the lines' area
 *   present            where the loss is written
 *   isInside(point)    true if there is room for the number of a level
 *   marks(here, at)    shapes beside the handle, and the points that they take
 */
function makePlane({ id, part, plane, mesh, below, names, clip, present, isInside, marks, ...knob }) {
  const lines = make("g", clip);
  const shapes = make("g");
  const loss = makeText("", ...present, "end on-lines present");
  const handle = makeHandle({ svg: $(id), keys: IN_THE_PLANE, ...knob });
  $(id).append(...below, lines, ...names, shapes, loss, handle.element);

  const root = (state) => Math.sqrt(evaluate(state.alpha, state.y, state.theta, state.c).value);
  const overMesh = forEnds(() => cached((held) => mesh.rows.map((row) => root({ ...held, [part]: row }))));

  return (state, at) => {
    const { alpha, theta, y } = state;
    const held = part === "y" ? { alpha, theta } : { alpha, y };
    const roots = forEnds((end) => overMesh[end]({ ...held, c: tightnessOf(end, state) }));
    const here = toPoint(state[part], plane);
    const marked = marks(here, at, state);
    const isFree = (point) =>
      isInside(point) && [here, ...marked.taken].every((other) => distance(point, other) > 24);
    lines.replaceChildren(...makeLevelLines(mesh, roots, at.c.value, isFree));
    shapes.replaceChildren(...marked.shapes);
    loss.textContent = `loss ${fixed(at.c.value, 4)}`;
    handle.place(here, state[part][0], inWords(state[part]));
  };
}

function makeScorePlane(update) {
  const { left, right, top, bottom } = SCORE_FRAME;
  const box = { x: left, y: top, width: right - left, height: bottom - top, rx: 8 };
  const far = DIRECTIONS.map(({ x, y }) => ({ x: SCORE_PLANE.x + 160 * x, y: SCORE_PLANE.y + 160 * y }));
  const axis = ({ x, y }) => make("line", { class: "grid", x1: SCORE_PLANE.x, y1: SCORE_PLANE.y, x2: x, y2: y });
  return makePlane({
    id: "scores",
    part: "theta",
    label: "Scores θ",
    symbol: "θ",
    step: 0.1 * SCORE_UNIT,
    moveTo: (point) => update({ theta: scoresAt(point) }),
    plane: SCORE_PLANE,
    mesh: makeScoreMesh(44),
    clip: { "clip-path": "url(#frame)" },
    below: [
      make("clipPath", { id: "frame" }, make("rect", box)),
      make("rect", { ...box, class: "edge plane" }),
      ...far.map(axis),
    ],
    names: far.map(({ x, y }, k) =>
      makeText(`class ${k + 1}`, x, y + (k === 0 ? -8 : 20), "soft middle on-lines")
    ),
    present: [406, 366],
    isInside: ({ x, y }) => x > left + 14 && x < right - 14 && y > top + 10,
    marks: (here, at) => {
      const descent = { ...here, scale: -2.5 * SCORE_PLANE.scale };
      const arrow = ([end, style]) => makeArrow(here, toPoint(at[end].gradient, descent), style);
      return { shapes: ENDS.map(arrow), taken: [] };
    },
  });
}

function makeTargetPlane(update) {
  const corners = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((corner) => toPoint(corner, TARGET_PLANE));
  const dot = ({ x, y }, r, style) => make("circle", { class: `point ${style}`, cx: x, cy: y, r });
  const name = (content, { x, y }, style) =>
    makeText(content, x + 11, y + 5, `point-label on-lines ${style}`);
  return makePlane({
    id: "targets",
    part: "y",
    label: "Target y",
    symbol: "y",
    step: 0.02 * TARGET_PLANE.scale,
    moveTo: (point) => update({ y: targetAt(point) }),
    plane: TARGET_PLANE,
    mesh: makeTargetMesh(44),
    below: [make("polygon", { class: "edge plane", points: polyline(corners) })],
    names: [
      makeText("class 1", corners[0].x - 14, corners[0].y + 3, "soft end"),
      makeText("class 2", corners[1].x, corners[1].y + 22, "soft"),
      makeText("class 3", corners[2].x, corners[2].y + 22, "soft end"),
    ],
    present: [406, 26],
    isInside: (point) => Math.min(...toTarget(point)) > 0.03,
    marks: (here, at, { alpha, y, theta }) => {
      const star = forEnds((end) => toPoint(at[end].yStar, TARGET_PLANE));
      const isApart = (end, other) => distance(star[end], star[other]) > 26;
      const way = WAY.map((c) => toPoint(evaluate(alpha, y, theta, c).yStar, TARGET_PLANE));
      const shapes = [
        make("polyline", { class: "path", points: polyline([...way, here]) }),
        makeArrow(here, star.c, "ink"),
        dot(star[0], 7, "s0"),
        dot(star[1], 6, "s1"),
        dot(star.c, 5, "ink"),
        name("ŷ(θ)", star[0], "s0"),
      ];
      if (isApart("1", "c")) shapes.push(name("y*₁", star[1], "s1"));
      if (isApart("0", "c")) shapes.push(name("y*", star.c, ""));
      return { shapes, taken: Object.values(star) };
    },
  });
}

/** The bars of the losses, and the table. */
function drawNumbers({ theta, y }, at) {
  const largest = at[0].value || 1;
  for (const [end, { value }] of Object.entries(at)) {
    const output = $(`loss-${end}`);
    output.textContent = fixed(value, 4);
    output.dataset.value = value;
    output.parentElement.querySelector(".bar").style.width = `${(100 * value) / largest}%`;
  }
  const rows = {
    theta,
    y,
    link: at[0].yStar,
    star: at.c.yStar,
    "star-1": at[1].yStar,
    gradient: at.c.gradient,
  };
  for (const [name, values] of Object.entries(rows))
    $(`row-${name}`).querySelectorAll("td").forEach((cell, k) => {
      cell.textContent = fixed(values[k], 3);
      cell.dataset.value = values[k];
    });
}

/** Draw what does not change, and return what draws a state. */
function makeSimplexView(update) {
  const planes = [makeScorePlane(update), makeTargetPlane(update)];
  return (state) => {
    const { alpha, y, theta } = state;
    const at = forEnds((end) => evaluate(alpha, y, theta, tightnessOf(end, state)));
    drawNumbers(state, at);
    planes.forEach((draw) => draw(state, at));
  };
}
