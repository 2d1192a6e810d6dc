// Shows the value of a slider while it moves; all else works without a script.
document.addEventListener("input", (event) => {
  const slider = event.target;
  if (slider.type !== "range") return;
  const shown = document.querySelector(`output[for="${slider.id}"]`);
  if (!shown) return;
  const value = Number(slider.value);
  shown.value = slider.name === "min_joinability" ? `${(100 * value).toFixed(1)} %` : value.toFixed(2);
});
// Copies the text behind a button, which no page shows without a script.
document.documentElement.classList.add("scripted");
document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.nextElementSibling.textContent);
  button.textContent = "Copied";
});
// A slider that was moved while the scripts were on their way asks again, now that htmx listens.
document.addEventListener("DOMContentLoaded", () => {
  for (const slider of document.querySelectorAll("input[type=range]")) {
    if (Number(slider.value) !== Number(slider.defaultValue)) slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
});
