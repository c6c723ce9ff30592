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

/** The same for the simplex. */
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

/** Draw what does not change, and return what draws a state. */
function makeSimplexView(update) {
  let state = null;
  const meshes = { scores: makeScoreMesh(44), targets: makeTargetMesh(44) };
  const root = (alpha, y, theta, c) => Math.sqrt(evaluate(alpha, y, theta, c).value);
  const overScores = {};
  const overTargets = {};
  for (const [end] of ENDS) {
    overScores[end] = cached((alpha, y, c) => meshes.scores.rows.map((theta) => root(alpha, y, theta, c)));
    overTargets[end] = cached((alpha, theta, c) => meshes.targets.rows.map((y) => root(alpha, y, theta, c)));
  }

  const scoreLines = make("g", { "clip-path": "url(#frame)" });
  const scoreArrows = make("g");
  const scorePresent = makeText("", 406, 366, "end on-lines present");
  const scoreHandle = makeHandle({
    svg: $("scores"),
    label: "Scores θ",
    symbol: "θ",
    keys: IN_THE_PLANE,
    step: 0.1 * SCORE_UNIT,
    position: () => toPoint(state.theta, SCORE_PLANE),
    moveTo: (point) => update({ theta: scoresAt(point) }),
  });
  const { left, right, top, bottom } = SCORE_FRAME;
  const box = { x: left, y: top, width: right - left, height: bottom - top, rx: 8 };
  const axes = DIRECTIONS.map(({ x, y }) => {
    const far = { x: SCORE_PLANE.x + 160 * x, y: SCORE_PLANE.y + 160 * y };
    return make("line", { class: "grid", x1: SCORE_PLANE.x, y1: SCORE_PLANE.y, x2: far.x, y2: far.y });
  });
  const axisNames = DIRECTIONS.map(({ x, y }, k) => {
    const far = { x: SCORE_PLANE.x + 160 * x, y: SCORE_PLANE.y + 160 * y };
    return makeText(`class ${k + 1}`, far.x, far.y + (k === 0 ? -8 : 20), "soft middle on-lines");
  });
  $("scores").append(
    make("clipPath", { id: "frame" }, make("rect", box)),
    make("rect", { ...box, class: "edge plane" }),
    ...axes,
    scoreLines,
    ...axisNames,
    scoreArrows,
    scorePresent,
    scoreHandle
  );

  const targetLines = make("g");
  const targetPoints = make("g");
  const targetPresent = makeText("", 406, 26, "end on-lines present");
  const targetHandle = makeHandle({
    svg: $("targets"),
    label: "Target y",
    symbol: "y",
    keys: IN_THE_PLANE,
    step: 0.02 * TARGET_PLANE.scale,
    position: () => toPoint(state.y, TARGET_PLANE),
    moveTo: (point) => update({ y: targetAt(point) }),
  });
  const corners = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((corner) => toPoint(corner, TARGET_PLANE));
  $("targets").append(
    make("polygon", { class: "edge plane", points: polyline(corners) }),
    makeText("class 1", corners[0].x - 14, corners[0].y + 3, "soft end"),
    makeText("class 2", corners[1].x, corners[1].y + 22, "soft"),
    makeText("class 3", corners[2].x, corners[2].y + 22, "soft end"),
    targetLines,
    targetPoints,
    targetPresent,
    targetHandle
  );

  function drawNumbers(at) {
    // on a telephone the table is out of sight while a handle is dragged
    for (const text of [scorePresent, targetPresent]) text.textContent = `loss ${fixed(at.c.value, 4)}`;
    const largest = at[0].value || 1;
    for (const [end, { value }] of Object.entries(at)) {
      const output = $(`loss-${end}`);
      output.textContent = fixed(value, 4);
      output.dataset.value = value;
      output.parentElement.querySelector(".bar").style.width = `${(100 * value) / largest}%`;
    }
    const rows = {
      theta: state.theta,
      y: state.y,
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

  const inWords = (values) => `(${values.map((value) => fixed(value, 2)).join(", ")})`;

  function drawScores(at, roots) {
    const here = toPoint(state.theta, SCORE_PLANE);
    const isFree = (point) =>
      point.x > left + 14 && point.x < right - 14 && point.y > top + 10 && distance(point, here) > 24;
    scoreLines.replaceChildren(...makeLevelLines(meshes.scores, roots, at.c.value, isFree));
    const descent = { ...here, scale: -2.5 * SCORE_PLANE.scale };
    const arrows = ENDS.map(([end, style]) => makeArrow(here, toPoint(at[end].gradient, descent), style));
    scoreArrows.replaceChildren(...arrows);
    place(scoreHandle, here, state.theta[0], inWords(state.theta));
  }

  function drawTargets(at, roots) {
    const here = toPoint(state.y, TARGET_PLANE);
    const star = (end) => toPoint(at[end].yStar, TARGET_PLANE);
    const taken = [here, star("0"), star("c"), star("1")];
    const isFree = (point) =>
      Math.min(...toTarget(point)) > 0.03 && taken.every((other) => distance(point, other) > 24);
    targetLines.replaceChildren(...makeLevelLines(meshes.targets, roots, at.c.value, isFree));

    const way = WAY.map((c) => evaluate(state.alpha, state.y, state.theta, c).yStar);
    const points = [...way, state.y].map((y) => toPoint(y, TARGET_PLANE));
    const dot = ({ x, y }, r, style) => make("circle", { class: `point ${style}`, cx: x, cy: y, r });
    const name = (content, { x, y }, style) =>
      makeText(content, x + 11, y + 5, `point-label on-lines ${style}`);
    const isApart = (end, other) => distance(star(end), star(other)) > 26;
    targetPoints.replaceChildren(
      make("polyline", { class: "path", points: polyline(points) }),
      makeArrow(here, star("c"), "ink"),
      dot(star("0"), 7, "s0"),
      dot(star("1"), 6, "s1"),
      dot(star("c"), 5, "ink"),
      name("ŷ(θ)", star("0"), "s0"),
      ...(isApart("1", "c") ? [name("y*₁", star("1"), "s1")] : []),
      ...(isApart("0", "c") ? [name("y*", star("c"), "")] : [])
    );
    place(targetHandle, here, state.y[0], inWords(state.y));
  }

  return (shown) => {
    state = shown;
    const { alpha, y, theta } = state;
    const tightness = { 0: 0, c: state.c, 1: 1 };
    const forEnds = (compute) => Object.fromEntries(ENDS.map(([end]) => [end, compute(end, tightness[end])]));
    const at = forEnds((_, c) => evaluate(alpha, y, theta, c));
    drawNumbers(at);
    drawScores(at, forEnds((end, c) => overScores[end](alpha, y, c)));
    drawTargets(at, forEnds((end, c) => overTargets[end](alpha, theta, c)));
  };
}
