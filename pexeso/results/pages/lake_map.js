// Zooms and moves the map of a lake, and hides what a typed text does not name.
for (const map of document.querySelectorAll(".map")) {
  const svg = map.querySelector("svg");
  const { x, y, width, height } = svg.viewBox.baseVal;
  const view = svg.parentElement;
  let box = { x, y, width, height };
  let drawn = box;
  let rest = null;
  let start = null;
  const points = [...svg.querySelectorAll("circle")].map((circle) => ({
    circle,
    label: circle.nextElementSibling,
    isLater: circle.nextElementSibling.classList.contains("later"),
    scale: 1,
    x: circle.cx.baseVal.value,
    y: circle.cy.baseVal.value,
    radius: circle.r.baseVal.value,
  }));
  const draw = () => {
    drawn = { ...box };
    svg.style.transform = "";
    svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
    const scale = width / box.width;
    const isNear = scale > 2.5;
    svg.classList.toggle("near", isNear);
    let left = 150; // labels, which take longest to draw
    for (const point of points) {
      const across = point.x - box.x;
      const down = point.y - box.y;
      const isSeen = across >= 0 && across <= box.width && down >= 0 && down <= box.height;
      if (isSeen && point.scale !== scale) point.circle.setAttribute("r", point.radius / Math.sqrt(scale));
      if (isSeen) point.scale = scale;
      const isNamed = isNear && isSeen && left-- > 0;
      point.label.classList.toggle("seen", isNamed);
      // Of each label shown: a property of the whole picture is looked up for all its parts.
      if (isNamed || !point.isLater) point.label.style.fontSize = `${11 / scale}px`;
    }
  };
  // While it moves the picture is stretched; drawing thousands of lines again waits for its rest.
  const show = () => {
    const unit = Math.min(view.clientWidth / drawn.width, view.clientHeight / drawn.height);
    const scale = drawn.width / box.width;
    const [across, down] = [["x", "width", view.clientWidth], ["y", "height", view.clientHeight]].map(
      ([at, size, length]) =>
        (drawn[at] - box[at]) * unit * scale + ((length - drawn[size] * unit) / 2) * (1 - scale),
    );
    svg.style.transform = `translate(${across}px, ${down}px) scale(${scale})`;
    clearTimeout(rest);
    rest = setTimeout(draw, 150);
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
    const place = view.getBoundingClientRect();
    const left = (event.clientX - place.left) / place.width;
    zoom(event.deltaY < 0 ? 1.25 : 0.8, left, (event.clientY - place.top) / place.height);
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => {
    if (box.width < width) start = { left: event.clientX, top: event.clientY, x: box.x, y: box.y, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!start) return;
    const scale = box.width / view.clientWidth;
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
