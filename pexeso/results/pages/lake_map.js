// Zooms and moves the map of a lake, and hides what a typed text does not name.
for (const map of document.querySelectorAll(".map")) {
  const svg = map.querySelector("svg");
  const { x, y, width, height } = svg.viewBox.baseVal;
  let box = { x, y, width, height };
  let start = null;
  const points = [...svg.querySelectorAll("circle")].map((circle) => ({
    circle,
    label: circle.nextElementSibling,
    x: circle.cx.baseVal.value,
    y: circle.cy.baseVal.value,
    radius: circle.r.baseVal.value,
  }));
  let isWaiting = false;
  const draw = () => {
    isWaiting = false;
    svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
    svg.style.setProperty("--zoom", width / box.width);
    const isNear = width / box.width > 2.5;
    svg.classList.toggle("near", isNear);
    let left = 150; // labels, which take longest to draw
    for (const point of points) {
      const across = point.x - box.x;
      const down = point.y - box.y;
      const isSeen = across >= 0 && across <= box.width && down >= 0 && down <= box.height;
      if (isSeen) point.circle.setAttribute("r", point.radius * Math.sqrt(box.width / width));
      point.label.classList.toggle("seen", isNear && isSeen && left-- > 0);
    }
  };
  const show = () => {
    if (!isWaiting) requestAnimationFrame(draw);
    isWaiting = true;
  };
  const zoom = (factor, left = 0.5, top = 0.5) => {
    const scale = Math.min(40, Math.max(1, (width / box.width) * factor));
    const next = { width: width / scale, height: height / scale };
    next.x = scale === 1 ? x : box.x + (box.width - next.width) * left;
    next.y = scale === 1 ? y : box.y + (box.height - next.height) * top;
    box = next;
    show();
  };
  map.querySelector(".map-controls").hidden = false;
  for (const button of map.querySelectorAll("button")) {
    button.addEventListener("click", () => zoom(Number(button.value)));
  }
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    const left = (event.clientX - place.left) / place.width;
    zoom(event.deltaY < 0 ? 1.25 : 0.8, left, (event.clientY - place.top) / place.height);
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => {
    if (box.width < width) start = { left: event.clientX, top: event.clientY, x: box.x, y: box.y, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!start) return;
    const scale = box.width / svg.getBoundingClientRect().width;
    const across = event.clientX - start.left;
    const down = event.clientY - start.top;
    start.moved ||= Math.abs(across) + Math.abs(down) > 4;
    if (!start.moved) return;
    box.x = start.x - across * scale;
    box.y = start.y - down * scale;
    show();
  });
  window.addEventListener("pointerup", () => {
    const moved = start?.moved;
    start = null;
    if (moved) window.addEventListener("click", (event) => event.preventDefault(), { capture: true, once: true });
  });
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  const field = map.querySelector("input");
  field.addEventListener("input", () => {
    const text = field.value.toLowerCase();
    for (const part of svg.querySelectorAll("[data-names]")) {
      part.classList.toggle("off", !part.dataset.names.toLowerCase().includes(text));
    }
  });
}
