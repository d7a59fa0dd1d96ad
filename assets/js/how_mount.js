// Body of gr.HTML's js_on_load for the How-it-works tab.
// The sub-path is Gradio's, the rest this page's own (see mount.js).
const { pathname } = new URL(window.gradio_config?.root || ".", document.baseURI);
const script = new URL(`${pathname.replace(/\/$/, "")}/assets/js/dom/how.mjs`, document.baseURI);
import(script.href).then(
  (page) => page.mount({ element, root: script.href.replace(/assets\/js\/dom\/how\.mjs$/, "") }),
  (error) => console.error("specdemo: page script", error),
);
