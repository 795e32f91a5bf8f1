// Sliders and boxes that follow each other, choices that are sent at once, jobs that lead on, charts when seen.
(function () {
  "use strict";
  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };

  for (const slider of document.querySelectorAll("[data-for]")) {
    const box = document.getElementById(slider.dataset.for);
    slider.addEventListener("input", () => { box.value = slider.value; });
    slider.addEventListener("change", () => { box.form.requestSubmit(); });
    box.addEventListener("input", () => { slider.value = box.value; });
  }
  for (const choice of document.querySelectorAll("[data-submit]")) {
    choice.addEventListener("change", () => { choice.form.requestSubmit(); });
  }
  for (const place of document.querySelectorAll("[data-follow]")) {
    const events = new EventSource(place.dataset.follow); // asks again where it was cut off, and hears the present state
    events.addEventListener("message", (event) => { place.innerHTML = event.data; });
    events.addEventListener("over", () => {
      events.close();
      const stop = document.getElementById("stop"), next = document.getElementById("next");
      if (stop) { stop.remove(); }
      if (next) { window.location.assign(next.href); }
    });
  }

  function draw(place, spec) {
    return vegaEmbed(place, spec, options).then(
      (drawn) => { place.dispatchEvent(new CustomEvent("drawn", { detail: { view: drawn.view, spec: spec } })); },
      () => { place.textContent = "This chart could not be drawn."; },
    );
  }

  for (const group of document.querySelectorAll("[data-charts]")) {
    fetch(group.dataset.charts, { headers: { accept: "application/json" } })
      .then((answer) => answer.json())
      .then((specs) => {
        const named = document.querySelectorAll("[data-chart]");
        const watch = new IntersectionObserver((entries) => {
          for (const entry of entries.filter((each) => each.isIntersecting)) {
            watch.unobserve(entry.target);
            draw(entry.target, specs[entry.target.dataset.chart]);
          }
        });
        for (const place of named) {
          if (specs[place.dataset.chart]) { watch.observe(place); }
        }
      });
  }

  // Lines to drag: a chart's own line (its row is a `handle`) moves along its x axis ---------------------------

  function nearest(values, wanted) {
    return values.reduce((best, each, at) => Math.abs(each - wanted) < Math.abs(values[best] - wanted) ? at : best, 0);
  }
  function watchDrag(view, move) {
    let held = null;
    view.addEventListener("pointerdown", (pointer, item) => {
      if (!item || !item.datum || !item.datum.handle) { return; }
      pointer.preventDefault();
      held = { x: pointer.clientX, at: item.x };
    });
    window.addEventListener("pointermove", (pointer) => { if (held) { move(held.at + pointer.clientX - held.x); } });
    window.addEventListener("pointerup", () => { held = null; });
  }

  // The map: a line to move by mouse, slider or box; candidates to pick in the chart or in the table ---------

  function watchMap(form) {
    const place = document.getElementById("map-chart"), box = document.getElementById("level");
    const slider = document.getElementById("level-slider"), levels = JSON.parse(slider.dataset.levels);
    const picks = [...form.elements].filter((each) => each.checked).map((each) => each.value);
    let view = null, asked = 0, waiting = 0;

    function showState() {
      const known = document.getElementById("at-level").dataset;
      view.signal("level", levels[slider.value]).data("at_level", JSON.parse(known.estimates));
      view.data("picked", JSON.parse(known.rings)).runAsync();
    }
    function refresh() {
      const turn = ++asked, query = new URLSearchParams({ level: box.value });
      for (const each of picks) { query.append("candidate", each); }
      fetch(form.action + "?" + query, { headers: { accept: "text/html" } })
        .then((answer) => answer.text())
        .then((text) => {
          const part = new DOMParser().parseFromString(text, "text/html").getElementById("at-level");
          if (turn !== asked || !part) { return; }
          const focus = document.activeElement.id;
          document.getElementById("at-level").replaceWith(part);
          if (focus && document.getElementById(focus)) { document.getElementById(focus).focus(); }
          if (view) { showState(); }
        });
    }
    function moveTo(step) {
      slider.value = step;
      box.value = Number(levels[step].toPrecision(4));
      slider.setAttribute("aria-valuetext", box.value);
      if (view) { view.signal("level", levels[step]).runAsync(); }
      window.clearTimeout(waiting);
      waiting = window.setTimeout(refresh, 100);
    }
    function pick(name) {
      if (picks.includes(name)) { picks.splice(picks.indexOf(name), 1); } else { picks.push(name); }
      picks.splice(0, picks.length - 2);
      refresh();
    }

    slider.hidden = false;
    slider.addEventListener("input", () => { moveTo(slider.value); });
    box.addEventListener("change", () => { moveTo(nearest(levels, Number(box.value.replace(",", ".")))); });
    form.addEventListener("submit", (event) => { event.preventDefault(); moveTo(nearest(levels, Number(box.value.replace(",", ".")))); });
    document.addEventListener("change", (event) => { if (event.target.name === "candidate") { pick(event.target.value); } });
    place.addEventListener("drawn", (event) => {
      view = event.detail.view;
      watchDrag(view, (x) => { moveTo(nearest(levels, view.scale("x").invert(x))); });
      view.addEventListener("click", (_, item) => { if (item && item.datum && item.datum.id) { pick(item.datum.id); } });
      showState();
    });
  }
  for (const form of document.querySelectorAll("[data-map]")) { watchMap(form); }

  // The risk of records: one threshold in the histogram and in the curve ------------------------------------

  function watchThreshold(place) {
    const stops = JSON.parse(place.dataset.threshold), values = stops.map((each) => each.threshold);
    const slider = place.querySelector("input"), words = place.querySelector("output"), views = [];
    function moveTo(step) {
      slider.value = step;
      slider.setAttribute("aria-valuetext", values[step]);
      words.textContent = stops[step].sentence;
      for (const view of views) { view.signal("threshold", values[step]).runAsync(); }
    }
    slider.hidden = false;
    slider.addEventListener("input", () => { moveTo(slider.value); });
    for (const chart of document.querySelectorAll('[data-chart="risks-0"], [data-chart="slider-0"]')) {
      chart.addEventListener("drawn", (event) => {
        const view = event.detail.view, starts = event.detail.spec.usermeta.starts, scale = view.scale("x");
        views.push(view);
        watchDrag(view, (x) => { // bars have no scale to invert: the line stands before the first that is above
          const bar = starts && Math.min(Math.max(Math.round(x / scale.step()), 0), starts.length - 1);
          moveTo(nearest(values, starts ? starts[bar] : scale.invert(x)));
        });
        moveTo(slider.value);
      });
    }
  }
  for (const place of document.querySelectorAll("[data-threshold]")) { watchThreshold(place); }

  // One column in all pictures: those of others are hidden, bars of others are pale ---------------------------

  function watchColumn(choice) {
    const about = JSON.parse(choice.dataset.about), views = [];
    function show() {
      for (const place of document.querySelectorAll("#pictures ~ details [data-chart]")) {
        const columns = about[place.dataset.chart];
        place.closest("figure").hidden = Boolean(choice.value && columns && !columns.includes(choice.value));
      }
      for (const view of views) { view.signal("column", choice.value || null).runAsync(); }
    }
    document.getElementById("column-pick").hidden = false;
    choice.addEventListener("change", show);
    for (const place of document.querySelectorAll("#pictures ~ details [data-chart]")) {
      place.addEventListener("drawn", (event) => {
        if ((event.detail.spec.params || []).some((each) => each.name === "column")) { views.push(event.detail.view); show(); }
      });
    }
  }
  for (const choice of document.querySelectorAll("#column")) { watchColumn(choice); }

  // A map that fills while a comparison runs ------------------------------------------------------------------

  for (const place of document.querySelectorAll("[data-settled]")) {
    const progress = document.getElementById("progress");
    let seen = 0;
    const fill = () => {
      const settled = progress.querySelectorAll(".found li, .line-settled").length;
      if (settled === seen) { return; }
      seen = settled;
      fetch(place.dataset.settled, { headers: { accept: "application/json" } })
        .then((answer) => answer.json())
        .then((spec) => { if (spec) { draw(place, spec); } });
    };
    new MutationObserver(fill).observe(progress, { childList: true, subtree: true });
    fill();
  }
})();

// Fields that belong to another setting: shown while it holds. Without this script they are always shown.
(function () {
  "use strict";
  for (const field of document.querySelectorAll("[data-when]")) {
    const own = field.closest("form").elements[field.dataset.when];
    if (!own) { continue; }
    const box = own instanceof RadioNodeList ? own[own.length - 1] : own;
    const wanted = field.dataset.values ? field.dataset.values.split("|") : [];
    const update = () => {
      const value = box.type === "checkbox" ? String(box.checked) : box.value;
      field.hidden = wanted.length ? !wanted.includes(value) : value === "" || value === "false";
    };
    box.addEventListener("change", update);
    update();
  }
})();
