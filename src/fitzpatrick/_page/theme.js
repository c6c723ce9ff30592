"use strict";
// What every page can do: switch between light and dark, and show a value beside the pointer.

const theme = {
  get isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },
  /** "light", "dark", or "" to follow the system. */
  get choice() {
    return document.documentElement.dataset.theme ?? "";
  },
  set choice(value) {
    if (value) document.documentElement.dataset.theme = value;
    else delete document.documentElement.dataset.theme;
    theme.button.textContent = theme.isDark ? "Light mode" : "Dark mode";
  },
  button: Object.assign(document.createElement("button"), {
    className: "theme-toggle",
    type: "button",
  }),
};
theme.button.addEventListener("click", () => {
  theme.choice = theme.isDark ? "light" : "dark";
  dispatchEvent(new Event("themechange"));
});
theme.choice = "";
document.body.prepend(theme.button);

const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
document.body.append(tip);

/** Show a text beside a point of the window, on the side where there is room. */
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  tip.style.top = `${y - height - 14 < 0 ? y + 18 : y - height - 14}px`;
}

function hideTip() {
  tip.hidden = true;
}
