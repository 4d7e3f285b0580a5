"use strict";
// The page is whole without this: it adds filters, sorting, a card beside each mark, and another
// theme.
(() => {
  const root = document.documentElement, card = document.getElementById("card");
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.body.classList.add("scripted");

  // ---- what is folded on a screen is open on paper
  const paper = matchMedia("print");
  const fold = () => all("details").forEach((each) => { each.open = paper.matches; });
  paper.addEventListener("change", fold);
  fold();

  // ---- theme
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
  });

  // ---- rows by the number of their point, and the marks that show it
  const rows = new Map(all("tr[data-point]").map((row) => [row.dataset.point, row]));
  const marks = new Map();
  for (const mark of all("svg [data-point]")) {
    if (!marks.has(mark.dataset.point)) marks.set(mark.dataset.point, []);
    marks.get(mark.dataset.point).push(mark);
  }
  const both = (point) => [...(marks.get(point) || []), rows.get(point)].filter(Boolean);
  const heads = all("#points thead th").map((head) => head.textContent.trim());

  rows.forEach((row) => { row.tabIndex = 0; });

  // ---- the card beside a mark
  const text = (tag, content) =>
    Object.assign(document.createElement(tag), { textContent: content });
  function show(event, point) {
    const row = rows.get(point);
    if (!row) return;
    const list = document.createElement("dl");
    [...row.cells].slice(1).forEach((cell, place) => {
      const content = cell.textContent.trim();
      if (content) list.append(text("dt", heads[place + 1]), text("dd", content));
    });
    card.replaceChildren(text("strong", row.cells[0].textContent.trim()), list);
    card.style.display = "block";
    const box = card.getBoundingClientRect();
    card.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    card.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 8))}px`;
  }
  let chosen = "";
  const light = (point, on) => both(point).forEach((element) => element.classList.toggle("on", on));
  function choose(point) {
    if (chosen) light(chosen, false);
    chosen = point === chosen ? "" : point;
    if (chosen) light(chosen, true);
    const plain = location.pathname + location.search;
    history.replaceState(null, "", chosen ? `#point-${chosen}` : plain);
  }
  document.addEventListener("mouseover", (event) => {
    const mark = event.target.closest("svg [data-point]");
    if (!mark) { card.style.display = "none"; return; }
    show(event, mark.dataset.point);
  });
  document.addEventListener("click", (event) => {
    const found = event.target.closest("[data-point]");
    if (found) choose(found.dataset.point);
  });
  document.addEventListener("keydown", (event) => {
    const onRow = event.target.matches("tr[data-point]");
    if (event.key === "Enter" && onRow) choose(event.target.dataset.point);
  });
  function ask() {
    const asked = /^#point-(\d+)$/.exec(location.hash);
    if (asked && asked[1] !== chosen && rows.has(asked[1])) choose(asked[1]);
  }
  addEventListener("hashchange", ask);
  ask();

  // ---- filters
  const filters = all("#tools select");
  const search = document.getElementById("search"), count = document.getElementById("count");
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [point, row] of rows) {
      const fits = filters.every((each) => !each.value || row.dataset[each.name] === each.value) &&
        words.every((word) => row.textContent.toLowerCase().includes(word));
      row.hidden = !fits;
      shown += fits;
      (marks.get(point) || []).forEach((mark) => mark.classList.toggle("off", !fits));
    }
    count.textContent = `${shown} of ${rows.size} points`;
  }
  if (search) {
    filters.forEach((each) => each.addEventListener("change", filter));
    search.addEventListener("input", filter);
    filter();
  }

  // ---- sorting
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].dataset.order ?? row.cells[column].textContent;
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === "" || y === "") return (x === "") - (y === "");  // what is empty stays below
          const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
          return up ? difference : -difference;
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
      });
    });
  }

  // ---- a link into what is folded opens it
  function reveal() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let each = target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
    }
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
})();
