// Body of gr.HTML's js_on_load: a function body with element, trigger, props, server, upload and watch in scope.
const root = window.gradio_config?.root ?? new URL(".", document.baseURI).href;
import(`${root.replace(/\/$/, "")}/assets/js/pane.mjs`).then(
  (page) => page.mount({ element, props, watch, trigger }),
  (error) => console.error("specdemo: the race view's script did not load", error),
);
