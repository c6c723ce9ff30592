"use strict";
// The plots answer: values under the pointer or by the arrow keys, and a click on the name of a loss
// hides it in all plots of its data set. Without this script the page shows everything.

(() => {
  const REACH = 24; // pixels between the pointer and the mark that it means

  const center = (mark) => {
    const { left, top, width, height } = mark.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  };

  function answer(svg) {
    let shown = [];
    // a mark outside the plot's area is cut off, and one of a hidden loss is not there
    const marks = () => {
      const frame = (svg.querySelector("svg") ?? svg).getBoundingClientRect();
      return [...svg.querySelectorAll("[data-tip]")].filter((mark) => {
        const { x, y } = center(mark);
        const isInside = x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom;
        return isInside && !mark.closest(".off");
      });
    };
    function show(...wanted) {
      shown.forEach((mark) => mark.classList.remove("near"));
      shown = wanted;
      shown.forEach((mark) => mark.classList.add("near"));
      if (shown.length === 0) return hideTip();
      const { x, y } = center(shown[0]);
      const text = shown.map((mark) => mark.dataset.tip).join("\n");
      svg.setAttribute("aria-description", text);
      return showTip(text, x, y);
    }

    svg.setAttribute("role", "group");
    svg.tabIndex = 0;
    function showNearest(event) {
      const distance = (mark) => {
        const { left, right, top, bottom } = mark.getBoundingClientRect();
        const dx = Math.max(left - event.clientX, event.clientX - right, 0);
        const dy = Math.max(top - event.clientY, event.clientY - bottom, 0);
        return Math.hypot(dx, dy);
      };
      const near = marks().filter((mark) => distance(mark) < REACH);
      const least = Math.min(...near.map(distance));
      show(...near.filter((mark) => distance(mark) < least + 1)); // equal values lie on each other
    }
    svg.addEventListener("pointermove", showNearest);
    svg.addEventListener("pointerdown", showNearest); // a finger does not hover
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") show();
    });
    svg.addEventListener("blur", () => show());
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") show();
      if (!step || event.target !== svg) return;
      event.preventDefault();
      const all = marks();
      if (all.length === 0) return;
      const place = shown.length ? all.indexOf(shown[0]) + step : Math.min(step, 0);
      show(all.at(place % all.length));
    });
  }

  function makeSwitch(name, plots) {
    name.setAttribute("role", "button");
    name.setAttribute("tabindex", 0);
    name.setAttribute("aria-pressed", "true");
    const toggle = () => {
      const isShown = name.getAttribute("aria-pressed") === "true";
      for (const part of plots.querySelectorAll("[data-loss]")) {
        if (part.dataset.loss !== name.dataset.loss) continue;
        part.classList.toggle("off", isShown);
        if (part.matches(".legend")) part.setAttribute("aria-pressed", String(!isShown));
      }
    };
    name.addEventListener("click", toggle);
    name.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }

  for (const plots of document.querySelectorAll(".plots")) {
    plots.querySelectorAll("figure > svg").forEach(answer);
    plots.querySelectorAll(".legend").forEach((name) => makeSwitch(name, plots));
  }
})();
