// The library that draws, and what is known of every run, are packed to a quarter of their size.
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function main() {
const [library, known] = await Promise.all(["plotly", "runs"].map(unpacked));
document.head.append(Object.assign(document.createElement("script"), {text: library}));
const options = {responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtons: [["toImage"]]};
const plots = [];
for (const data of document.querySelectorAll("script[data-for]")) {
  const figure = JSON.parse(data.textContent), node = document.getElementById(data.dataset.for);
  Plotly.newPlot(node, figure.data, figure.layout, options);
  plots.push(node);
}
for (const button of document.querySelectorAll("[data-arm]")) button.addEventListener("click", () => {
  const show = button.getAttribute("aria-pressed") === "false";
  for (const twin of document.querySelectorAll("[data-arm]")) if (twin.dataset.arm === button.dataset.arm) twin.setAttribute("aria-pressed", show);
  for (const node of plots) {
    const traces = node.data.map((trace, i) => trace.legendgroup === button.dataset.arm ? i : -1).filter(i => i >= 0);
    if (traces.length) Plotly.restyle(node, {visible: show}, traces);
  }
});

// The table: each size is sorted by itself; numbers from large to small first, names from a to z.
for (const body of document.querySelectorAll("tbody")) [...body.rows].forEach((row, i) => { row.dataset.place = i; });
function value(cell) {
  return "value" in cell.dataset ? (cell.dataset.value && Number(cell.dataset.value)) : cell.textContent;
}
function inOrder(a, b, column, sign) {
  const [x, y] = [value(a.cells[column]), value(b.cells[column])];
  if (x === "" || y === "") return (x === "") - (y === "");
  return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
}
for (const button of document.querySelectorAll("[data-sort]")) button.addEventListener("click", () => {
  const head = button.parentElement, column = head.cellIndex, before = head.getAttribute("aria-sort");
  const ways = column ? ["descending", "ascending", null] : ["ascending", "descending", null];
  const now = ways[(ways.indexOf(before) + 1) % 3];
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  if (now) head.setAttribute("aria-sort", now);
  for (const body of head.closest("table").tBodies) {
    const rows = [...body.querySelectorAll("tr[data-row]")];
    rows.sort((a, b) => now ? inOrder(a, b, column, now === "ascending" ? 1 : -1) : a.dataset.place - b.dataset.place);
    body.append(...rows);
  }
});

// One run: three lists choose it, three figures show it.
const {first, figures, runs} = JSON.parse(known);
const choice = document.querySelector(".choose").elements;
function fill(name, among) {
  const old = choice[name].value, values = [...new Set(among.map(run => String(run[name])))];
  choice[name].replaceChildren(...values.map(text => new Option(text, text)));
  if (values.includes(old)) choice[name].value = old;
}
function chosen(...names) {
  return runs.filter(run => names.every(name => String(run[name]) === choice[name].value));
}
function draw(id, curves, epochs) {
  const data = Object.entries(curves).map(([name, y], i) => ({
    x: epochs, y, name: name.replace(/&/g, "&amp;").replace(/</g, "&lt;"), line: figures.lines[i % figures.lines.length],
    mode: epochs.length > 1 ? "lines" : "markers", hovertemplate: "epoch %{x}: %{y:.4~g}",
  }));
  const node = document.getElementById("run-" + id);
  node.hidden = !data.some(trace => trace.y.some(number => number !== null));
  if (!node.hidden) Plotly.react(node, data, structuredClone(figures.layouts[id]), options);
}
function showRun() {
  fill("size", chosen("arm"));
  fill("seed", chosen("arm", "size"));
  const [run] = chosen("arm", "size", "seed");
  document.querySelector(".end").textContent = run ? `${run.end} (record ${run.id})` : "";
  if (!run) return;
  draw("loss", run.loss, run.epochs);
  draw("lr", {"learning rate": run.lr}, run.epochs);
  draw("variance", run.variance, run.epochs);
}
fill("arm", runs);
if (first !== null) choice.arm.value = first;
fill("size", chosen("arm"));
choice.size.selectedIndex = choice.size.options.length - 1;
showRun();
document.querySelector(".choose").addEventListener("change", showRun);

// Figures are drawn as wide as the window; paper is narrower.
const PAPER = 660;
window.addEventListener("beforeprint", () => {
  for (const node of document.querySelectorAll("details")) node.open = true;
  for (const node of document.querySelectorAll(".plot.js-plotly-plot")) {
    Plotly.relayout(node, {width: node.closest(".small") ? PAPER / 2 - 10 : PAPER});
  }
});
window.addEventListener("afterprint", () => {
  for (const node of document.querySelectorAll(".plot.js-plotly-plot")) {
    Plotly.relayout(node, {width: null, autosize: true});
  }
});
}
main();
