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
    place.addEventListener("over", () => {
      const stop = document.getElementById("stop");
      if (stop) { stop.remove(); }
      const next = document.getElementById("next");
      if (next) { window.location.assign(next.href); }
    });
  }

  function draw(place, spec) {
    vegaEmbed(place, spec, options).catch(() => { place.textContent = "This chart could not be drawn."; });
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
        if (group.classList.contains("charts")) {
          for (const name of ["map", "ranking"].filter((each) => specs[each])) {
            const place = document.createElement("div");
            place.className = "chart";
            group.append(place);
            draw(place, specs[name]);
          }
        }
      });
  }
})();
