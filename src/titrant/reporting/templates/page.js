"use strict";
(() => {
  const result = JSON.parse(document.getElementById("titrant-result").textContent);
  const all = (where, what) => [...where.querySelectorAll(what)];

  // A rule is nested lists, each with the name of its kind first; see titrant.policies.formulas.
  const dated = (text, part) => {
    const at = new Date(text.length > 10 ? `${text}Z` : `${text}T00:00Z`);
    return {
      year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, day: at.getUTCDate(), hour: at.getUTCHours(),
      weekday: ((at.getUTCDay() + 6) % 7) + 1, days: Math.floor(at.getTime() / 864e5),
    }[part];
  };
  const holds = ([kind, of, by], row) => {
    if (kind === "AtMost") return value(of, row) <= by;
    if (kind === "Above") return value(of, row) > value(by, row);
    const found = row[of[1]];
    if (kind === "Reads") return found === by;
    if (kind === "NoNumber") return found === null || !Number.isFinite(found);
    if (found === null || Number.isNaN(found)) return true;
    return by !== null && (String(found).trim() === "" || by.includes(found));
  };
  const value = (formula, row) => {
    if (typeof formula === "number") return formula;
    const [kind, of, by, other] = formula;
    switch (kind) {
      case "Column": return row[of];
      case "DatePart": return row[of[1]] === null ? NaN : dated(row[of[1]], by);
      case "Sum": return of.reduce((sum, part) => sum + value(part, row), 0);
      case "Product": return of.reduce((product, part) => product * value(part, row), 1);
      case "Ratio": return value(of, row) / by;
      case "Exponential": return Math.exp(value(of, row));
      case "Floor": return Math.floor(value(of, row));
      case "Within": return Math.min(Math.max(value(of, row), by ?? -Infinity), other ?? Infinity);
      case "Stairs": {
        const reached = value(of, row);
        return other[by.filter((start) => start <= reached).length];
      }
      case "Largest": return Math.max(...of.map((part) => value(part, row)));
      case "Smallest": return Math.min(...of.map((part) => value(part, row)));
      case "Choice": return value(holds(of, row) ? by : other, row);
      case "Unless": return value(of, row);
      default: throw new Error(kind);
    }
  };

  // One person: the dose, what it is made of, and whether such people were in the log.
  const dose = (form, person) => {
    const decimals = Number(form.dataset.decimals);
    const shown = (number, sign = "") =>
      (number > 0 ? sign : "") + String(Number(number.toFixed(decimals))).replace("-", "−");
    const fill = (what, text) => all(form, what).forEach((place) => { place.textContent = text; });
    const update = () => {
      const row = {}, strange = [];
      person.fields.forEach((field, k) => {
        const input = form.elements[`field-${k}`], given = input.value;
        const numeric = field.kind === "number" || field.kind === "level";
        row[field.column] = given === "" && field.kind !== "text" ? null : numeric ? Number(given) : given;
        const beyond = numeric && given !== "" && (Number(given) < field.low || Number(given) > field.high);
        if (beyond) strange.push(`${input.dataset.label} ${given}`);
      });
      const lacking = person.needed.some((test) => holds(test, row));
      const impossible = !lacking && person.impossible.some((test) => holds(test, row));
      form.querySelector("[data-filled]").hidden = lacking || impossible;
      form.querySelector("[data-lacking]").hidden = !lacking;
      form.querySelector("[data-impossible]").hidden = !impossible;
      if (lacking || impossible) return;
      person.stages.forEach((stage, k) => stage.doses.forEach((formula, d) => {
        const found = value(formula, row);
        fill(`[data-stage="${k}-${d}"]`, shown(found));
        if (k < person.stages.length - 1) return;
        all(form, `[data-dose="${d}"]`).forEach((place) => {
          place.textContent = shown(found);
          place.dataset.exact = String(found);
        });
      }));
      person.terms.forEach((term, k) => fill(`[data-term="${k}"]`, shown(value(term.adds, row), "+")));
      const outside = form.querySelector("[data-outside]");
      outside.hidden = strange.length === 0;
      fill("[data-outside] b", strange.join(", "));
      if (person.near) near(person.near, row, strange.length > 0);
    };
    const near = ({ contexts, edges, counts, reach }, row, strange) => {
      let cell = 0;
      contexts.forEach(({ value: of, cuts, words }, k) => {
        const part = cuts.filter((cut) => cut < value(of, row)).length;
        cell = cell * (cuts.length + 1) + part;
        fill(`[data-range="${k}"]`, words[part]);
      });
      const given = Number(form.querySelector('[data-dose="0"]').dataset.exact);
      const alike = counts[cell].reduce((sum, rows) => sum + rows, 0);
      const close = counts[cell].filter((_, j) => Math.abs((edges[j] + edges[j + 1]) / 2 - given) <= reach);
      const about = close.reduce((sum, rows) => sum + rows, 0);
      fill("[data-alike]", strange ? "0" : String(alike));
      fill("[data-given]", strange ? "0" : String(about));
      form.querySelector("[data-near]").className = strange || about < 10 ? "warn" : "ok";
      form.querySelector("[data-nobody]").hidden = !strange && about >= 10;
    };
    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    update();
  };
  all(document, "form.person").forEach((form) => dose(form, result.person));

  // A slider goes along the rows of a table and the points of a figure: what was computed, no more.
  all(document, ".slide").forEach((slide) => {
    const rows = all(document.getElementById(slide.dataset.table), "tbody tr")
      .map((row) => [...row.cells].map((cell) => cell.textContent));
    const drawing = document.getElementById(slide.dataset.figure), range = slide.querySelector("input");
    const places = drawing.dataset.at.split(" ").map((place) => place.split(",").map(Number));
    const drawn = (kind, set) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
      Object.entries(set).forEach(([name, to]) => made.setAttribute(name, to));
      return drawing.appendChild(made);
    };
    const bar = drawn("line", { class: "mark" }), dot = drawn("circle", { class: "mark", r: 5 });
    const update = () => {
      const k = Number(range.value), [x, y, low, high] = places[k];
      Object.entries({ x1: x, x2: x, y1: low, y2: high }).forEach(([name, to]) => bar.setAttribute(name, to));
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      all(slide, "[data-cell]").forEach((cell) => { cell.textContent = rows[k][Number(cell.dataset.cell)]; });
      range.setAttribute("aria-valuetext", `${rows[k][0]}: ${rows[k][1]}`);
    };
    range.addEventListener("input", update);
    slide.hidden = false;
    update();
  });

  // Columns of tables sort by a button in their heading.
  const key = (text) => {
    const found = text.replace(/,/g, "").replace(/−/g, "-").match(/-?\d+(\.\d+)?(e-?\d+)?/);
    return found && /^[+<≤]?[−\d]/.test(text.trim()) ? Number(found[0]) : null;
  };
  const compared = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x !== null && y !== null) return x - y;
    return x === null && y === null ? a.localeCompare(b) : x === null ? 1 : -1;
  };
  all(document, "table").filter((table) => table.tBodies[0].rows.length > 2).forEach((table) => {
    all(table, "thead th").forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        all(table, "thead th").forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => compared(a.cells[column].textContent, b.cells[column].textContent) * (down ? -1 : 1));
        table.tBodies[0].append(...rows);
      });
    });
  });
})();
