"use strict";
(() => {
  const prefixes = { T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, "µ": 1e-6, n: 1e-9, p: 1e-12, f: 1e-15, a: 1e-18, z: 1e-21, y: 1e-24 };
  const size = (text) => {
    const found = /^(-?[\d.]+(?:e[+-]?\d+)?)(?:\s+([TGMkmµnpfazy]?)(V|A|W|Ω|S|s|H|F)?)?$/.exec(text.trim());
    return found ? Number(found[1]) * (found[2] && found[3] ? prefixes[found[2]] : 1) : null;
  };

  // Tables: a press on a heading sorts by its column, a second one the other way round.
  for (const table of document.querySelectorAll("table")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.textContent = "";
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.cells[column].textContent }));
        rows.forEach((entry) => { entry.size = size(entry.text); });
        rows.sort((a, b) => {
          const order = a.size !== null && b.size !== null ? a.size - b.size : a.text.localeCompare(b.text, undefined, { numeric: true });
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows.map((entry) => entry.row));
      });
    });
  }

  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const frame = document.getElementById("drawing");
  if (!frame) return;
  const said = document.getElementById("said");
  const parts = [...frame.querySelectorAll(".element, .node")];
  const svg = frame.querySelector("svg");
  svg.removeAttribute("style");
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = [...whole];
  const show = () => svg.setAttribute("viewBox", view.map((number) => number.toFixed(2)).join(" "));
  const zoom = (factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) => {
    const width = Math.min(Math.max(view[2] * factor, whole[2] / 200), whole[2] * 4);
    const scale = width / view[2];
    view = [x - (x - view[0]) * scale, y - (y - view[1]) * scale, width, view[3] * scale];
    show();
  };
  const move = (dx, dy) => { view[0] += dx * view[2]; view[1] += dy * view[3]; show(); };
  const fit = () => { view = [...whole]; show(); };
  const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = at(event);
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, point.x, point.y);
  }, { passive: false });
  let held = null;
  frame.addEventListener("pointerdown", (event) => { held = at(event); });
  frame.addEventListener("pointermove", (event) => {
    if (!held) return;
    if (!frame.hasPointerCapture(event.pointerId)) frame.setPointerCapture(event.pointerId);
    const point = at(event);
    view[0] += held.x - point.x;
    view[1] += held.y - point.y;
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => { held = null; });
  const keys = {
    "+": () => zoom(1 / 1.25), "=": () => zoom(1 / 1.25), "-": () => zoom(1.25), "0": fit,
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
  };
  frame.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const [id, act] of [["in", keys["+"]], ["out", keys["-"]], ["fit", fit]]) document.getElementById(id).addEventListener("click", act);

  // What lies under the pointer, or has the focus, in words. Few enough parts take part in the order of the tab key.
  for (const part of parts) {
    if (parts.length <= 500) part.setAttribute("tabindex", "0");
    for (const name of ["pointerenter", "focus"]) part.addEventListener(name, () => { said.textContent = part.getAttribute("aria-label"); });
  }
  const path = document.getElementById("path");
  if (path) path.addEventListener("click", () => {
    const pressed = path.getAttribute("aria-pressed") !== "true";
    svg.classList.toggle("path", pressed);
    path.setAttribute("aria-pressed", String(pressed));
  });

  const search = document.getElementById("search");
  const named = parts.filter((part) => part.dataset.name);
  search.addEventListener("input", () => {
    parts.forEach((part) => part.classList.remove("found"));
    const wanted = search.value.trim().toLowerCase();
    if (!wanted) {
      said.textContent = "";
      fit();
      return;
    }
    const names = named.map((part) => [part, part.dataset.name.toLowerCase()]);
    const exact = names.filter(([, name]) => name === wanted);
    const hits = (exact.length ? exact : names.filter(([, name]) => name.includes(wanted))).map(([part]) => part);
    hits.forEach((part) => part.classList.add("found"));
    const one = new Set(hits.map((part) => part.getAttribute("aria-label"))).size === 1;
    said.textContent = one ? hits[0].getAttribute("aria-label") : `${hits.length} found`;
    if (!hits.length) return;
    const box = hits[0].getBBox();
    const width = Math.min(whole[2], Math.max(8 * box.width, 500));
    const height = width * whole[3] / whole[2];
    view = [box.x + box.width / 2 - width / 2, box.y + box.height / 2 - height / 2, width, height];
    show();
  });
})();
