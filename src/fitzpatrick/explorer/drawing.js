"use strict";
// Shapes, numbers in words, level sets, and handles to drag: what both views draw with.

const $ = (id) => document.getElementById(id);

function make(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function makeText(content, x, y, style) {
  return make("text", { class: style, x: x.toFixed(1), y: y.toFixed(1) }, content);
}

/** A number with a minus sign of its own, and no sign where all its digits are zero. */
const fixed = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const format = ({ x, y }) => `${x.toFixed(2)},${y.toFixed(2)}`;
const polyline = (points) => points.map(format).join(" ");
const path = (points) => `M${points.map(format).join("L")}`;

/** A shaft with a head; empty if there is no room for a head. */
function makeArrow(from, to, style) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy);
  if (length < 4) return make("path", { class: `arrow ${style}` });
  const head = Math.min(10, length / 2) / length;
  const side = (turn) => ({ x: to.x - head * (dx - turn * dy), y: to.y - head * (dy + turn * dx) });
  const d = path([from, to]) + path([side(0.6), to, side(-0.6)]);
  return make("path", { class: `arrow ${style}`, d });
}

/**
 * The pieces of a level set of L, one for each triangle of a mesh that it crosses. They are found
 * by interpolating √L, because a loss is a square near its zeros.
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

/** A function that computes anew only when its arguments have changed. */
function cached(compute) {
  let key = null;
  let result = null;
  return (...inputs) => {
    const asked = JSON.stringify(inputs);
    if (asked !== key) [key, result] = [asked, compute(...inputs)];
    return result;
  };
}

/** Where the pointer is, in the coordinates of a plot. */
function pointerPosition(svg, event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  const { x, y } = point.matrixTransform(svg.getScreenCTM().inverse());
  return { x, y };
}

const IN_THE_PLANE = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ON_A_LINE = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [1, 0], ArrowDown: [-1, 0] };

/**
 * A knob that is dragged, sent somewhere by a click, or moved with the arrow keys.
 *
 *   svg            the plot it lies on
 *   label          what it is called aloud, and symbol on the plot, if it has one
 *   keys           the direction of each arrow key; step is their length in the plot
 *   moveTo(point)  what to do when it should be elsewhere
 *
 * Its place(point, value, words) puts it somewhere, and says what it stands for.
 */
function makeHandle({ svg, label, symbol, keys, step, moveTo }) {
  const knob =
    symbol === "y"
      ? make("rect", { class: "knob", x: -7, y: -7, width: 14, height: 14, rx: 2 })
      : make("circle", { class: "knob", r: 8 });
  const handle = make(
    "g",
    { class: "handle", tabindex: 0, role: "slider", "aria-label": label },
    make("circle", { class: "reach", r: 24 }),
    make("circle", { class: "ring", r: 15 }),
    knob
  );
  if (symbol) handle.append(makeText(symbol, 13, -9, "point-label on-lines"));

  let here = null;
  let isDragging = false;
  svg.addEventListener("pointerdown", (event) => {
    // a finger drags the knob only, so that it can scroll the page elsewhere
    const isMeant = event.pointerType !== "touch" || handle.contains(event.target);
    if (event.button !== 0 || !isMeant) return;
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
    const direction = keys[event.key];
    if (!direction || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const length = step * (event.shiftKey ? 5 : 1);
    moveTo({ x: here.x + length * direction[0], y: here.y + length * direction[1] });
  });

  function place(point, value, words) {
    here = point;
    handle.setAttribute("transform", `translate(${point.x.toFixed(2)} ${point.y.toFixed(2)})`);
    handle.setAttribute("aria-valuenow", value);
    handle.setAttribute("aria-valuetext", words);
  }
  return { element: handle, place };
}
