"use strict";
(() => {
  const form = document.getElementById("filters");
  const selects = [...form.querySelectorAll("select")];
  const questions = [...document.querySelectorAll("details.question")];

  // The choice stands in the address, so that a link can point at it; a link to a heading has no "=".
  const read = () => {
    if (!location.hash.includes("=")) return;
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const select of selects) {
      const value = wanted.get(select.name) || "";
      select.value = [...select.options].some((option) => option.value === value) ? value : "";
    }
  };

  const apply = () => {
    let count = 0;
    for (const question of questions) {
      question.hidden = selects.some((select) => select.value && question.dataset[select.name] !== select.value);
      count += question.hidden ? 0 : 1;
    }
    document.getElementById("count").textContent = `${count} of ${questions.length} shown`;
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    const chosen = selects.filter((select) => select.value).map((select) => [select.name, select.value]);
    location.hash = chosen.length ? new URLSearchParams(chosen).toString() : "all=";
    apply();
  });
  addEventListener("hashchange", () => { read(); apply(); });
  form.hidden = false;
  read();
  apply();
})();
