// Draws the charts of a report, lets the reader pick a method, and saves a chart as a file.
(function () {
  "use strict";
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const views = {};

  // AST mode evaluates no text as code, so the page can forbid that altogether.
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true };

  function saved(place, name) {
    const drawn = place.querySelector("svg.marks").outerHTML;
    // A file of its own has no page to ask for a colour: take the one given beside each variable.
    const text = drawn.replace(/var\(--[\w-]+,\s*([^)]+)\)/g, "$1");
    const link = document.createElement("a");
    link.href = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    link.download = name + ".svg";
    link.click();
  }

  function addSaving(place, name) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "Save SVG";
    button.setAttribute("aria-label", "Save this chart as an SVG file");
    button.addEventListener("click", () => saved(place, name));
    place.after(button);
  }

  function draw(name) {
    const place = document.getElementById("chart-" + name);
    return vegaEmbed(place, specs[name], options).then(
      (result) => {
        views[name] = result.view;
        addSaving(place, name);
      },
      (reason) => {
        place.textContent = "This chart could not be drawn.";
        console.error(name, reason);
      }
    );
  }

  const groups = {
    classes: /^classes-/,
    distributions: /^(shape|quantiles|against)-/,
    mosaics: /^mosaic-/,
    correlations: /^correlation-/,
  };

  function pick(group, key) {
    for (const name of Object.keys(views)) {
      if (groups[group].test(name)) {
        views[name].signal("shown", key || null).runAsync();
      }
    }
  }

  Promise.all(Object.keys(specs).map(draw)).then(() => {
    for (const group of document.querySelectorAll("[data-pick]")) {
      group.hidden = false;
      group.addEventListener("change", (event) => pick(group.dataset.pick, event.target.value));
    }
    document.documentElement.dataset.drawn = "yes";
  });
})();
