// Body of gr.HTML's js_on_load: a function body with element, trigger, props, server, upload and watch in scope.
const root = (window.gradio_config && window.gradio_config.root) || document.baseURI;
const at = new URL("assets/js/pane.mjs", root.endsWith("/") ? root : root.replace(/[^/]*$/, (name) => (root === window.gradio_config?.root ? name + "/" : "")));
import(at.href).then((page) => page.mount({ element, props, watch, trigger }), (error) => console.error("specdemo: page script", error));
