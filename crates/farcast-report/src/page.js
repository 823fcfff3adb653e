"use strict";
(() => {
  // Figures: drawn anew when the reader's colours or width change.
  const source = document.getElementById("figures");
  const figures = source ? JSON.parse(source.textContent) : [];
  // Okabe and Ito's colours, which the colour-blind can tell apart; the yellow is darker on a light ground.
  const light = ["#0072b2", "#d55e00", "#009e73", "#b0679b", "#9a7d00", "#4a9cc9", "#5b6b7b"];
  const dark = ["#56b4e9", "#ee8a4a", "#3ecb9c", "#d99bc4", "#f0e442", "#9ad0f5", "#b7c3cf"];
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 700px)");
  const draw = () => {
    const style = getComputedStyle(document.body);
    const [ink, line] = [style.color, scheme.matches ? "#3a4652" : "#d5dde5"];
    const font = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
    const config = {
      background: null,
      font,
      view: { stroke: null },
      title: { color: ink },
      text: { color: ink },
      range: { category: scheme.matches ? dark : light },
      axis: {
        labelColor: ink, titleColor: ink, domainColor: line, tickColor: line, gridColor: line, gridOpacity: 0.6,
        labelFontSize: 12, titleFontSize: 12.5, titleFontWeight: 500, titlePadding: 8,
      },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, columns: narrow.matches ? 1 : 3 },
    };
    const theme = scheme.matches ? "dark" : "light";
    const options = {
      renderer: "svg", config, tooltip: { theme },
      actions: { export: true, source: false, compiled: false, editor: false },
    };
    figures.forEach((specification, number) => {
      vegaEmbed(`#figure-${number}`, specification, options).catch((error) => console.error(error));
    });
  };
  // What draws is compressed within the page.
  const unpack = async () => {
    const packed = atob(document.getElementById("libraries").textContent.replace(/\s/g, ""));
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    for (const library of (await new Response(text).text()).split("\n//next\n")) {
      const script = document.createElement("script");
      script.textContent = library;
      document.head.append(script);
      script.remove();
    }
  };
  const begin = async () => {
    await unpack();
    draw();
    scheme.addEventListener("change", draw);
    narrow.addEventListener("change", draw);
  };
  if (figures.length > 0) {
    begin().catch((error) => {
      console.error(error);
      for (const plot of document.querySelectorAll(".plot")) {
        plot.textContent = "This browser cannot draw the figure; its numbers are in the tables.";
      }
    });
  }

  // What is wider than the screen says that it scrolls.
  const boxes = [...document.querySelectorAll(".table")];
  const measure = () => boxes.forEach((box) => box.classList.toggle("scrolls", box.scrollWidth > box.clientWidth + 1));
  measure();
  addEventListener("resize", measure);

  // Tables: a click on a heading sorts by it, another the other way round.
  for (const table of document.querySelectorAll("table")) {
    const headings = [...table.querySelectorAll("thead th")];
    headings.forEach((heading, place) => {
      heading.querySelector("button").addEventListener("click", () => {
        const falls = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
        const body = table.tBodies[0];
        const key = (row) => {
          const cell = row.cells[place];
          return cell.dataset.exact === undefined ? cell.textContent : Number(cell.dataset.exact);
        };
        const compare = (a, b) => {
          const [one, other] = [key(a), key(b)];
          if (typeof one === "number" && typeof other === "number") return one - other;
          // What has no number stands behind what has one.
          if (typeof one !== typeof other) return (typeof one === "number") === falls ? 1 : -1;
          return one.localeCompare(other, "en", { numeric: true });
        };
        const rows = [...body.rows].sort((a, b) => (falls ? compare(b, a) : compare(a, b)));
        body.append(...rows);
      });
    });
  }
})();
