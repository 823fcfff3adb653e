(function () {
  var chart = document.getElementById("chart");
  var line = chart.querySelector(".pointer"), label = chart.querySelector(".pointer-time");
  var left = Number(chart.dataset.left), right = Number(chart.dataset.right);
  var duration = Number(chart.dataset.duration), width = chart.viewBox.baseVal.width;
  function show(shown) {
    line.style.visibility = label.style.visibility = shown ? "visible" : "hidden";
  }
  chart.addEventListener("mousemove", function (event) {
    var box = chart.getBoundingClientRect();
    var x = Math.min(right, Math.max(left, (event.clientX - box.left) * width / box.width));
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    label.setAttribute("x", x);
    label.textContent = ((x - left) / (right - left) * duration).toFixed(3) + " s";
    show(true);
  });
  chart.addEventListener("mouseleave", function () { show(false); });
})();
