// Body of gr.HTML's js_on_load for header, engine panel and gallery. Python may bind "command", "open" and "ready".
// The sub-path is Gradio's, the rest this page's own (see mount.js).
const { pathname } = new URL(window.gradio_config?.root || ".", document.baseURI);
const script = new URL(`${pathname.replace(/\/$/, "")}/assets/js/dom/console.mjs`, document.baseURI);
import(script.href).then(
  (page) => page.mount({ element, trigger, root: script.href.replace(/assets\/js\/dom\/console\.mjs$/, "") }),
  (error) => console.error("specdemo: page script", error),
);
