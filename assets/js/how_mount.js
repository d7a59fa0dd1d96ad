// Body of gr.HTML's js_on_load for the How-it-works tab.
const root = String(window.gradio_config?.root || document.baseURI).replace(/[?#].*$/, "");
const script = new URL("assets/js/dom/how.mjs", root.endsWith("/") ? root : `${root}/`);
import(script.href).then(
  (page) => page.mount({ element, root: script.href.replace(/assets\/js\/dom\/how\.mjs$/, "") }),
  (error) => console.error("specdemo: page script", error),
);
