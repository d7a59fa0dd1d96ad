// Body of gr.HTML's js_on_load for header, engine panel and gallery. Python may bind "command", "open" and "ready".
const root = String(window.gradio_config?.root || document.baseURI).replace(/[?#].*$/, "");
const script = new URL("assets/js/dom/console.mjs", root.endsWith("/") ? root : `${root}/`);
import(script.href).then(
  (page) => page.mount({ element, trigger, root: script.href.replace(/assets\/js\/dom\/console\.mjs$/, "") }),
  (error) => console.error("specdemo: page script", error),
);
