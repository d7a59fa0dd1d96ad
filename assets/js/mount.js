// Body of gr.HTML's js_on_load: a function body with element, trigger, props, server, upload and watch in scope.
// Gradio knows the sub-path. Scheme, host and port are this page's own: a proxy need not have told them to the server.
const { pathname } = new URL(window.gradio_config?.root || ".", document.baseURI);
const script = new URL(`${pathname.replace(/\/$/, "")}/assets/js/pane.mjs`, document.baseURI);
import(script.href).then(
  (page) => page.mount({ element, props, watch, trigger }),
  (error) => console.error("specdemo: the race view's script did not load", error),
);
