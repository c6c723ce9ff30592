"use strict";
// One state, which the address holds. Every change draws anew.

(() => {
  // Of each part of the state: its default, how it is read, and whether it may be what was read.
  const toNumber = (text) => (text.trim() === "" ? NaN : Number(text));
  const toNumbers = (text) => text.split(",").map(toNumber);
  const toNames = (text) => (text === "" ? [] : text.split(","));
  const isBetween = (low, high) => (x) => low <= x && x <= high;
  const isRow = (values, total) => values.length === 3 && Math.abs(sum(values) - total) < 1e-9;
  const isFamily = (name) => FAMILIES.some((family) => family.name === name);
  const FIELDS = {
    view: ["simplex", String, (name) => ["simplex", "margin"].includes(name)],
    alpha: [1, toNumber, (alpha) => alpha === 1 || isBetween(1.01, 2)(alpha)],
    c: [0.5, toNumber, isBetween(0, Number($("tightness").max))],
    theta: [[2.2, 0.3, -2.5], toNumbers, (theta) => isRow(theta, 0) && isInFrame(theta)],
    y: [[0.2, 0.7, 0.1], toNumbers, (y) => isRow(y, 1) && y.every(isBetween(0, 1))],
    margin: [-0.5, toNumber, isBetween(-MAX_MARGIN, MAX_MARGIN)],
    hide: [[], toNames, (names) => names.every(isFamily)],
    theme: ["", String, (name) => ["", "light", "dark"].includes(name)],
  };
  const mapFields = (choose) =>
    Object.fromEntries(Object.entries(FIELDS).map(([name, field]) => [name, choose(name, ...field)]));
  const DEFAULTS = mapFields((_, value) => value);
  let state = DEFAULTS;

  /** The state in the address; what is missing or not valid there has its default. */
  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    return mapFields((name, value, parse, isValid) => {
      const read = given.has(name) ? parse(given.get(name)) : value;
      return isValid(read) ? read : value;
    });
  }

  let saving = 0;
  /** Browsers allow some hundred changes of the address a minute, and a drag makes more. */
  function saveSoon() {
    clearTimeout(saving);
    saving = setTimeout(() => {
      const parts = Object.entries(state).filter(([, value]) => value !== "" && value.length !== 0);
      const hash = parts.map(([name, value]) => `${name}=${value}`).join("&");
      history.replaceState(null, "", `#${hash}`);
    }, 150);
  }

  function update(changes) {
    state = { ...state, ...changes };
    draw();
    saveSoon();
  }

  const views = { simplex: makeSimplexView(update), margin: makeMarginView(update) };
  const buttons = document.querySelectorAll("[data-view]");
  const radios = document.getElementsByName("alpha");

  function draw() {
    for (const button of buttons)
      button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    for (const name of Object.keys(views)) $(name).hidden = name !== state.view;
    $("regularizer").hidden = state.view !== "simplex";
    for (const [id, value] of [["tightness", state.c], ["alpha", state.alpha]]) {
      $(id).value = value;
      $(`${id}-value`).textContent = value;
    }
    for (const radio of radios) radio.checked = Number(radio.value) === state.alpha;
    $("present-c").textContent = state.c;
    views[state.view](state);
  }

  function restore() {
    state = readAddress();
    theme.choice = state.theme;
    draw();
  }

  for (const button of buttons)
    button.addEventListener("click", () => update({ view: button.dataset.view }));
  for (const radio of radios)
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
