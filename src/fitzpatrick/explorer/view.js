"use strict";
// What the reader sees and touches. One state, which the address holds; every change draws anew.

(() => {
  const MAX_TIGHTNESS = 4;
  const SCORE_RADIUS = 4.6; // of the frame, in units of θ drawn to scale
  const LEVELS = [0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 4, 5, 6, 7, 8];
  const FAMILIES = [
    { name: "logistic", alpha: 1, hue: "s0" },
    { name: "sparsemax", alpha: 2, hue: "s1" },
    { name: "entmax15", alpha: 1.5, hue: "s2" },
    { name: "perceptron", alpha: null, hue: "soft" },
  ];
  const MARGINS = 4; // the curves run from −4 to 4

  const DEFAULTS = {
    view: "simplex",
    alpha: 1,
    c: 0.5,
    theta: [2.2, 0.3, -2.5],
    y: [0.2, 0.7, 0.1],
    margin: -0.5,
    hide: [],
    theme: "",
  };
  let state = { ...DEFAULTS };

  // The address

  const isNumber = (low, high) => (x) => Number.isFinite(x) && low <= x && x <= high;
  const isRow = (values) => values.length === 3 && values.every(Number.isFinite);
  const toNumber = (text) => (text.trim() === "" ? NaN : Number(text));
  const toNumbers = (text) => text.split(",").map(toNumber);
  const toNames = (text) => (text === "" ? [] : text.split(","));
  const isTarget = (y) => isRow(y) && y.every(isNumber(0, 1)) && Math.abs(sum(y) - 1) < 1e-9;
  const isScore = (theta) => isRow(theta) && Math.abs(sum(theta)) < 1e-9 && isInFrame(theta);
  const FIELDS = {
    view: [String, (name) => name === "simplex" || name === "margin"],
    alpha: [toNumber, (alpha) => alpha === 1 || isNumber(1.01, 2)(alpha)],
    c: [toNumber, isNumber(0, MAX_TIGHTNESS)],
    theta: [toNumbers, isScore],
    y: [toNumbers, isTarget],
    margin: [toNumber, isNumber(-MARGINS, MARGINS)],
    hide: [toNames, (names) => names.every((name) => FAMILIES.some((one) => one.name === name))],
    theme: [String, (name) => ["", "light", "dark"].includes(name)],
  };

  /** The state in an address; whatever is not valid there has its default. */
  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const read = { ...DEFAULTS };
    for (const [name, [parse, isValid]] of Object.entries(FIELDS)) {
      const value = given.has(name) ? parse(given.get(name)) : DEFAULTS[name];
      if (isValid(value)) read[name] = value;
    }
    return read;
  }

  let saving = 0;
  /** Browsers allow some hundred changes of the address a minute, and a drag makes more. */
  function saveSoon() {
    clearTimeout(saving);
    saving = setTimeout(() => {
      const shown = Object.entries(state).filter(([, value]) => value !== "" && value.length !== 0);
      history.replaceState(null, "", `#${shown.map(([name, value]) => `${name}=${value}`).join("&")}`);
    }, 150);
  }

  function update(changes) {
    state = { ...state, ...changes };
    draw();
    saveSoon();
  }

  // Geometry: the classes point up, to the lower left and to the lower right, in both plots

  const CENTER = { x: 210, y: 244 };
  const SIDE = 218; // from the center of the simplex to a corner, in pixels
  const UNIT = 190 / SCORE_RADIUS; // pixels for one unit of the plane of scores
  const DIRECTIONS = [90, 210, 330].map((degrees) => {
    const angle = (degrees * Math.PI) / 180;
    return { x: Math.cos(angle), y: -Math.sin(angle) };
  });
  const FRAME = { left: 4, right: 416, top: 4, bottom: 376 };

  /** Σ v_k d_k of the three directions, where Σ v_k is any constant. */
  function combine(values) {
    const add = (axis) => sum(values.map((value, k) => value * DIRECTIONS[k][axis]));
    return { x: add("x"), y: add("y") };
  }
  /** The v with Σ v_k = 0 that it comes from. */
  function separate({ x, y }) {
    return DIRECTIONS.map((direction) => (2 / 3) * (direction.x * x + direction.y * y));
  }
  const place = (values, scale, center) => {
    const { x, y } = combine(values);
    return { x: center.x + scale * x, y: center.y + scale * y };
  };
  const unplace = (point, scale, center) =>
    separate({ x: (point.x - center.x) / scale, y: (point.y - center.y) / scale });

  const SCORE_CENTER = { x: 210, y: 190 };
  const SCORE_SCALE = UNIT * Math.sqrt(2 / 3); // so that lengths are those of θ
  const scorePoint = (theta) => place(theta, SCORE_SCALE, SCORE_CENTER);
  const targetPoint = (y) => place(y, SIDE, CENTER);
  const targetOf = (point) => unplace(point, SIDE, CENTER).map((value) => value + 1 / 3);

  function isInFrame(theta) {
    const { x, y } = scorePoint(theta);
    return FRAME.left <= x && x <= FRAME.right && FRAME.top <= y && y <= FRAME.bottom;
  }

  const round = (value) => Math.round(value * 1000) / 1000 || 0;

  /** The scores at a point of their plot, kept inside; three digits that sum to zero. */
  function scoresAt({ x, y }) {
    const inside = {
      x: Math.min(Math.max(x, FRAME.left + 12), FRAME.right - 12),
      y: Math.min(Math.max(y, FRAME.top + 12), FRAME.bottom - 12),
    };
    const [first, second] = unplace(inside, SCORE_SCALE, SCORE_CENTER).map(round);
    return [first, second, round(-first - second)];
  }

  /** The target nearest to a point; three digits that sum to one, the largest takes the rest. */
  function targetAt(point) {
    const y = link(2, targetOf(point)); // the projection onto the simplex
    const largest = y.indexOf(Math.max(...y));
    const rounded = y.map(round);
    rounded[largest] = round(1 - sum(rounded.filter((_, k) => k !== largest)));
    return rounded;
  }

  // Drawing

  const $ = (id) => document.getElementById(id);

  function make(name, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  const polyline = (points) => points.map(({ x, y }) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");

  /** Points, and triangles of their indices, that cover the plane of scores or the simplex. */
  function scoreMesh(n) {
    const points = [];
    const triangles = [];
    for (let i = 0; i <= n; i++)
      for (let j = 0; j <= n; j++) {
        points.push({
          x: FRAME.left + ((FRAME.right - FRAME.left) * j) / n,
          y: FRAME.top + ((FRAME.bottom - FRAME.top) * i) / n,
        });
        if (i === n || j === n) continue;
        const corner = i * (n + 1) + j;
        triangles.push([corner, corner + 1, corner + n + 1], [corner + 1, corner + n + 1, corner + n + 2]);
      }
    return { points, triangles, rows: points.map((point) => unplace(point, SCORE_SCALE, SCORE_CENTER)) };
  }
  function targetMesh(n) {
    const rows = [];
    const triangles = [];
    const index = (i, j) => (i * (2 * n + 3 - i)) / 2 + j;
    for (let i = 0; i <= n; i++)
      for (let j = 0; j <= n - i; j++) {
        rows.push([i / n, j / n, (n - i - j) / n]);
        if (i + j < n) triangles.push([index(i, j), index(i + 1, j), index(i, j + 1)]);
        if (i + j < n - 1) triangles.push([index(i + 1, j), index(i, j + 1), index(i + 1, j + 1)]);
      }
    return { points: rows.map(targetPoint), triangles, rows };
  }
  const SCORES = scoreMesh(44);
  const TARGETS = targetMesh(44);

  /**
   * The pieces of a level set, one for each triangle that it crosses, by linear interpolation of
   * √L: near its zeros a loss is a square.
   */
  function levelSet({ points, triangles }, roots, value) {
    const level = Math.sqrt(value);
    const pieces = [];
    for (const triangle of triangles) {
      const ends = [];
      for (let k = 0; k < 3; k++) {
        const [a, b] = [triangle[k], triangle[(k + 1) % 3]];
        if (roots[a] < level === roots[b] < level) continue;
        const t = (level - roots[a]) / (roots[b] - roots[a]);
        ends.push({
          x: points[a].x + t * (points[b].x - points[a].x),
          y: points[a].y + t * (points[b].y - points[a].y),
        });
      }
      if (ends.length === 2) pieces.push(ends);
    }
    return pieces;
  }
  const toPath = (pieces) => pieces.map((piece) => `M${polyline(piece).replace(" ", "L")}`).join("");

  /** Values that are computed anew only when what they depend on has changed. */
  function cached(compute) {
    let key = null;
    let result = null;
    return (...inputs) => {
      const asked = JSON.stringify(inputs);
      if (asked !== key) [key, result] = [asked, compute(...inputs)];
      return result;
    };
  }
  const over = { scores: {}, targets: {} }; // √L at the points of the meshes
  for (const end of ["0", "c", "1"]) {
    const root = (alpha, y, theta, c) => Math.sqrt(evaluate(alpha, y, theta, c).value);
    over.scores[end] = cached((alpha, y, c) => SCORES.rows.map((theta) => root(alpha, y, theta, c)));
    over.targets[end] = cached((alpha, theta, c) => TARGETS.rows.map((y) => root(alpha, y, theta, c)));
  }

  /** Thin lines at round levels, with their numbers; bold ones at the present value of L_c. */
  function levelLines(mesh, roots, present, isFree) {
    const thin = [];
    const labels = [];
    for (const level of LEVELS) {
      const pieces = levelSet(mesh, roots.c, level);
      if (pieces.length === 0) continue;
      thin.push(make("path", { class: "level", d: toPath(pieces) }));
      const place = pieces.map(([end]) => end).filter(isFree);
      if (place.length === 0) continue;
      const top = place.reduce((best, end) => (end.y < best.y ? end : best));
      if (labels.some((label) => Math.hypot(label.x - top.x, label.y - top.y) < 18)) continue;
      labels.push({ ...top, level });
    }
    const bold = [["0", "s0"], ["1", "s1"], ["c", "ink"]].map(([end, style]) =>
      make("path", { class: `current ${style}`, d: toPath(levelSet(mesh, roots[end], present)) })
    );
    const texts = labels.map(({ x, y, level }) => {
      const text = make("text", { class: "level-label on-lines", x: x.toFixed(1), y: (y + 4).toFixed(1) });
      text.textContent = level;
      return text;
    });
    return [...thin, ...bold, ...texts];
  }

  /** A shaft with a head; none where it would be shorter than the head. */
  function arrow(from, to, style) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy);
    if (length < 4) return make("path", { class: `arrow ${style}` });
    const head = Math.min(10, length / 2) / length;
    const side = (turn) => ({ x: to.x - head * (dx - turn * dy), y: to.y - head * (dy + turn * dx) });
    const tip = polyline([side(0.6), to, side(-0.6)]).split(" ").join("L");
    return make("path", { class: `arrow ${style}`, d: `M${polyline([from, to]).replace(" ", "L")}M${tip}` });
  }

  function text(content, x, y, style) {
    const element = make("text", { class: style, x, y });
    element.textContent = content;
    return element;
  }

  /** Where the pointer is, in the coordinates of a plot. */
  function pointerPosition(svg, event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: point.x, y: point.y };
  }

  /**
   * A knob that is dragged, sent somewhere by a click, or moved with the arrow keys. A finger drags
   * the knob only, so that it can scroll the page elsewhere.
   */
  function makeHandle(svg, label, symbol, step, position, moveTo) {
    const knob = symbol === "y" ? { x: -7, y: -7, width: 14, height: 14, rx: 2 } : { r: 8 };
    const handle = make(
      "g",
      { class: "handle", tabindex: 0, role: "slider", "aria-label": label },
      make("circle", { class: "reach", r: 24 }),
      make("circle", { class: "ring", r: 15 }),
      make(symbol === "y" ? "rect" : "circle", { class: "knob", ...knob }),
      ...(symbol ? [text(symbol, 13, -9, "point-label on-lines")] : [])
    );
    let isDragging = false;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || (event.pointerType === "touch" && !handle.contains(event.target))) return;
      event.preventDefault();
      isDragging = true;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("dragging");
      handle.focus({ preventScroll: true, focusVisible: false });
      moveTo(pointerPosition(svg, event));
    });
    // touch-action would say the same, but browsers ignore it inside a drawing
    handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    svg.addEventListener("pointermove", (event) => {
      if (isDragging) moveTo(pointerPosition(svg, event));
    });
    for (const end of ["pointerup", "pointercancel"])
      svg.addEventListener(end, () => {
        isDragging = false;
        svg.classList.remove("dragging");
      });
    svg.addEventListener("click", (event) => moveTo(pointerPosition(svg, event)));
    handle.addEventListener("keydown", (event) => {
      const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!direction || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const length = step * (event.shiftKey ? 5 : 1);
      const { x, y } = position();
      moveTo({ x: x + length * direction[0], y: y + length * direction[1] });
    });
    return handle;
  }
  const putAt = (element, { x, y }) => element.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);

  const fixed = (value, digits = 3) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
  const row = (values) => `(${values.map((value) => fixed(value, 2)).join(", ")})`;

  // Three classes

  const scores = { lines: make("g"), arrows: make("g") };
  const targets = { lines: make("g"), points: make("g") };
  const theta = makeHandle($("scores"), "Scores θ", "θ", 0.1 * UNIT, () => scorePoint(state.theta), (point) =>
    update({ theta: scoresAt(point) })
  );
  const target = makeHandle($("targets"), "Target y", "y", 0.02 * SIDE, () => targetPoint(state.y), (point) =>
    update({ y: targetAt(point) })
  );
  {
    const { left, right, top, bottom } = FRAME;
    const box = { x: left, y: top, width: right - left, height: bottom - top, rx: 8 };
    const clip = make("clipPath", { id: "frame" }, make("rect", box));
    const axes = DIRECTIONS.map((direction, k) => {
      const far = { x: SCORE_CENTER.x + 160 * direction.x, y: SCORE_CENTER.y + 160 * direction.y };
      return {
        line: make("line", { class: "grid", x1: SCORE_CENTER.x, y1: SCORE_CENTER.y, x2: far.x, y2: far.y }),
        name: text(`class ${k + 1}`, far.x, far.y + (k === 0 ? -8 : 20), "soft middle on-lines"),
      };
    });
    scores.lines.setAttribute("clip-path", "url(#frame)");
    $("scores").append(
      clip,
      make("rect", { ...box, class: "edge plane" }),
      ...axes.map(({ line }) => line),
      scores.lines,
      ...axes.map(({ name }) => name),
      scores.arrows,
      theta
    );
    const corners = [0, 1, 2].map((k) => targetPoint([0, 1, 2].map((j) => (j === k ? 1 : 0))));
    const names = corners.map(({ x, y }, k) =>
      text(`class ${k + 1}`, k === 0 ? x - 14 : x, k === 0 ? y + 3 : y + 22, `soft ${k === 1 ? "" : "end"}`)
    );
    $("targets").append(
      make("polygon", { class: "edge plane", points: polyline(corners) }),
      ...names,
      targets.lines,
      targets.points,
      target
    );
  }

  function fillRow(id, values) {
    const cells = $(id).querySelectorAll("td");
    values.forEach((value, k) => {
      cells[k].textContent = fixed(value);
      cells[k].dataset.value = value;
    });
  }

  function describe(handle, values) {
    handle.setAttribute("aria-valuetext", row(values));
    handle.setAttribute("aria-valuenow", values[0]);
  }

  function drawSimplex() {
    const { alpha, c, y } = state;
    const at = { 0: evaluate(alpha, y, state.theta, 0), c: evaluate(alpha, y, state.theta, c), 1: evaluate(alpha, y, state.theta, 1) };

    const largest = at[0].value || 1;
    for (const [end, { value }] of Object.entries(at)) {
      const output = $(`loss-${end}`);
      output.textContent = fixed(value, 4);
      output.dataset.value = value;
      output.parentElement.querySelector(".bar").style.width = `${(100 * value) / largest}%`;
    }
    fillRow("row-theta", state.theta);
    fillRow("row-y", y);
    fillRow("row-link", at[0].yStar);
    fillRow("row-star", at.c.yStar);
    fillRow("row-star-1", at[1].yStar);
    fillRow("row-gradient", at.c.gradient);

    const there = scorePoint(state.theta);
    const roots = (grid, held) => ({ 0: grid[0](alpha, held, 0), c: grid.c(alpha, held, c), 1: grid[1](alpha, held, 1) });
    const isFree = ({ x, y: height }) =>
      x > FRAME.left + 14 && x < FRAME.right - 14 && height > FRAME.top + 10 && Math.hypot(x - there.x, height - there.y) > 24;
    scores.lines.replaceChildren(...levelLines(SCORES, roots(over.scores, y), at.c.value, isFree));
    const step = (gradient) => place(gradient.map((slope) => -slope), 2.5 * SCORE_SCALE, there);
    scores.arrows.replaceChildren(
      arrow(there, step(at[0].gradient), "s0"),
      arrow(there, step(at[1].gradient), "s1"),
      arrow(there, step(at.c.gradient), "ink")
    );
    putAt(theta, there);
    describe(theta, state.theta);

    const here = targetPoint(y);
    const [linkPoint, star, star1] = [at[0].yStar, at.c.yStar, at[1].yStar].map(targetPoint);
    const isOpen = (point) =>
      Math.min(...targetOf(point)) > 0.03 &&
      [here, star, star1, linkPoint].every(({ x, y: height }) => Math.hypot(point.x - x, point.y - height) > 24);
    targets.lines.replaceChildren(...levelLines(TARGETS, roots(over.targets, state.theta), at.c.value, isOpen));
    const path = [0, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 64].map((tightness) =>
      targetPoint(evaluate(alpha, y, state.theta, tightness).yStar)
    );
    targets.points.replaceChildren(
      make("polyline", { class: "path", points: polyline([...path, here]) }),
      arrow(here, star, "ink"),
      make("circle", { class: "point s0", cx: linkPoint.x, cy: linkPoint.y, r: 7 }),
      make("circle", { class: "point s1", cx: star1.x, cy: star1.y, r: 6 }),
      make("circle", { class: "point ink", cx: star.x, cy: star.y, r: 5 }),
      text("ŷ(θ)", linkPoint.x + 11, linkPoint.y + 5, "point-label on-lines s0"),
      ...(Math.hypot(star1.x - star.x, star1.y - star.y) > 26 ? [text("y*₁", star1.x + 11, star1.y + 12, "point-label on-lines s1")] : []),
      ...(Math.hypot(linkPoint.x - star.x, linkPoint.y - star.y) > 26 ? [text("y*", star.x + 11, star.y + 5, "point-label on-lines")] : [])
    );
    putAt(target, here);
    describe(target, y);
  }

  // Margins

  const PLOT = { left: 58, right: 548, top: 12, bottom: 356 };
  const marginX = (margin) => PLOT.left + ((margin + MARGINS) / (2 * MARGINS)) * (PLOT.right - PLOT.left);
  const marginAt = (x) => {
    const margin = ((x - PLOT.left) / (PLOT.right - PLOT.left)) * 2 * MARGINS - MARGINS;
    return Math.round(Math.min(Math.max(margin, -MARGINS), MARGINS) * 100) / 100 || 0;
  };

  /** A loss at the hard label 1 of two classes, and its derivative in the margin. */
  function atMargin({ alpha }, c, margin) {
    const y = [1, 0];
    const scores = [margin, 0];
    const { value, gradient } = alpha === null ? perceptron(y, scores) : evaluate(alpha, y, scores, c);
    return { value, slope: gradient[0] };
  }

  function curvesShown() {
    const tightnesses = [[0, ""], [state.c, "dotted"], [1, "dashed"]];
    return FAMILIES.filter(({ name }) => !state.hide.includes(name)).flatMap((family) =>
      (family.alpha === null ? [[0, ""]] : tightnesses).map(([c, dash]) => ({ family, c, dash }))
    );
  }
  const curveName = ({ family, c }) =>
    family.alpha === null ? family.name : `${c === 1 ? "Fitzpatrick " : ""}${family.name}${c === 1 || c === 0 ? "" : `, c = ${c}`}`;

  const GRID = Array.from({ length: 321 }, (_, i) => MARGINS * ((2 * i) / 320 - 1));

  function makePlot(id, part, low, high, ticks) {
    const svg = $(id);
    const toY = (value) => PLOT.bottom - ((value - low) / (high - low)) * (PLOT.bottom - PLOT.top);
    const { left, right, top, bottom } = PLOT;
    const axes = [
      ...ticks.flatMap((tick) => [
        make("line", { class: "grid", x1: left, x2: right, y1: toY(tick), y2: toY(tick) }),
        text(fixed(tick, part === "slope" ? 1 : 0), left - 8, toY(tick) + 5, "soft end"),
      ]),
      ...[-4, -2, 0, 2, 4].map((tick) => text(fixed(tick, 0), marginX(tick), bottom + 34, "soft middle")),
      make("line", { class: "axis", x1: left, x2: right, y1: bottom + 8, y2: bottom + 8 }),
    ];
    const clip = make("clipPath", { id: `${id}-frame` }, make("rect", { x: left, y: top, width: right - left, height: bottom - top }));
    const lines = make("g", { "clip-path": `url(#${id}-frame)` });
    const dots = make("g");
    const stem = make("line", { class: "stem", y1: top, y2: bottom + 8 });
    const handle = makeHandle(svg, "Margin", "", (PLOT.right - PLOT.left) / (20 * MARGINS), () => ({ x: marginX(state.margin), y: bottom }), ({ x }) =>
      update({ margin: marginAt(x) })
    );
    handle.setAttribute("aria-valuemin", -MARGINS);
    handle.setAttribute("aria-valuemax", MARGINS);
    svg.append(clip, make("rect", { class: "plane", width: 560, height: 400 }), ...axes, lines, stem, dots, handle);

    let drawn = [];
    svg.addEventListener("pointermove", (event) => {
      const { x, y } = pointerPosition(svg, event);
      const margin = marginAt(x);
      let nearest = null;
      for (const { line, curve } of drawn) {
        const distance = Math.abs(toY(atMargin(curve.family, curve.c, margin)[part]) - y);
        if (distance < (nearest?.distance ?? 20)) nearest = { line, curve, distance };
      }
      drawn.forEach(({ line }) => line.classList.toggle("near", line === nearest?.line));
      if (!nearest || x < left || x > right) return hideTip();
      const { value, slope } = atMargin(nearest.curve.family, nearest.curve.c, margin);
      const label = `${curveName(nearest.curve)} at ${fixed(margin, 2)}: loss ${fixed(value, 4)}, derivative ${fixed(slope, 4)}`;
      return showTip(label, event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", () => {
      drawn.forEach(({ line }) => line.classList.remove("near"));
      hideTip();
    });

    return () => {
      drawn = curvesShown().map((curve) => {
        const points = GRID.map((margin) => ({ x: marginX(margin), y: toY(atMargin(curve.family, curve.c, margin)[part]) }));
        const line = make("polyline", { class: `line ${curve.family.hue} ${curve.dash}`, points: polyline(points) });
        return { curve, line };
      });
      lines.replaceChildren(...drawn.map(({ line }) => line));
      const x = marginX(state.margin);
      dots.replaceChildren(
        ...drawn
          .map(({ curve }) => ({ curve, y: toY(atMargin(curve.family, curve.c, state.margin)[part]) }))
          .filter(({ y }) => y >= top)
          .map(({ curve, y }) => make("circle", { class: `fill ${curve.family.hue}`, cx: x, cy: y, r: 4 }))
      );
      stem.setAttribute("x1", x);
      stem.setAttribute("x2", x);
      putAt(handle, { x, y: bottom + 8 });
      handle.setAttribute("aria-valuenow", state.margin);
      handle.setAttribute("aria-valuetext", `margin ${fixed(state.margin, 2)}`);
    };
  }

  /** Values at the margin, one row a family, with a check box that hides it. */
  function makeTable(id, part) {
    const table = $(id);
    const sample = (style) => make("svg", { viewBox: "0 0 36 12", "aria-hidden": "true" }, make("line", { class: `line ${style}`, x1: 2, x2: 34, y1: 6, y2: 6 }));
    const html = (name, ...children) => {
      const element = document.createElement(name);
      element.append(...children);
      return element;
    };
    const at = html("th");
    const heads = ["", "dotted", "dashed"].map((dash) => {
      const label = html("span");
      return { label, cell: html("th", sample(`soft ${dash}`), label) };
    });
    const rows = FAMILIES.map((family) => {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: family.name });
      box.addEventListener("change", () => {
        const others = state.hide.filter((name) => name !== family.name);
        update({ hide: box.checked ? others : [...others, family.name] });
      });
      const cells = (family.alpha === null ? [0] : [0, 1, 2]).map(() => document.createElement("td"));
      const head = html("th", html("label", box, sample(family.hue), family.name));
      head.scope = "row";
      if (family.alpha === null) cells[0].colSpan = 3;
      return { family, box, cells, element: html("tr", head, ...cells) };
    });
    table.append(html("thead", html("tr", at, ...heads.map(({ cell }) => cell))), html("tbody", ...rows.map(({ element }) => element)));
    return () => {
      at.textContent = `at ${fixed(state.margin, 2)}`;
      const tightnesses = [0, state.c, 1];
      heads.forEach(({ label }, i) => (label.textContent = `c = ${tightnesses[i]}`));
      for (const { family, box, cells } of rows) {
        box.checked = !state.hide.includes(family.name);
        cells.forEach((cell, i) => {
          const number = atMargin(family, tightnesses[i], state.margin)[part];
          cell.textContent = fixed(number, 4);
          cell.dataset.value = number;
        });
      }
    };
  }

  const marginParts = [
    makePlot("curves", "value", 0, 5, [0, 1, 2, 3, 4, 5]),
    makePlot("derivatives", "slope", -1.05, 0.05, [-1, -0.8, -0.6, -0.4, -0.2, 0]),
    makeTable("values", "value"),
    makeTable("slopes", "slope"),
  ];

  // Controls

  function draw() {
    for (const button of document.querySelectorAll("[data-view]"))
      button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    for (const view of ["simplex", "margin"]) $(view).hidden = view !== state.view;
    $("regularizer").hidden = state.view !== "simplex";
    $("tightness").value = state.c;
    $("tightness-value").textContent = state.c;
    $("alpha").value = state.alpha;
    $("alpha-value").textContent = state.alpha;
    for (const radio of document.getElementsByName("alpha")) radio.checked = Number(radio.value) === state.alpha;
    document.querySelectorAll(".c").forEach((element) => (element.textContent = state.c));
    if (state.view === "simplex") drawSimplex();
    else marginParts.forEach((drawPart) => drawPart());
  }

  function restore() {
    state = readAddress();
    theme.choice = state.theme;
    draw();
  }

  for (const button of document.querySelectorAll("[data-view]"))
    button.addEventListener("click", () => update({ view: button.dataset.view }));
  for (const radio of document.getElementsByName("alpha"))
    radio.addEventListener("change", () => update({ alpha: Number(radio.value) }));
  $("alpha").addEventListener("input", (event) => update({ alpha: Number(event.target.value) }));
  $("tightness").addEventListener("input", (event) => update({ c: Number(event.target.value) }));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("controls").addEventListener("reset", (event) => {
    event.preventDefault();
    update({ ...DEFAULTS, view: state.view, theme: state.theme });
  });
  addEventListener("themechange", () => update({ theme: theme.choice }));
  addEventListener("hashchange", restore);

  $("controls").hidden = false;
  restore();
})();
