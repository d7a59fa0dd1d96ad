// Runs before Gradio's own scripts: the explicit choice of a language wins over the browser's.
(() => {
  const asked = new URLSearchParams(window.location.search).get("lang");
  const chosen = { en: "en-US", zh: "zh-CN" }[asked];
  if (!chosen) return;
  Object.defineProperty(window.navigator, "language", { get: () => chosen, configurable: true });
  Object.defineProperty(window.navigator, "languages", { get: () => [chosen], configurable: true });
})();
