// Body of gr.HTML's js_on_load for the Runs tab. Python binds "open" {run}.
const root = String(window.gradio_config?.root || document.baseURI).replace(/[?#].*$/, "");
const script = new URL("assets/js/dom/runs.mjs", root.endsWith("/") ? root : `${root}/`);
import(script.href).then(
  (page) => page.mount({ element, trigger, root: script.href.replace(/assets\/js\/dom\/runs\.mjs$/, "") }),
  (error) => console.error("specdemo: page script", error),
);
