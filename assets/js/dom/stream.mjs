/** Frames of one run over server-sent events, resumed after a broken connection where it broke. */
import { parseFrame } from "../frame.mjs";

const TRIES = 6; // the browser gives up on an answer that is no stream; we ask again so often, ever more slowly

/**
 * Where Gradio is mounted, with a slash at the end. Gradio knows the sub-path. Scheme, host and port are this page's own:
 * a proxy need not have told them to the server.
 */
export function pageRoot() {
  const { pathname } = new URL(window.gradio_config?.root || ".", document.baseURI);
  return new URL(`${pathname.replace(/\/$/, "")}/`, document.baseURI).href;
}

/**
 * @param {string} url
 * @param {{frame: (frame: object) => void, lost: () => void, gone: () => void}} told
 * @returns {() => void} closes the stream
 */
export function openStream(url, told) {
  let source = null;
  let last = -1;
  let failures = 0;
  let timer = 0;
  let closed = false;

  function close() {
    closed = true;
    clearTimeout(timer);
    source?.close();
  }

  function open() {
    const from = new URL(url, pageRoot());
    if (last >= 0) from.searchParams.set("after", String(last));
    source = new EventSource(from.href);
    source.onmessage = ({ data }) => {
      const frame = parseFrame(data);
      if (frame === null || closed) return;
      failures = 0;
      last = Math.max(last, frame.seq);
      if (frame.done === true) close(); // or the browser would ask for it again
      told.frame(frame);
    };
    source.onerror = () => {
      if (closed) return;
      if (source.readyState !== EventSource.CLOSED) return void told.lost(); // the browser asks again by itself
      failures += 1;
      if (failures > TRIES) {
        close();
        told.gone();
      } else {
        told.lost();
        timer = setTimeout(open, Math.min(8000, 500 * 2 ** failures));
      }
    };
  }

  open();
  return close;
}
